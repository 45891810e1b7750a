// The division of a network into stages, in one group of places or in several that divide batches.
#pragma once
#include <cstdint>
#include <strata/base/reason.hpp>
#include <strata/base/text.hpp>
#include <strata/concepts/communicator.hpp>
#include <strata/program/compute_options.hpp>
#include <strata/program/stages/split_backend.hpp>
#include <strata/program/stages/timetable.hpp>
#include <strata/synchronous/synchronous.hpp>
#include <string>
#include <type_traits>
#include <utility>

namespace strata {

template <int Groups>
struct data_parallel;  // distribute/device_mesh.hpp
namespace core {
template <class Program, class Backend, communicator C, int Groups>
class stage_executor;  // synchronous/stage_executor.hpp
}  // namespace core

namespace reasons {
inline constexpr reason data_parallel_has_at_least_one_group;
inline constexpr reason the_ranks_of_a_mesh_compute_on_the_cpu{
    "the ranks of a mesh compute on the CPU: write pipeline in place of gpu_pipeline, or gpu_pipeline without a mesh"};
}  // namespace reasons

namespace core {
/// A division of a network: `Groups` groups, which divide batches by leaves, of the places of Split, each of which computes some
/// stages. `in_threads` is its executor where each place is a thread, `executor` where each is a process.
template <int Groups, class Split, class Backend>
struct pipelines {
  static constexpr auto name = "pipeline";
  static constexpr int groups = Groups;
  static constexpr bool may_regroup = Groups > 1;  // when workers are lost
  static constexpr bool divides_layers = false;    // a process has whole layers
  using split = Split;
  template <class C>
  using backend_among = split_among<Backend, Split, C>;
  template <class Program, class C>
  using executor = stage_executor<Program, backend_among<C>, C, Groups>;
  using backend = split_backend<Backend, Split>;
  template <class Program>
  using in_threads = synchronous_executor<Program, backend>;

  /// How many processes a group has.
  static constexpr int places() { return Split::table.places; }

  template <class Program>
  static in_threads<Program> make_in_threads(typename Program::optimizer optimizer, std::uint64_t seed, compute_options options) {
    if (Groups > 1 && options.threads >= 0) options.threads = Groups;  // of each place; the executor refuses others
    return {std::move(optimizer), seed, options};
  }
  /// groups_now: processes may have been lost.
  template <class Program, class C>
  static executor<Program, C> make(C processes, typename Program::optimizer optimizer, std::uint64_t seed,
                                   const compute_options& options, int groups_now = Groups) {
    return {std::move(optimizer), seed, options, std::move(processes), groups_now};
  }
  /// What must be the same in all processes, in words.
  template <class Program>
  [[gnu::cold]] static std::string text() {
    return detail::text_of({", ", Groups, " groups of", detail::text_of_stages<Split, typename Program::items>()});
  }

  /// no_complaint, or why the program cannot be trained so.
  template <class Program>
  struct verdict {
    static auto sentence() {
      using of_split = typename Split::template verdict<Program>;
      if constexpr (Groups < 1)
        return std::type_identity<
            wrong_argument<data_parallel<Groups>, detail::because<reasons::data_parallel_has_at_least_one_group>>>{};
      else if constexpr (!std::is_same_v<typename engine_options<Backend>::type, compute_options>)
        return std::type_identity<wrong_argument<Backend, detail::because<reasons::the_ranks_of_a_mesh_compute_on_the_cpu>>>{};
      else if constexpr (!std::is_same_v<typename of_split::type, detail::no_complaint>)
        return of_split{};
      else
        return detail::backend_verdict<Program, backend>{};
    }
    using type = typename decltype(sentence())::type;
  };

  /// What print_plan prints where processes may be lost.
  template <class Program>
  struct printed {
    using backend = backend_among<detail::alone>;
  };
};
}  // namespace core

}  // namespace strata
