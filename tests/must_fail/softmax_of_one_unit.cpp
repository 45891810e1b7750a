// error: prediction_mismatch<.*the_network_ends_with<.*dense<1, .*the_loss_is<.*mean_squared_error.*because<.*softmax_of_one_unit_is_always_1_use_sigmoid_or_allow_it_by_activation_linear>
// whole program
#include <strata/strata.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<8>, dense<1, sigmoid>>;
#else
using net = sequential<input<8>, dense<1, softmax>>;
#endif
void train() {
  const data::array<float, shape{8}> x;
  const data::array<float, shape{1}> y;
  trainer model{net{}, adam{}, mean_squared_error{}};
  model.fit(data::from_tensor_slices(x, y) | data::batch<32>, epochs(1));
}
