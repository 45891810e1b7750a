// Branches and joins.
#include <strata/layers/add.hpp>
#include <strata/layers/average.hpp>
#include <strata/layers/concat.hpp>
#include <strata/layers/conv2d.hpp>
#include <strata/layers/dense.hpp>
#include <strata/layers/max_pool2d.hpp>
#include <strata/layers/maximum.hpp>
#include <strata/layers/multiply.hpp>
#include <strata/layers/subtract.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;

// case: add_of_unequal_branches
// error: shape_mismatch<.*at_index<1>.*by_layer<.*add<.*receives<8, 8, 4>.*because<.*add_takes_branches_of_equal_shape>
#ifdef TWIN
using net = sequential<input<8, 8, 1>, add<branch<conv2d<4, 3, same_padding>>, branch<conv2d<4, 1>>>>;
#else
using net = sequential<input<8, 8, 1>, add<branch<conv2d<4, 3>>, branch<conv2d<4, 1>>>>;
#endif
net n;

// case: average_of_unequal_branches
// error: shape_mismatch<.*at_index<1>.*by_layer<.*average<.*receives<8, 8, 4>.*because<.*average_takes_branches_of_equal_shape>
#ifdef TWIN
using net = sequential<input<8, 8, 1>, average<branch<conv2d<4, 3, same_padding>>, branch<conv2d<4, 1>>>>;
#else
using net = sequential<input<8, 8, 1>, average<branch<conv2d<4, 3>>, branch<conv2d<4, 1>>>>;
#endif
net n;

// case: concat_of_unequal_images
// error: shape_mismatch<.*at_index<1>.*by_layer<.*concat<.*receives<28, 28, 2>.*beside<26, 26, 4>.*because<.*concat_takes_branches_that_differ_only_in_channels_use_same_padding>
// whole program
#include <strata/strata.hpp>

#ifdef TWIN
using net =
    sequential<input<28, 28, 1>, concat<branch<conv2d<4, 3, same_padding>>, branch<conv2d<2, 1>>>, flatten, dense<10, softmax>>;
#else
using net = sequential<input<28, 28, 1>, concat<branch<conv2d<4, 3>>, branch<conv2d<2, 1>>>, flatten, dense<10, softmax>>;
#endif
void train() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}

// case: join_of_nine_branches
// error: shape_mismatch<.*at_index<1>.*by_layer<.*add<.*receives<4>.*because<.*a_join_takes_at_most_8_branches>
#ifdef TWIN
using net = sequential<input<4>, add<branch<>, branch<>, branch<>, branch<>, branch<>, branch<>, branch<>, branch<>>>;
#else
using net = sequential<input<4>, add<branch<>, branch<>, branch<>, branch<>, branch<>, branch<>, branch<>, branch<>, branch<>>>;
#endif
net n;

// case: join_without_branches
// error: shape_mismatch<.*at_index<1>.*by_layer<.*add<.*because<.*a_join_needs_at_least_one_branch>
#ifdef TWIN
using net = sequential<input<4>, add<branch<>>>;
#else
using net = sequential<input<4>, add<>>;
#endif
net n;

// case: maximum_of_unequal_branches
// error: shape_mismatch<.*at_index<1>.*by_layer<.*maximum<.*receives<8, 8, 4>.*because<.*maximum_takes_branches_of_equal_shape>
#ifdef TWIN
using net = sequential<input<8, 8, 1>, maximum<branch<conv2d<4, 3, same_padding>>, branch<conv2d<4, 1>>>>;
#else
using net = sequential<input<8, 8, 1>, maximum<branch<conv2d<4, 3>>, branch<conv2d<4, 1>>>>;
#endif
net n;

// case: multiply_of_unequal_branches
// error: shape_mismatch<.*at_index<1>.*by_layer<.*multiply<.*receives<8, 8, 4>.*because<.*multiply_takes_branches_of_equal_shape>
#ifdef TWIN
using net = sequential<input<8, 8, 1>, multiply<branch<conv2d<4, 3, same_padding>>, branch<conv2d<4, 1>>>>;
#else
using net = sequential<input<8, 8, 1>, multiply<branch<conv2d<4, 3>>, branch<conv2d<4, 1>>>>;
#endif
net n;

// case: nested_branches
// error: shape_mismatch<.*at_index<2, 1, 0, 0, 1>.*by_layer<.*conv2d<8, 5>.*receives<4, 4, 8>.*because<.*conv2d_kernel_is_larger_than_the_image_use_same_padding>
#ifdef TWIN
using net = sequential<
    input<8, 8, 1>, conv2d<8, 3, same_padding>,
    concat<branch<max_pool2d<2>>, branch<add<branch<max_pool2d<2>, conv2d<8, 5, same_padding>>, branch<max_pool2d<2>>>>>>;
#else
using net = sequential<input<8, 8, 1>, conv2d<8, 3, same_padding>,
                       concat<branch<max_pool2d<2>>, branch<add<branch<max_pool2d<2>, conv2d<8, 5>>, branch<max_pool2d<2>>>>>>;
#endif
net n;

// case: residual_that_changes_the_channels
// error: shape_mismatch<.*at_index<1>.*by_layer<.*residual<.*receives<28, 28, 1>.*beside<28, 28, 4>.*because<.*residual_keeps_the_channels_or_use_add_with_a_branch_of_conv2d_1x1>
// whole program
#include <strata/strata.hpp>

#ifdef TWIN
using net = sequential<input<28, 28, 1>, add<branch<conv2d<4, 1>>, branch<conv2d<4, 1>>>, flatten, dense<10, softmax>>;
#else
using net = sequential<input<28, 28, 1>, residual<conv2d<4, 1>>, flatten, dense<10, softmax>>;
#endif
void train() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}

// case: residual_that_changes_the_shape
// error: shape_mismatch<.*at_index<1>.*by_layer<.*residual<.*receives<28, 28, 1>.*beside<26, 26, 1>.*because<.*residual_keeps_height_and_width_use_same_padding>
// whole program
#include <strata/strata.hpp>

#ifdef TWIN
using net = sequential<input<28, 28, 1>, residual<conv2d<1, 3, same_padding>>, flatten, dense<10, softmax>>;
#else
using net = sequential<input<28, 28, 1>, residual<conv2d<1, 3>>, flatten, dense<10, softmax>>;
#endif
void train() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}

// case: sequential_in_a_branch
// error: shape_mismatch<.*at_index<1, 1, 2>.*by_layer<.*dense<4>.*receives<26, 26, 8>
// whole program
#include <strata/strata.hpp>

#ifdef TWIN
using net = sequential<input<28, 28, 1>,
                       concat<sequential<flatten, dense<8>>, sequential<conv2d<8, 3>, activation<relu>, flatten, dense<4>>>,
                       dense<10, softmax>>;
#else
using net =
    sequential<input<28, 28, 1>, concat<sequential<flatten, dense<8>>, sequential<conv2d<8, 3>, activation<relu>, dense<4>>>,
               dense<10, softmax>>;
#endif
void train() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}

// case: subtract_of_three_branches
// error: shape_mismatch<.*at_index<1>.*by_layer<.*subtract<.*receives<4>.*because<.*subtract_takes_two_branches>
#ifdef TWIN
using net = sequential<input<4>, subtract<branch<dense<4>>, branch<>>>;
#else
using net = sequential<input<4>, subtract<branch<dense<4>>, branch<dense<4>>, branch<>>>;
#endif
net n;

// case: subtract_of_unequal_branches
// error: shape_mismatch<.*at_index<1>.*by_layer<.*subtract<.*receives<8, 8, 4>.*because<.*subtract_takes_branches_of_equal_shape>
#ifdef TWIN
using net = sequential<input<8, 8, 1>, subtract<branch<conv2d<4, 3, same_padding>>, branch<conv2d<4, 1>>>>;
#else
using net = sequential<input<8, 8, 1>, subtract<branch<conv2d<4, 3>>, branch<conv2d<4, 1>>>>;
#endif
net n;
