// error: the metric does not know one of its options
#include <strata/metrics/auc.hpp>
#include <strata/metrics/confusion.hpp>

using namespace strata;
#ifdef TWIN
recall<top_k<2>> m;
#else
auc<top_k<2>> m;
#endif
