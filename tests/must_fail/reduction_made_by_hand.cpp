// error: error: .*(is private within this context|is protected within this context|calling a (private|protected) constructor|is a (private|protected) member)
#include <strata/concepts/device.hpp>
#include <strata/optimizers/gradient.hpp>

using namespace strata;
auto gradient_of(const leaf_gradients<float, host_device>& leaves, int samples) {
#ifdef TWIN
  return whole_batch_reduction::reduce(leaves, samples);
#else
  return gradient_reduction::reduced<host_device>(leaves.arrays, leaves.count, samples);
#endif
}
