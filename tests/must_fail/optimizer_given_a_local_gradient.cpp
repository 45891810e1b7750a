// error: (no match|no matching).*(local_gradient<float>.*reduced_gradient<V>|reduced_gradient.* against .local_gradient)
#include <strata/optimizers/adam.hpp>
#include <tools/reduced.hpp>

using namespace strata;
void step(const adam_rule<float>& rule, float& w, local_gradient<float> sum, float& m, float& v) {
#ifdef TWIN
  rule(w, reduced(sum, 64), m, v);
#else
  rule(w, sum, m, v);
#endif
}
