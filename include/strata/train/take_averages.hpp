// take_averages: the moving average that the optimizer ema keeps becomes the weights.
#pragma once
#include <algorithm>
#include <cstddef>
#include <strata/base/error.hpp>
#include <strata/optimizers/ema.hpp>
#include <strata/program/executor.hpp>
#include <strata/train/model_view.hpp>
#include <string_view>

namespace strata {

namespace detail {
/// The average is the last slot.
inline void copy_averages(const model_view& model) {
  if (!model.optimizer || !std::string_view(model.optimizer->name).starts_with("ema_"))
    throw_error("take_averages: the optimizer keeps no averages in this process: write ema{adam{}}, without parameter servers");
  const optimizer_view& from = *model.optimizer;
  if (from.step == 0) throw_error("take_averages: there is no average before the first update");
  for (const parameter_slot& s : model.slots)
    if (s.what.trainable) std::ranges::copy(model.bytes_of(s, from.slots - 1), model.bytes_of(s).begin());
}
}  // namespace detail

/// Replaces the weights of a trainer with the optimizer ema{...} by their moving averages. A collective call of all processes.
/// Untrained state, such as moving statistics of batch_norm, stays. Throws strata_error before the first update.
template <class Trainer>
void take_averages(Trainer& model) {
  using program = typename Trainer::program_type;
  constexpr bool has_averages = core::traits_of_optimizer<typename program::optimizer>.averages_weights;
  static_assert(has_averages, "take_averages: the optimizer keeps no averages: write ema{adam{}} instead of adam{}");
  auto& executor = model.executor();
  constexpr auto traits = Trainer::executor_type::traits;
  static_assert(traits.has_slots || traits.collects_slots,
                "take_averages: parameter servers keep the averages, and do not send them");
  detail::copy_averages(detail::view_of_training<program>(executor, true));
  executor.parameters_changed();
}

}  // namespace strata
