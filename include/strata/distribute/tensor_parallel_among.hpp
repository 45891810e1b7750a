// tensor_parallel_among: layers of one network divided among several processes.
#pragma once
#include <strata/distribute/among.hpp>
#include <strata/distribute/tensor_parallel.hpp>

namespace strata {

/// `tensor_parallel_among<C, 2, layout_map<rule<"dense*", by_columns>>>{processes}`: tensor_parallel, where each rank is a
/// process. See among.
template <class C, int Ranks, class Map, class Backend = core::default_backend>
using tensor_parallel_among = core::among<core::tensor_ranks<1, Ranks, Map, Backend>, C>;

}  // namespace strata
