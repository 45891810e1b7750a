// error: reduction_is_missing_between<strata::leaf_gradients<float, strata::host_device>, .*global_gradient<float, strata::host_device>
#include <strata/cpu/engine/weight_update.hpp>
#include <strata/optimizers/sgd.hpp>

using namespace strata;
/// A piece of the gradient is updated as soon as the backward has it.
void on_piece(const weight_update<float, sgd>& update, const sgd_rule<float>& rule, float* const* array, long begin, long end) {
  const leaf_gradients<float, host_device> piece{array, 1, 0, 1, 1};
#ifdef TWIN
  update.apply(rule, whole_batch_reduction::reduce(piece, 1), begin, end);
#else
  update.apply(rule, piece, begin, end);
#endif
}
