// error: wrong_argument<.*sample_weight.*because<.*sample_weight_goes_with_arrays_x_and_y>
// whole program
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<8>, dense<10, softmax>>;
void train() {
  const std::vector<float> x(80), w(10);
  const std::vector<int> y(10);
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
#ifdef TWIN
  model.fit(x, y, sample_weight(w));
#else
  model.fit(data::from_tensor_slices(data::array<float, shape{8}>(x), y) | data::batch(5), sample_weight(w));
#endif
}
