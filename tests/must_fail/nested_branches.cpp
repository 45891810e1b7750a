// error: shape_mismatch<.*at_index<2, 1, 0, 0, 1>.*by_layer<.*conv2d<8, 5>.*receives<4, 4, 8>.*because<.*conv2d_kernel_is_larger_than_the_image_use_same_padding>
#include <strata/layers/add.hpp>
#include <strata/layers/concat.hpp>
#include <strata/layers/conv2d.hpp>
#include <strata/layers/max_pool2d.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<
    input<8, 8, 1>, conv2d<8, 3, same_padding>,
    concat<branch<max_pool2d<2>>, branch<add<branch<max_pool2d<2>, conv2d<8, 5, same_padding>>, branch<max_pool2d<2>>>>>>;
#else
using net = sequential<input<8, 8, 1>, conv2d<8, 3, same_padding>,
                       concat<branch<max_pool2d<2>>, branch<add<branch<max_pool2d<2>, conv2d<8, 5>>, branch<max_pool2d<2>>>>>>;
#endif
net n;
