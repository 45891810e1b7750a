// error: shape_mismatch<.*at_index<2>.*by_layer<.*conv2d_transpose<8, 3.*receives<784>.*because<.*conv2d_transpose_takes_height_width_channels>
// whole program
#include <strata/strata.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<16>, dense<784, relu>, reshape<7, 7, 16>, conv2d_transpose<8, 3, stride<2>, same_padding>, flatten,
                       dense<16>>;
#else
using net = sequential<input<16>, dense<784, relu>, conv2d_transpose<8, 3, stride<2>, same_padding>, flatten, dense<16>>;
#endif
void train() {
  const std::vector<float> x(64 * 16);
  const data::array<float, shape{16}> rows(x);
  trainer model{net{}, adam{}, mean_squared_error{}};
  model.fit(data::from_tensor_slices(rows, rows) | data::batch<32>, epochs(1));
}
