// The diagnostic about a state of a training that cannot be divided among processes as zero requires.
#pragma once
#include <strata/base/reason.hpp>
#include <strata/exchange/zero/zero.hpp>
#include <strata/kernel/segmented.hpp>
#include <strata/program/compiled.hpp>
#include <type_traits>

namespace strata::detail {

/// no_complaint, or the reason why the state of a training cannot be divided as Sharding requires.
template <class Program, class Backend, class Sharding>
struct sharding_verdict {
  static constexpr const auto& plan = plan_of<Program, Backend>;
  using of_network = std::conditional_t<
      Sharding::stage >= 2 && plan.needs_whole_leaf() && !plan.is_cut,
      network_does_not_fit_zero<typename Program::network,
                                because<reasons::stages_2_and_3_compute_by_segments_which_batch_norm_does_not_allow_use_zero_1>>,
      no_complaint>;
  using of_optimizer = typename sliced_optimizer_verdict<typename Program::optimizer>::type;
  using type = std::conditional_t<std::is_same_v<of_network, no_complaint>, of_optimizer, of_network>;
};
template <class Program, class Backend>
struct sharding_verdict<Program, Backend, zero<0>> {
  using type = no_complaint;
};
template <class Program, bounds_activations Budget, long LeastElements, class Sharding>
struct sharding_verdict<Program, segmented<Budget, LeastElements>, Sharding> {
  using type = wrong_argument<Budget, because<reasons::zero_2_and_zero_3_keep_the_activations_of_all_samples_leave_out_fits_in>>;
};

}  // namespace strata::detail
