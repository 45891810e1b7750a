// multi_worker_mesh: a mesh of the workers of a cluster. Needs OpenSSL and protozero.
// needs: openssl protozero
#pragma once
#include <strata/resolvers/any_resolver.hpp>  // first: its diagnostic then has few lines

#include <strata/distribute/device_mesh.hpp>
#include <strata/distribute/workers.hpp>

namespace strata {

/// `multi_worker_mesh<data_parallel<2>, tensor_parallel<2, layout_map<...>>>{tf_config()}`: a mesh, each rank of which is a
/// worker. See workers, and device_mesh_among for their order.
template <class... Parts>
using multi_worker_mesh = workers<typename detail::mesh_of<Parts...>::type>;

}  // namespace strata
