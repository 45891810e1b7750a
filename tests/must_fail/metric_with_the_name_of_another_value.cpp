// error: wrong_argument<.*my_loss.*because<.*a_metric_has_a_name_that_is_not_epoch_batch_learning_rate
// whole program
#include <strata/strata.hpp>

using namespace strata;
struct my_loss : accuracy {
#ifdef TWIN
  static constexpr auto name = "loss";
#else
  static constexpr auto name = "val_loss";
#endif
};
void train() {
  trainer model{sequential<input<28, 28, 1>, flatten, dense<10, softmax>>{}, adam{}, sparse_categorical_crossentropy{},
                my_loss{}};
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
