// multi_worker_tensor_parallel: layers of one network divided among the workers of a cluster. Needs gRPC.
// needs: grpc protozero
#pragma once
#include <strata/distribute/multi_worker_mesh.hpp>

namespace strata {

/// `multi_worker_tensor_parallel<tf_config, 2, layout_map<rule<"dense*", by_columns>>>{}`: tensor_parallel whose ranks are the
/// workers of a cluster. Throws as multi_worker_mesh does.
template <class Resolver, int Ranks, class Map = detail::nothing, class Backend = default_backend>
using multi_worker_tensor_parallel = multi_worker_mesh<Resolver, data_parallel<1>, tensor_parallel<Ranks, Map, Backend>>;

}  // namespace strata
