// error: shape_mismatch<.*at_index<1>.*receives<1, 28, 28>.*channels_come_last>
// whole program
#include <strata/strata.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<1, 28, 28>, reshape<28, 28, 1>, conv2d<32, 3>, flatten, dense<10, softmax>>;
#else
using net = sequential<input<1, 28, 28>, conv2d<32, 3>, flatten, dense<10, softmax>>;
#endif
void train() {
  const data::array<float, shape{1, 28, 28}> x;
  const std::vector<int> y;
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
  model.fit(data::from_tensor_slices(x, y) | data::batch<32>, epochs(1));
}
