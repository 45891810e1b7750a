// error: shape_mismatch<.*at_index<2>.*by_layer<.*dense<10>.*receives<26, 26, 32>.*because<.*dense_takes_a_rank_1_shape_put_flatten_in_front>
#include <strata/layers/conv2d.hpp>
#include <strata/layers/dense.hpp>
#include <strata/layers/flatten.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<28, 28, 1>, conv2d<32, 3, relu>, flatten, dense<10>>;
#else
using net = sequential<input<28, 28, 1>, conv2d<32, 3, relu>, dense<10>>;
#endif
net n;
