// multi_worker_tensor_parallel: layers of one network divided among the workers of a cluster. Needs OpenSSL and protozero.
// needs: openssl protozero
#pragma once
#include <strata/resolvers/any_resolver.hpp>  // first: its diagnostic then has few lines

#include <strata/distribute/workers.hpp>
#include <strata/network/layout_map.hpp>
#include <strata/synchronous/tensor_ranks.hpp>

namespace strata {

/// `multi_worker_tensor_parallel<2, layout_map<rule<"dense*", by_columns>>>{tf_config()}`: tensor_parallel, each rank of which is
/// a worker. See workers.
template <int Ranks, class Map, class Backend = core::default_backend>
using multi_worker_tensor_parallel = workers<core::tensor_ranks<1, Ranks, Map, Backend>>;

}  // namespace strata
