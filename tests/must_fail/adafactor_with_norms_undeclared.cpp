// error: an optimizer with a parameterwise_rule or a factored_rule has .bool needs_norms.. const.
#include <strata/cpu/engine/weight_update.hpp>
#include <strata/optimizers/adafactor.hpp>

using namespace strata;
struct careless {
  static constexpr auto name = "careless";
  learning_rate_schedule learning_rate = 1e-3;
  double weight_decay = 0, clipnorm = 0, clipvalue = 0, global_clipnorm = 0;
  int slots() const { return 1; }
#ifdef TWIN
  bool needs_norms() const { return true; }
#endif
  void validate() const {}
  template <class T>
  void with_rule(long, double, auto&& f) const {
    f(adafactor_rule<T>{});
  }
};
void step(const weight_update<float, careless>& update, const adafactor_rule<float>& rule,
          const global_gradient<float, host_device>& gradient) {
  update.run(rule, gradient, [](auto&& f) { f(0, 16); });
}
