// error: no matching function.*clip_by_value.*local_gradient
#include <strata/optimizers/clipping.hpp>
#include <tools/reduced.hpp>

using namespace strata;
float clip(local_gradient<float> sum) {
#ifdef TWIN
  return clip_by_value(reduced(sum, 64), 1.f).value();
#else
  return clip_by_value(sum, 1.f).value();
#endif
}
