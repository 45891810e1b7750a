// error: shape_mismatch<.*at_index<1>.*by_layer<.*embedding<16777217, 1>.*receives<7>.*because<.*embedding_has_at_most_2_to_the_24_rows>
#include <strata/layers/embedding.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<7>, embedding<16777216, 1>>;
#else
using net = sequential<input<7>, embedding<16777217, 1>>;
#endif
net n;
