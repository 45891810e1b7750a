// tensor_parallel_among: layers of one network divided among several processes.
#pragma once
#include <strata/distribute/mesh.hpp>

namespace strata {

/// `tensor_parallel_among<C, 2, layout_map<rule<"dense*", by_columns>>>{processes}`: tensor_parallel, where each rank is a
/// process, on this or other machines. C is any communicator; each process passes its own end, and all read the same batches and
/// make the same calls, also of evaluate and predict. A process has all parameters between two epochs, and a part of them within
/// one. The trainer's constructor throws strata::error if there are not as many processes as ranks, or if they have different
/// programs or rules.
template <class C, int Ranks, class Map = detail::nothing, class Backend = default_backend>
using tensor_parallel_among = mesh_among<C, data_parallel<1>, tensor_parallel<Ranks, Map, Backend>>;

}  // namespace strata
