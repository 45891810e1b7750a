// error: data_mismatch<.*the_network_takes<10>.*the_data_set_yields<7>
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
using data_set = source<shape{8, 8, 1}, label_kind::dense, shape{10}>;
#else
using data_set = source<shape{8, 8, 1}, label_kind::dense, shape{7}>;
#endif
void train(data_set& data) {
  trainer model{net{}, adam{}, categorical_crossentropy{}};
  model.fit(data);
}
