// error: shape_mismatch<.*by_layer<.*kl_divergence.*because<.*the_loss_takes_a_rank_1_shape_put_flatten_before_it>
#include <strata/layers/dense.hpp>
#include <strata/losses/kl_divergence.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<4>, kl_divergence>;
#else
using net = sequential<input<2, 2>, kl_divergence>;
#endif
net n;
