// error: wrong_argument<.*printer.*because<.*the_hooks_of_a_callback_take_a_training_state>
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
struct printer {
#ifdef TWIN
  void on_epoch_end(training_state&) {}
#else
  void on_epoch_end(int) {}
#endif
};
void train(source<shape{8, 8, 1}, label_kind::sparse>& data) {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
  model.fit(data, printer{});
}
