// error: reduction_is_missing_between<strata::leaf_gradients<float, strata::host_device>, .*global_gradient<float, strata::host_device>
#include <strata/cpu/engine/update.hpp>
#include <strata/distribute/parameter_server/batch_gradient.hpp>
#include <strata/distribute/parameter_server/stored_shard.hpp>
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<4>, dense<2, softmax>>;
using worker = batch_gradient<program<net, sparse_categorical_crossentropy<>, sgd, type_list<>>, cpu>;
void push(worker& computation, const samples<float>& batch, float* to, const weight_update<float, sgd>& update) {
  const auto gradients = computation.compute(philox{1}, batch, 0, to);
#ifdef TWIN
  update.apply(sgd_rule<float>{0.1f}, detail::pushed_sums::reduce(gradients.arrays, batch.count), 0, 16);
#else
  update.apply(sgd_rule<float>{0.1f}, gradients, 0, 16);
#endif
}
