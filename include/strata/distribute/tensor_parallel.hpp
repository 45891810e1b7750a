// tensor_parallel: layers of one network divided among several threads.
#pragma once
#include <strata/distribute/in_threads.hpp>
#include <strata/network/layout_map.hpp>
#include <strata/synchronous/tensor_ranks.hpp>

namespace strata {

/// `tensor_parallel<2, layout_map<rule<"dense*", by_columns>>>{}`: each of two ranks has a part of the parameters of the layers
/// that the rules name, with their gradients and optimizer slots, and computes what follows from them; all other layers are
/// computed by every rank. A rank is a thread. compute_options::threads is not used. Where dense layers are by_columns the
/// results are those of one_device with as many leaves, bit for bit (by_columns names the exception); otherwise sums are added in
/// an order that depends on the number of ranks, and on nothing else. Norms of parameters, as lamb and clipnorm take them, are
/// those of the whole ones. https://keras.io/api/distribution/model_parallel
template <int Ranks, class Map, class Backend = core::default_backend>
using tensor_parallel = core::in_threads<core::tensor_ranks<1, Ranks, Map, Backend>>;

}  // namespace strata
