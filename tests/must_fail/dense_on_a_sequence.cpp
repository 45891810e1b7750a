// error: shape_mismatch<.*at_index<2>.*by_layer<.*dense<10.*receives<20, 16>.*put_global_average_pool1d_or_flatten_in_front>
// whole program
#include <strata/strata.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<20>, embedding<100, 16>, global_average_pool1d, dense<10, softmax>>;
#else
using net = sequential<input<20>, embedding<100, 16>, dense<10, softmax>>;
#endif
void train() {
  const data::array<float, shape{20}> x;
  const std::vector<int> y;
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
  model.fit(data::from_tensor_slices(x, y) | data::batch<32>, epochs(1));
}
