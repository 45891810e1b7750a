// error: data_mismatch<.*the_network_predicts<10>.*the_targets_have<7>.*because<
// whole program
#include <strata/strata.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<8>, dense<7>>;
#else
using net = sequential<input<8>, dense<10>>;
#endif
void train() {
  const data::array<float, shape{8}> x;
  const data::array<float, shape{7}> y;
  trainer model{net{}, adam{}, mean_squared_error{}};
  model.fit(data::from_tensor_slices(x, y) | data::batch<32>, epochs(1));
}
