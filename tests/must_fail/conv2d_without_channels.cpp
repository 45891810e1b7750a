// error: shape_mismatch<.*at_index<1>.*by_layer<.*conv2d<32, 3.*receives<28, 28>.*write_input_with_a_last_extent_of_1>
// whole program
#include <strata/strata.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<28, 28>, reshape<28, 28, 1>, conv2d<32, 3>, flatten, dense<10, softmax>>;
#else
using net = sequential<input<28, 28>, conv2d<32, 3>, flatten, dense<10, softmax>>;
#endif
void train() {
  const data::array<float, shape{28, 28}> x;
  const std::vector<int> y;
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
  model.fit(data::from_tensor_slices(x, y) | data::batch<32>, epochs(1));
}
