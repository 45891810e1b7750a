// error: data_mismatch<.*because<.*data_of_another_shape_get_it_from_data_array_or_data_map_to>
// whole program
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<4, 4, 1>, flatten, dense<10, softmax>>;
void train() {
#ifdef TWIN
  const data::array<float, shape{4, 4, 1}> x;
#else
  const data::array<float, shape{4, 4}> x;
#endif
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
  model.predict(data::from_tensor_slices(x) | data::batch<32>);
}
