// error: the rule of an optimizer is called with .V. weight, reduced_gradient<V>
#include <strata/cpu/engine/rule_loops.hpp>
#include <tools/reduced.hpp>

using namespace strata;
struct careless {
  static constexpr int slots = 0;
  template <class V>
#ifdef TWIN
  void operator()(V& w, reduced_gradient<V> g) const {
    w -= g.value();
  }
#else
  void operator()(V& w, local_gradient<V> g) const {
    w -= g.sum;
  }
#endif
};
void step(float* w, float* const* leaves) { update_slice(careless{}, w, nullptr, reduced(leaves, 1, 64), {}, 0, 16); }
