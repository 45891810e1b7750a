// error: no matching function.*clip_by_value.*local_gradient
#include <strata/optimizers/clipping.hpp>

using namespace strata;
float clip(local_gradient<float> sum) {
#ifdef TWIN
  return clip_by_value(reduction::mean(sum, 1.f / 64), 1.f).value();
#else
  return clip_by_value(sum, 1.f).value();
#endif
}
