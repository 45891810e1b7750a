// error: metric_does_not_go_with_labels<.*categorical_accuracy.*label_kind::sparse
// whole program
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<28, 28, 1>, flatten, dense<10, softmax>>;
void train() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, sparse_categorical_accuracy{}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, categorical_accuracy{}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
  const auto [loss, accuracy] = model.evaluate(data::synthetic_digits(64, 1) | data::batch<32>);
  model.set_learning_rate(loss < accuracy ? 0.1 : 0.2);
}
