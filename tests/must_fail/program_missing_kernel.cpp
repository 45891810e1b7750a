// error: missing_kernel<.*at_node<2>.*by_layer<.*dense<4, .*twice>.*for_operation<.*twice>.*on_backend<.*cpu
#include <strata/strata.hpp>

using namespace strata;

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
using whole = program<net, mean_squared_error, adam, type_list<>>;
detail::compiled<whole, cpu> check;
