// error: prediction_mismatch<.*the_network_ends_with<.*dense<10.*the_loss_is<.*sparse_categorical_crossentropy.*because<.*applies_the_activation_again_leave_out_either_or_allow_it_by_activation_linear>
// whole program
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<28, 28, 1>, flatten, dense<10, softmax>>;
void train() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy<from_logits>{}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
