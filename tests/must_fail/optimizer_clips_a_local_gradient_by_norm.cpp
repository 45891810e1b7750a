// error: no matching function.*clip_by_factor.*local_gradient
#include <strata/optimizers/clipping.hpp>
#include <tools/reduced.hpp>

using namespace strata;
float clip(local_gradient<float> sum) {
#ifdef TWIN
  return clip_by_factor(reduced(sum, 64), clipnorm_factor(4., 1.)).value();
#else
  return clip_by_factor(sum, clipnorm_factor(4., 1.)).value();
#endif
}
