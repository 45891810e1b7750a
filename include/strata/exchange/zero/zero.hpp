// zero: the state of a training of which each process keeps only a slice.
#pragma once
#include <strata/base/reason.hpp>
#include <strata/concepts/optimizer.hpp>
#include <strata/kernel/segmented.hpp>
#include <type_traits>

namespace strata {

namespace core {
// The parts of the diagnostics. None is ever defined.
template <int Stage, class Why>
struct wrong_stage_of_zero;
template <class Optimizer, class Why>
struct optimizer_does_not_fit_zero;
}  // namespace core
namespace reasons {
inline constexpr reason zero_cuts_matrices_of_which_it_needs_whole_rows_and_columns{
    "zero divides matrices, but this optimizer needs whole rows and columns"};
inline constexpr reason zero_has_the_stages_1_for_slots_2_for_gradients_too_and_3_for_parameters_too{
    "zero has the stages 1 for slots in slices, 2 for gradients, too, and 3 for parameters, too"};
}  // namespace reasons

namespace detail {
template <int Stage>
struct stage_verdict {
  using type =
      wrong_stage_of_zero<Stage, because<reasons::zero_has_the_stages_1_for_slots_2_for_gradients_too_and_3_for_parameters_too>>;
};
template <int Stage>
  requires(Stage >= 0 && Stage <= 3)
struct stage_verdict<Stage> {
  using type = no_complaint;
};
/// no_complaint, or why what the optimizer keeps cannot be divided among processes.
template <class Optimizer>
struct sliced_optimizer_verdict {
  using type = no_complaint;
};
template <class Optimizer>
  requires(traits_of_optimizer<Optimizer>.needs_whole_matrices)
struct sliced_optimizer_verdict<Optimizer> {
  using type =
      optimizer_does_not_fit_zero<Optimizer, because<reasons::zero_cuts_matrices_of_which_it_needs_whole_rows_and_columns>>;
};
}  // namespace detail

/// `multi_worker_mirrored{tf_config(), {}, zero<1>{}}`: each process keeps the optimizer's slots of its slice of the parameters,
/// and updates that slice only. The bits are those without it.
///   zero<0>  each process keeps everything: the default
///   zero<1>  slots in slices; processes send each other the parameters that they have updated
///   zero<2>  gradients, too: a segment of layers is computed and reduced before the gradients of the next one are, and each
///            process keeps its slices of them. All activations of its samples are kept
///   zero<3>  parameters, too: those of a segment are fetched while another one is computed. Between two epochs each process has
///            all of them
/// Rajbhandari et al., "ZeRO: memory optimizations toward training trillion parameter models" (2020),
/// https://arxiv.org/abs/1910.02054
template <int Stage>
struct zero {
  static_assert(detail::diagnosed<typename detail::stage_verdict<Stage>::type>[0]);
  static constexpr int stage = Stage;
  /// The backend with which an executor computes.
  template <class Backend>
  using backend = std::conditional_t<(Stage > 1), core::segmented<Backend>, Backend>;
};

namespace core {
template <class Network, class Why>
struct network_does_not_fit_zero;
}  // namespace core
namespace reasons {
inline constexpr reason stages_2_and_3_compute_by_segments_which_batch_norm_does_not_allow_use_zero_1{
    "stages 2 and 3 of zero compute by segments of layers, which is impossible with statistics of the whole batch: use zero<1>"};

inline constexpr reason zero_2_and_zero_3_keep_the_activations_of_all_samples_leave_out_fits_in{
    "zero<2> and zero<3> keep the activations of all samples of a process, so fits_in cannot be combined with them"};
}  // namespace reasons

namespace core {
inline constexpr const char* zero_is_not_elastic =
    "zero: a worker that is lost takes its slice of the optimizer's state along, so a training with zero is not elastic: start "
    "it again from a snapshot, with backup_and_restore";
}  // namespace core

}  // namespace strata
