// What processes that train together have to agree upon.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <optional>
#include <span>
#include <strata/base/error.hpp>
#include <strata/base/hash.hpp>
#include <strata/base/text.hpp>
#include <strata/train/training_state.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace strata::detail {

/// In numbers, which processes can exchange.
struct plan_of_fit {
  double batch_size = 0, batches = 0;  // of a pass; 0 if nobody knows
  double first_epoch = 0, epochs = 0, steps = 0;
  double learning_rate = 0;
  double order = 0;  // a hash of the text that tells which samples come in which order

  friend bool operator==(const plan_of_fit&, const plan_of_fit&) = default;
};

/// What each process says, a struct of doubles, in the order of their ranks. All have to call it.
template <class Executor, class Numbers>
std::vector<Numbers> gather(Executor& executor, const Numbers& mine) {
  std::vector<Numbers> all{mine};
  if constexpr (requires(std::span<const double> numbers) { executor.gather(numbers); }) {
    using array = std::array<double, sizeof(Numbers) / sizeof(double)>;
    const std::vector<double> numbers = executor.gather(std::bit_cast<array>(mine));
    array one{};
    all.resize(numbers.size() / one.size());
    for (std::size_t r = 0; r < all.size(); ++r) {
      std::copy_n(numbers.begin() + std::ptrdiff_t(r * one.size()), one.size(), one.begin());
      all[r] = std::bit_cast<Numbers>(one);
    }
  }
  return all;
}

/// "batches of 64, 8 in a pass, epochs 0 to 5, steps_per_epoch 0": what somebody who comes late has to have as well.
inline std::string to_string(const plan_of_fit& p) {
  return formatted("batches of %.0f, %.0f in a pass, epochs %.0f to %.0f, steps_per_epoch %.0f", p.batch_size, p.batches,
                   p.first_epoch, p.epochs, p.steps);
}

/// Throws strata::error if process `rank` has another plan than process 0, and says what differs. `order` is that of this
/// process.
inline void refuse_other_plan(const plan_of_fit& first, const plan_of_fit& other, std::size_t rank, std::string_view order) {
  if (first == other) return;
  std::string differences;
  const auto compare = [&](const char* what, double here, double there) {
    if (here != there)
      differences += formatted("%s %s %g there and %g in process 0", differences.empty() ? ":" : ",", what, there, here);
  };
  compare("samples in a batch", first.batch_size, other.batch_size);
  compare("batches in a pass", first.batches, other.batches);
  compare("initial_epoch", first.first_epoch, other.first_epoch);
  compare("epochs", first.epochs, other.epochs);
  compare("steps_per_epoch", first.steps, other.steps);
  compare("learning_rate", first.learning_rate, other.learning_rate);
  if (first.order != other.order)
    differences +=
        (differences.empty() ? ": " : ", ") + ("other samples or another order, which is '" + std::string(order) + "' here");
  throw error("fit: process " + std::to_string(rank) + " does not train as process 0 does" + differences);
}

/// Before the first step: processes that read different batches would wait for each other in vain, or train together what nobody
/// wants. `order` tells which samples come in which order.
template <class Executor>
void refuse_other_plans(Executor& executor, plan_of_fit mine, std::string_view order) {
  if constexpr (requires { executor.is_late(); })
    if (executor.is_late()) return;  // the others are under way: it will be told what they do
  mine.order = double(hash_of(order) >> 12);  // as much as a double holds
  const std::vector<plan_of_fit> all = gather(executor, mine);
  for (std::size_t r = 1; r < all.size(); ++r) refuse_other_plan(all[0], all[r], r, order);
}

/// The same before an evaluation, as far as its length is known.
template <class Executor>
void refuse_other_lengths(Executor& executor, long batches) {
  struct length {
    double batches;
  };
  const std::vector<length> all = gather(executor, length{double(batches)});
  for (std::size_t r = 1; r < all.size(); ++r)
    if (all[r].batches != all[0].batches)
      throw error(formatted("evaluate: process %zu has %.0f batches, but process 0 has %.0f", r, all[r].batches, all[0].batches));
}

/// Behind an epoch: all processes stop if one of them wants to, and go on with the learning rate of the chief.
template <class Executor>
void share_decisions(Executor& executor, training_state& state) {
  struct decisions {
    double stops, sets_rate, rate;
  };
  const std::vector<decisions> all = gather(
      executor,
      decisions{double(state.stop_training), double(state.new_learning_rate.has_value()), state.new_learning_rate.value_or(0)});
  for (const decisions& each : all) state.stop_training = state.stop_training || each.stops != 0;
  if (all.size() > 1) state.new_learning_rate = all[0].sets_rate != 0 ? std::optional(all[0].rate) : std::nullopt;
}

}  // namespace strata::detail
