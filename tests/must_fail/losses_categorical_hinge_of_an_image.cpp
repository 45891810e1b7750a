// error: shape_mismatch<.*by_layer<.*categorical_hinge.*because<.*the_loss_takes_a_rank_1_shape_put_flatten_before_it>
#include <strata/layers/dense.hpp>
#include <strata/losses/categorical_hinge.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<4>, categorical_hinge>;
#else
using net = sequential<input<2, 2>, categorical_hinge>;
#endif
net n;
