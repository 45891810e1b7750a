// error: shape_mismatch<.*by_layer<.*cosine_similarity.*because<.*the_loss_takes_a_rank_1_shape_put_flatten_before_it>
#include <strata/layers/dense.hpp>
#include <strata/losses/cosine_similarity.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<4>, cosine_similarity>;
#else
using net = sequential<input<2, 2>, cosine_similarity>;
#endif
net n;
