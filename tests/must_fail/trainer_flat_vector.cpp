// error: data_mismatch<.*the_network_takes<4>.*the_data_set_yields<1>.*because<.*samples_in_a_flat_vector_need_a_shape_write_data_array>
// whole program
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<4>, dense<10, softmax>>;
void train() {
  const std::vector<float> x;
  const std::vector<int> y;
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
#ifdef TWIN
  model.fit(data::from_tensor_slices(data::array<float, shape{4}>(x), y) | data::batch<32>, epochs(1));
#else
  model.fit(data::from_tensor_slices(x, y) | data::batch<32>, epochs(1));
#endif
}
