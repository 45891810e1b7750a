// The division of the layers of a network among ranks, in one group or in several that divide batches.
#pragma once
#include <cstdint>
#include <strata/base/text.hpp>
#include <strata/exchange/ranks_of_process.hpp>
#include <strata/program/kernel_list.hpp>
#include <strata/program/stages/split_ranks.hpp>
#include <strata/synchronous/agreed_ranks.hpp>
#include <strata/synchronous/tensor_executor.hpp>
#include <strata/synchronous/tensor_verdicts.hpp>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace strata::core {

/// A division of a network: `Groups` groups, which divide batches by leaves, of `Ranks` ranks, which divide layers as Map says.
/// Split: void, or how the stages of a rank's part follow each other, each in a place of its own. See pipelines for the members.
template <int Groups, int Ranks, class Map, class Backend, class Split = void>
struct tensor_ranks {
  static constexpr auto name = "tensor_parallel";
  static constexpr int groups = Groups, ranks = Ranks;
  static constexpr bool may_regroup = Groups > 1 && std::is_void_v<Split>;  // when workers are lost
  static constexpr bool divides_layers = true;                              // several processes have parts of the same layer
  using split = Split;
  using backend = Backend;
  template <class C>
  using backend_among = Backend;
  template <class C>
  using backend_of_rank = typename detail::backend_of_rank<Backend, Split, C>::type;
  template <class Program>
  using program_of_rank = strata::core::program_of_rank<Program, Map, Ranks>;
  template <class Program, class C>
  using executor = tensor_executor<Program, Map, Ranks, Groups, Backend, detail::one_rank_per_process<C>, Split>;
  template <class Program>
  using in_threads = tensor_executor<Program, Map, Ranks, Groups, Backend, detail::all_ranks_in_one_process, Split>;

  static constexpr int places_of_rank() {
    if constexpr (std::is_void_v<Split>)
      return 1;
    else
      return Split::table.places;
  }
  static constexpr int places() { return Ranks * places_of_rank(); }

  template <class Program>
  static in_threads<Program> make_in_threads(typename Program::optimizer optimizer, std::uint64_t seed,
                                             const compute_options& options) {
    return {std::move(optimizer), seed, options, detail::all_ranks_in_one_process(Groups * Ranks, places_of_rank())};
  }
  template <class Program, class C>
  static executor<Program, C> make(C processes, typename Program::optimizer optimizer, std::uint64_t seed,
                                   const compute_options& options, int groups_now = Groups) {
    auto agreed = detail::agreed_ranks<Program, Map, Ranks, Groups>(std::move(processes), optimizer, seed, options, groups_now,
                                                                    places_of_rank());
    return {std::move(optimizer), seed, options, std::move(agreed)};
  }
  template <class Program>
  [[gnu::cold]] static std::string text() {
    std::string stages;
    if constexpr (!std::is_void_v<Split>)
      stages = " at each of" + detail::text_of_stages<Split, typename program_of_rank<Program>::items>();
    return detail::text_of({", ", Groups, " groups of ", Ranks, " ranks", stages, " that divide ",
                            detail::text_of_divided_layers<Program, Map, Ranks>()});
  }

  template <class Program>
  struct verdict {
    static auto sentence() {
      using of_tensor = detail::tensor_verdict<Program, Map, Ranks, Groups, Backend>;
      if constexpr (std::is_void_v<Split> || !std::is_same_v<typename of_tensor::type, detail::no_complaint>)
        return of_tensor{};
      else
        return typename Split::template verdict<program_of_rank<Program>>{};
    }
    using type = typename decltype(sentence())::type;
  };

  template <class Program>
  struct printed {
    using program_of_one = program_of_rank<Program>;
    using backend = backend_of_rank<detail::alone>;
    static std::vector<listed_kernel> kernels() { return kernel_list<program_of_one, backend>(); }
  };
};

}  // namespace strata::core
