// XLA.

// case: xla_missing_emission
// error: missing_emission<.*at_node<2>.*by_layer<.*dense<4, .*twice>.*for_operation<.*twice
// whole program
#include <strata/strata.hpp>
#include <strata/xla/xla.hpp>

using namespace strata;
using namespace strata::core;

/// It has no functions of one element, which could be traced.
struct twice {
  using is_activation = void;
  static constexpr auto name = "twice";
  static constexpr expected_shape output_shape(shape in) { return in; }
};
#ifdef TWIN
using activation_of_mine = relu;
#else
using activation_of_mine = twice;
#endif
using net = sequential<input<8>, dense<4, activation_of_mine>, dense<1>>;
void train() {
  const data::array<float, shape{8}> x;
  const data::array<float, shape{1}> y;
  trainer model{net{}, adam{}, mean_squared_error{}, xla{}};
  model.fit(data::from_tensor_slices(x, y) | data::batch<32>, epochs(1));
}
