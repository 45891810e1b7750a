// error: prediction_mismatch<.*the_network_ends_with<.*dense<10.*the_loss_is<.*sparse_categorical_crossentropy.*because<.*end_with_softmax_or_write_from_logits_or_allow_it_by_activation_linear>
// whole program
#include <strata/strata.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<28, 28, 1>, flatten, dense<10>, activation<linear>>;
#else
using net = sequential<input<28, 28, 1>, flatten, dense<10>, dropout<0.1_r>>;
#endif
void train() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
