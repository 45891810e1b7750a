// error: shape_mismatch<.*at_index<1>.*by_layer<.*layer_of_mine>.*because<.*operations_have_a_name>
#include <strata/layers/dense.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
struct operation_of_mine {
#ifdef TWIN
  static constexpr auto name = "operation_of_mine";
#endif
  static constexpr expected_shape output_shape(shape in) { return in; }
};
struct layer_of_mine {
  static constexpr auto name = "layer_of_mine";
  using operations = type_list<operation_of_mine>;
};
using net = sequential<input<8>, layer_of_mine, dense<4>>;
net n;
