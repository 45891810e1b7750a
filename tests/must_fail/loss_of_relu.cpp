// error: prediction_mismatch<.*the_network_ends_with<.*dense<1, .*the_loss_is<.*binary_crossentropy.*because<.*end_with_sigmoid_or_write_from_logits_or_allow_it_by_activation_linear>
// whole program
#include <strata/strata.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<8>, dense<1, sigmoid>>;
#else
using net = sequential<input<8>, dense<1, relu>>;
#endif
void train() {
  const data::array<float, shape{8}> x;
  const data::array<float, shape{1}> y;
  trainer model{net{}, adam{}, binary_crossentropy{}};
  model.fit(data::from_tensor_slices(x, y) | data::batch<32>, epochs(1));
}
