// error: wrong_argument<.*double.*because<.*a_trainer_takes_metrics_a_strategy_a_precision_and_a_seed>
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
using extra = accuracy;
#else
using extra = double;
#endif
void train(source<shape{8, 8, 1}, label_kind::sparse>& data) {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, extra{}};
  model.fit(data);
}
