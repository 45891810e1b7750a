// error: missing_kernel<.*by_layer<.*calibration>.*because<.*a_kernel_has_static_forward_and_backward_of_const_operands
// whole program
#include <strata/strata.hpp>

using namespace strata;

struct calibration {
  static constexpr auto name = "calibration";
  static constexpr expected_shape output_shape(shape in) { return in; }
};
template <class P, shape In>
struct strata::kernel<reference, calibration, P, In> : strata::kernel_defaults {
  using T = typename P::value_type;
  static void forward(const operands<T>& o) {
    for (int i = 0; i < o.count * In.size(); ++i) o.y[i] = o.x[0][i];
  }
#ifdef TWIN
  static void backward(const operands<T>& o) {
    for (int i = 0; o.dx[0] && i < o.count * In.size(); ++i) o.dx[0][i] = o.dy[i];
  }
#endif
};
void train() {
  trainer model{sequential<input<3>, dense<2>, calibration, dense<1>>{}, adam{}, mean_squared_error{}};
  const std::vector<float> x(300), y(100);
  model.fit(x, y, epochs(1));
}
