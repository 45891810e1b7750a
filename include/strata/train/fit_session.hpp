// The training_session of a trainer's fit.
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <strata/base/error.hpp>
#include <strata/base/precision.hpp>
#include <strata/base/shape_text.hpp>
#include <strata/base/text.hpp>
#include <strata/network/layer_names.hpp>
#include <strata/program/executor.hpp>
#include <strata/program/program_text.hpp>
#include <strata/train/agreement.hpp>
#include <strata/train/any_executor.hpp>
#include <strata/train/batch_stream.hpp>
#include <strata/train/fitted_model.hpp>
#include <strata/train/hook_calls.hpp>
#include <strata/train/loss_weights.hpp>
#include <strata/train/training_session.hpp>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace strata {

namespace detail {
template <class Executor>
auto all_slots(Executor& executor) {
  if constexpr (Executor::traits.has_slots)
    return executor.slots();
  else if constexpr (Executor::traits.collects_slots)
    return executor.whole_slots();
}
}  // namespace detail

namespace core {
/// An executor whose state is complete in this process, so that a training can be saved and resumed.
///   `slots()`                  the state of the optimizer: one array of the layout's trainable size per slot; or, if it is
///                              sharded, `whole_slots()` after `collect_slots()`, see synchronous_executor
///   `set_step(step)`           the number of updates that the parameters have seen
///   `seed()`                   of the random numbers of a step
///   `drop_rounding_errors()`   see resumable_fit
template <class E, class Program>
concept resumable_executor = executor<E, Program> && requires(E e, const E& k) {
  { detail::all_slots(e) } -> std::same_as<std::span<typename Program::value_type>>;
  e.set_step(0L);
  { k.learning_rate_by_hand() } -> std::same_as<std::optional<double>>;
  { k.seed() } -> std::convertible_to<std::uint64_t>;
  e.drop_rounding_errors();
};
}  // namespace core

namespace detail {

/// The settings, besides the data set, that must be equal in a training and the one that continues it.
template <class Program>
std::vector<std::string> description_of(std::uint64_t seed, long slots) {
  using network = typename Program::network;
  using policy = typename Program::precision;
  using T = typename Program::value_type;
  const auto name_of_precision = [] {
    if constexpr (std::same_as<policy, precision::mixed_bf16>)
      return std::string("mixed_bf16");
    else if constexpr (std::same_as<policy, precision::tf32>)
      return std::string("tf32");
    else
      return detail::text_of(
          {text_of({"f", 8 * sizeof(T)}),
           std::same_as<policy, precision::f32> || std::same_as<policy, precision::f64> ? "" : " by another policy"});
  };
  std::vector<std::string> lines{text_of({"optimizer ", Program::optimizer::name, " with ", slots, " slots"}),
                                 text_of({"precision ", name_of_precision()})};
  const auto add_output = [&]<class Loss, class... M>(compared_output<Loss, type_list<M...>>) {
    if constexpr (requires { std::string(Loss::name); })
      lines.push_back(text_of({"loss ", Loss::name}));
    else
      lines.push_back("loss without a name");
    (lines.push_back(text_of({"metric ", text_with_settings(M::name, numbers_of<M>)})), ...);
  };
  [&]<class... Output>(type_list<Output...>) { (add_output(Output{}), ...); }(typename Program::outputs{});
  lines.push_back(text_of({"seed ", seed}));
  const std::vector<std::string> names = parameter_names_of<network>();
  for (std::size_t i = 0; i < names.size(); ++i)
    lines.push_back(text_of({"parameter ", names[i], ' ', shape_text(slots_of<network>()[i].what.extents)}));
  return lines;
}

template <class Program, class Executor>
class fit_in_program final : public resumable_fit {
  using network = typename Program::network;
  using T = typename Program::value_type;
  static_assert(resumable_executor<Executor, Program>, "the executor of this strategy cannot be interrupted and resumed");

  Executor& executor_;
  batch_stream<T>& stream_;
  training_position& at_;
  training_state& state_;
  const plan_of_fit& plan_;
  std::string frozen_;  // trainable_layers::text
  const hook_list& hooks_;
  loss_weights<Program>& factors_;
  mutable std::string order_;  // description of the order of the stream, computed on first use: its checksum reads samples

 public:
  fit_in_program(Executor& executor, batch_stream<T>& stream, training_position& at, training_state& state,
                 const plan_of_fit& plan, std::string frozen, const hook_list& hooks, loss_weights<Program>& factors)
      : executor_(executor),
        stream_(stream),
        at_(at),
        state_(state),
        plan_(plan),
        frozen_(std::move(frozen)),
        hooks_(hooks),
        factors_(factors) {}

  std::vector<std::string> description() const override {
    std::vector<std::string> lines = description_of<Program>(executor_.seed(), slot_count());
    if (order_.empty()) order_ = stream_.order();
    lines.push_back(detail::text_of({"data set ", order_, frozen_}));
    hooks_.describe(lines);
    return lines;
  }
  std::string plan() const override { return to_string(plan_); }
  std::size_t element_size() const override { return sizeof(T); }

  std::vector<array> arrays() override {
    std::vector<array> out;
    const auto add = [&](const std::string& prefix, std::span<T> arena, bool only_trained) {
      for (named_array& a : arrays_of<network>(arena, only_trained ? trained() : long(arena.size()))) {
        a.name = prefix + a.name;
        out.push_back(std::move(a));
      }
    };
    add("", executor_.parameters(), false);
    for (long k = 0; k < slot_count(); ++k)
      add(detail::text_of({"optimizer/", k, '/'}),
          detail::all_slots(executor_).subspan(std::size_t(k * trained()), std::size_t(trained())), true);
    hooks_.add_arrays(out);
    return out;
  }

  training_position position() override {
    training_position now = at_;
    now.step = executor_.step();
    now.epoch = state_.epoch + (at_.in_epoch ? 0 : 1);
    if (at_.in_pass) now.data = stream_.where();
    now.learning_rate = executor_.learning_rate_by_hand();
    now.new_learning_rate = state_.new_learning_rate;
    if constexpr (graph_program<Program>) now.loss_weights.assign(factors_.of_output.begin(), factors_.of_output.end());
    now.stop_training = state_.stop_training;
    now.callbacks = hooks_.state();
    return now;
  }
  void resume_at(const training_position& from) override {
    constexpr std::size_t metrics = reported_metrics<Program>::sums;
    if (from.in_epoch && from.metric_sums.size() != metrics)
      throw_error(
          text_of({"fit: the position has the sums of ", from.metric_sums.size(), " metrics, but this training has ", metrics}));
    if constexpr (graph_program<Program>) factors_.restore(from.loss_weights);
    if (from.in_pass) stream_.resume(from.next_pass - 1, from.data, from.batches_of_pass);
    at_ = from;
    executor_.set_step(from.step);
    executor_.parameters_changed();
    if (from.learning_rate) executor_.set_learning_rate(*from.learning_rate);
    state_.epoch = from.epoch;
    state_.step = from.step;
    state_.learning_rate = executor_.learning_rate();
    state_.new_learning_rate = from.new_learning_rate;
    state_.stop_training = from.stop_training;
    state_.resumed = true;
    hooks_.set_state(from.callbacks);
  }
  void drop_rounding_errors() override { executor_.drop_rounding_errors(); }
  void collect_slices() override {
    if constexpr (Executor::traits.collects_slots) executor_.collect_slots();
  }

 private:
  static constexpr long trained() { return layout_of_program<Program>.trainable; }
  long slot_count() const { return executor_.optimizer().slots(); }
};

}  // namespace detail

}  // namespace strata
