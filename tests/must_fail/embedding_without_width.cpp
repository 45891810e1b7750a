// error: shape_mismatch<.*at_index<1>.*by_layer<.*embedding<10, 0>.*receives<7>.*because<.*embedding_needs_at_least_one_row_and_one_column>
#include <strata/layers/embedding.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<7>, embedding<10, 1>>;
#else
using net = sequential<input<7>, embedding<10, 0>>;
#endif
net n;
