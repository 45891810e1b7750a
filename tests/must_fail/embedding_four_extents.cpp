// error: shape_mismatch<.*at_index<1>.*by_layer<.*embedding<10, 4>.*receives<2, 3, 4, 5>.*because<.*embedding_takes_one_to_three_extents>
#include <strata/layers/embedding.hpp>
#include <strata/layers/reshape.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<2, 3, 4, 5>, reshape<2, 3, 20>, embedding<10, 4>>;
#else
using net = sequential<input<2, 3, 4, 5>, embedding<10, 4>>;
#endif
net n;
