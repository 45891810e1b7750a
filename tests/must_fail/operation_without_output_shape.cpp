// error: shape_mismatch<.*at_index<1>.*by_layer<.*operation_of_mine>.*because<.*layers_have_operations_and_operations_have_output_shape>
#include <strata/layers/dense.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
struct operation_of_mine {
  static constexpr auto name = "operation_of_mine";
#ifdef TWIN
  static constexpr expected_shape output_shape(shape in) { return in; }
#endif
};
using net = sequential<input<8>, operation_of_mine, dense<4>>;
net n;
