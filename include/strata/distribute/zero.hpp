// zero: how much of the state of a training each process keeps whole, and of what it keeps only a slice.
#pragma once
#include <strata/base/reason.hpp>
#include <strata/concepts/optimizer.hpp>

namespace strata {

// The words of the sentences. None is ever defined.
template <int Stage, class Why>
struct wrong_stage_of_zero;
template <class Optimizer, class Why>
struct optimizer_does_not_fit_zero;
inline constexpr reason zero_cuts_matrices_of_which_it_needs_whole_rows_and_columns{
    "zero cuts matrices, of which this optimizer needs whole rows and columns"};
inline constexpr reason zero_has_the_stages_0_which_keeps_everything_and_1_which_keeps_the_slots_in_slices{
    "zero has the stages 0, which keeps everything, and 1, which keeps the slots in slices"};

namespace detail {
template <int Stage>
struct stage_verdict {
  using type =
      wrong_stage_of_zero<Stage, because<zero_has_the_stages_0_which_keeps_everything_and_1_which_keeps_the_slots_in_slices>>;
};
template <int Stage>
  requires(Stage == 0 || Stage == 1)
struct stage_verdict<Stage> {
  using type = no_complaint;
};
/// no_complaint, or why what the optimizer keeps cannot be divided among processes.
template <class Optimizer>
struct sliced_optimizer_verdict {
  using type = no_complaint;
};
template <whole_matrix_optimizer Optimizer>
struct sliced_optimizer_verdict<Optimizer> {
  using type = optimizer_does_not_fit_zero<Optimizer, because<zero_cuts_matrices_of_which_it_needs_whole_rows_and_columns>>;
};
}  // namespace detail

/// `multi_worker_mirrored{tf_config(), {}, zero<1>{}}`: each process keeps the optimizer's slots of its slice of the parameters,
/// and updates that slice only; the others send it theirs. The bits are those without it.
///   zero<0>  each process keeps everything: the default
///   zero<1>  slots in slices
/// Rajbhandari et al., "ZeRO: memory optimizations toward training trillion parameter models" (2020),
/// https://arxiv.org/abs/1910.02054
template <int Stage>
struct zero {
  static_assert(sizeof(detail::spoken<typename detail::stage_verdict<Stage>::type>()) > 0, "zero has no such stage");
  static constexpr int stage = Stage;
};

inline constexpr const char* zero_is_not_elastic =
    "zero: a worker that is lost takes its slice of the optimizer's state along, so a training with zero is not elastic: start "
    "it "
    "again from a snapshot, with backup_and_restore";

}  // namespace strata
