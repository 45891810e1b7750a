// error: shape_mismatch<.*at_index<2>.*by_layer<.*calibration>.*because<.*operations_have_parameters_in_a_std_array>
#include <array>
#include <strata/strata.hpp>

using namespace strata;

struct calibration {
  static constexpr auto name = "calibration";
  static constexpr expected_shape output_shape(shape in) { return in; }
#ifdef TWIN
  static constexpr std::array<parameter, 1> parameters(shape in) { return {{{"gain", {in.last()}, &info_of_initializer<ones>}}}; }
#else
  static constexpr parameter parameters(shape in) { return {"gain", {in.last()}, &info_of_initializer<ones>}; }
#endif
};
using net = sequential<input<3>, dense<2>, calibration, dense<1>>;
constexpr long size = layout_of<net::items>.size;
