// error: wrong_argument<.*class_weight.*because<.*sample_weight_and_class_weight_exclude_each_other>
// whole program
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<8>, dense<10, softmax>>;
void train() {
  const std::vector<float> x(80), w(10);
  const std::vector<int> y(10);
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
#ifdef TWIN
  model.fit(x, y, class_weight{{0, 2.0}});
#else
  model.fit(x, y, sample_weight(w), class_weight{{0, 2.0}});
#endif
}
