// error: wrong_argument<.*sample_weight.*because<.*sample_weight_takes_a_vector_of_float_with_a_number_for_each_sample>
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
  model.fit(x, y, sample_weight(0.5));
#endif
}
