// error: the rule of an optimizer is called with .V. weight, reduced_gradient<V>
#include <strata/cpu/update.hpp>

using namespace strata;
struct careless {
  static constexpr int slots = 0;
  template <class V>
#ifdef TWIN
  void operator()(V& w, reduced_gradient<V> g) const { w -= g.value(); }
#else
  void operator()(V& w, local_gradient<V> g) const { w -= g.sum; }
#endif
};
void step(float* w, const float* const* leaves) { update_slice(careless{}, w, nullptr, leaves, 1, 1.f, {}, 0, 16); }
