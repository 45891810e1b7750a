// error: shape_mismatch<.*at_index<1>.*by_layer<.*embedding<16777216, 128>.*receives<7>.*because<.*embedding_is_too_large>
#include <strata/layers/embedding.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<7>, embedding<16777216, 127>>;
#else
using net = sequential<input<7>, embedding<16777216, 128>>;
#endif
net n;
