// error: top-k accuracy needs K >= 1
#include <strata/metrics/top_k_categorical_accuracy.hpp>

using namespace strata;
#ifdef TWIN
sparse_top_k_categorical_accuracy<1> m;
#else
sparse_top_k_categorical_accuracy<0> m;
#endif
