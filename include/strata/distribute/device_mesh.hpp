// device_mesh: groups of ranks. Groups divide batches, the ranks of a group divide layers.
#pragma once
#include <strata/base/meta.hpp>
#include <strata/base/reason.hpp>
#include <strata/distribute/in_threads.hpp>
#include <strata/distribute/pipeline.hpp>
#include <strata/distribute/tensor_parallel.hpp>
#include <strata/network/layout_map.hpp>
#include <strata/synchronous/pipelines.hpp>
#include <strata/synchronous/tensor_ranks.hpp>
#include <type_traits>

namespace strata {

/// So many groups, which divide each batch by leaves.
template <int Groups>
struct data_parallel {};

namespace reasons {
inline constexpr reason a_mesh_has_data_parallel_and_then_pipeline_or_tensor_parallel_or_both_in_this_order{
    "a mesh has data_parallel, then pipeline or tensor_parallel, or first the one and then the other, in angle brackets: "
    "device_mesh<data_parallel<2>, pipeline<balanced<2>>, tensor_parallel<2, layout_map<rule<\"dense*\", by_columns>>>>{}"};
inline constexpr reason the_pipeline_and_the_tensor_parallel_of_a_mesh_have_the_same_backend;
}  // namespace reasons

namespace detail {
/// The division of a mesh whose parts are wrong: a trainer emits Sentence for any program.
template <class Sentence>
struct refused_division : tensor_ranks<1, 1, layout_map<>, default_backend> {
  template <class>
  struct verdict {
    using type = Sentence;
  };
};
/// `type` is the division of a mesh.
template <class... Parts>
struct mesh_of {
  using type = refused_division<
      wrong_argument<type_list<Parts...>,
                     because<reasons::a_mesh_has_data_parallel_and_then_pipeline_or_tensor_parallel_or_both_in_this_order>>>;
};
template <int Groups, class Split, class Backend>
struct mesh_of<data_parallel<Groups>, in_threads<pipelines<1, Split, Backend>>> {
  using type = pipelines<Groups, Split, Backend>;
};
template <int Groups, int Ranks, class Map, class Backend>
struct mesh_of<data_parallel<Groups>, in_threads<tensor_ranks<1, Ranks, Map, Backend>>> {
  using type = tensor_ranks<Groups, Ranks, Map, Backend>;
};
template <int Groups, class Split, class OfPipeline, int Ranks, class Map, class Backend>
struct mesh_of<data_parallel<Groups>, in_threads<pipelines<1, Split, OfPipeline>>,
               in_threads<tensor_ranks<1, Ranks, Map, Backend>>> {
  using type = std::conditional_t<
      std::is_same_v<OfPipeline, Backend>, tensor_ranks<Groups, Ranks, Map, Backend, Split>,
      refused_division<wrong_argument<type_list<OfPipeline, Backend>,
                                      because<reasons::the_pipeline_and_the_tensor_parallel_of_a_mesh_have_the_same_backend>>>>;
};
}  // namespace detail

/// `device_mesh<data_parallel<2>, tensor_parallel<2, layout_map<rule<"dense*", by_columns>>>>{}`: two groups of two ranks, each a
/// thread. Each group computes its leaves of a batch as tensor_parallel does, and gradients are added in the tree of one device.
/// So the results are those of tensor_parallel with as many leaves, bit for bit, for any number of groups.
/// `device_mesh<data_parallel<2>, pipeline<balanced<4>, micro_batches<8>>>{}`: two pipelines of four places, each a thread. With
/// fewer leaves than groups some groups have nothing to do. The results are those of one_device with as many leaves, bit for bit.
/// `device_mesh<data_parallel<2>, pipeline<balanced<2>>, tensor_parallel<2, layout_map<...>>>{}`: two groups of two ranks, each
/// of which computes its part of the layers in two stages; each of the eight places is a thread. Cuts are balanced by the work of
/// a rank. What a stage sends another goes from rank to the same rank; what ranks send each other, to the same place.
/// https://keras.io/api/distribution/layout_map
template <class... Parts>
using device_mesh = core::in_threads<typename detail::mesh_of<Parts...>::type>;

}  // namespace strata
