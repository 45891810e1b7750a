// error: (is private within this context|calling a private constructor).*reduced_gradient
#include <strata/optimizers/sgd.hpp>
#include <tools/reduced.hpp>

using namespace strata;
void step(const sgd_rule<float>& rule, float& w, local_gradient<float> sum) {
#ifdef TWIN
  rule(w, reduced(sum, 64));
#else
  rule(w, reduced_gradient<float>{sum.sum / 64});
#endif
}
