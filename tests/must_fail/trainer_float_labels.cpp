// error: data_mismatch<.*the_loss_takes_labels<.*because<.*class_numbers_are_integers_make_the_labels_a_vector_of_int>
// whole program
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<8>, dense<10, softmax>>;
void train() {
  const data::array<float, shape{8}> x;
  const std::vector<float> y;
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
#ifdef TWIN
  model.fit(data::from_tensor_slices(x, std::vector<int>()) | data::batch<32>, epochs(1));
#else
  model.fit(data::from_tensor_slices(x, y) | data::batch<32>, epochs(1));
#endif
}
