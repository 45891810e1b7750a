// error: data_mismatch<.*because<.*the_data_set_has_no_labels_write_data_from_tensor_slices_of_x_and_y>
// whole program
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<8>, dense<10, softmax>>;
void train() {
  const data::array<float, shape{8}> x;
  const std::vector<int> y;
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
#ifdef TWIN
  model.fit(data::from_tensor_slices(x, y) | data::batch<32>, epochs(1));
#else
  model.fit(data::from_tensor_slices(x) | data::batch<32>, epochs(1));
#endif
}
