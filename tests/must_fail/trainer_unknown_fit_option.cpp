// error: wrong_argument<.*int.*because<.*fit_takes_options_and_callbacks>
#include <strata/strata.hpp>

using namespace strata;

template <shape Sample, label_kind Labels, shape Target = shape{}>
struct source {
  static constexpr int batch_size = 8;
  static constexpr shape sample_shape = Sample, target_shape = Target;
  static constexpr label_kind labels = Labels;
  using value_type = samples<float>;
  value_type* begin() { return nullptr; }
  value_type* end() { return nullptr; }
};
using net = sequential<input<8, 8, 1>, flatten, dense<10, softmax>>;
#ifdef TWIN
using option = epochs;
#else
using option = int;
#endif
void train(source<shape{8, 8, 1}, label_kind::sparse>& data) {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
  model.fit(data, option(5));
}
