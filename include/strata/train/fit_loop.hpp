// The loop of fit: epochs of steps, with the hooks of callbacks between them.
#pragma once
#include <atomic>
#include <cmath>
#include <functional>
#include <iostream>
#include <optional>
#include <strata/base/error.hpp>
#include <strata/base/stopwatch.hpp>
#include <strata/base/text.hpp>
#include <strata/train/agreement.hpp>
#include <strata/train/any_executor.hpp>
#include <strata/train/any_process_group.hpp>
#include <strata/train/batch_stream.hpp>
#include <strata/train/fit_options.hpp>
#include <strata/train/hook_calls.hpp>
#include <strata/train/progress.hpp>
#include <strata/train/step_runner.hpp>
#include <strata/train/training_position.hpp>
#include <strata/train/training_state.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace strata::detail {

struct fit_settings {
  int first_epoch, epochs, batch_size;
  long steps;  // of an epoch; 0: as many as a pass over the data has
  verbosity how;
  std::string frozen = {};       // trainable_layers::text
  std::string_view notice = {};  // printed once in a program
};

template <class T>
class fit_loop {
  any_executor<T>& executor_;
  step_runner<T>& steps_;
  batch_stream<T>& stream_;
  fit_settings settings_;
  std::vector<metric_sum> sums_;  // of one step

 public:
  // Callbacks see, save and replace these.
  training_position at{};
  training_state state{};
  plan_of_fit plan{};

  fit_loop(any_executor<T>& executor, step_runner<T>& steps, batch_stream<T>& stream, const fit_settings& settings)
      : executor_(executor), steps_(steps), stream_(stream), settings_(settings), sums_(pairs_of(steps.metrics())) {}

  /// `validate` adds its values to those of an epoch.
  history run(const hook_list& hooks, const std::function<void(logs&)>& validate);

 private:
  void give_notice() const;
  /// As many batches as the settings say, or one pass over the data. With steps_per_epoch the pass of the last epoch continues;
  /// an epoch that was interrupted continues in any case.
  void train_epoch(progress_bar& progress, const hook_list& hooks);
  void train_on(const samples<T>& batch);
  void take_new_learning_rate() {
    if (state.new_learning_rate) executor_.set_learning_rate(*std::exchange(state.new_learning_rate, std::nullopt));
  }
  bool begin_pass(samples<T>& batch);
  bool next(samples<T>& batch);
};

template <class T>
[[gnu::cold]] history fit_loop<T>::run(const hook_list& hooks, const std::function<void(logs&)>& validate) {
  const auto refuse_negative = [](const char* option, long value) {
    if (value < 0) throw_error({"fit: ", option, '(', value, "): it must be at least 0"});
  };
  refuse_negative("epochs", settings_.epochs);
  refuse_negative("initial_epoch", settings_.first_epoch);
  refuse_negative("steps_per_epoch", settings_.steps);
  any_process_group& group = executor_.group();
  steps_.time = {};
  const double communicated = executor_.communicating(), waited = executor_.waiting();
  std::optional<stopwatch> all(steps_.time.total);
  if (group.is_chief() && settings_.how != verbosity::off) give_notice();
  progress_bar progress(std::cout, group.is_chief() ? settings_.how : verbosity::off);
  executor_.prepare(settings_.batch_size, purpose::training);
  plan = {.batch_size = double(settings_.batch_size),
          .batches = double(stream_.length()),
          .first_epoch = double(settings_.first_epoch),
          .epochs = double(settings_.epochs),
          .steps = double(settings_.steps),
          .learning_rate = executor_.learning_rate()};
  refuse_other_plans(group, plan, text_of({stream_.order(), steps_.class_weights(), settings_.frozen}));
  state.epoch = at.next_pass = settings_.first_epoch;
  state.epochs = settings_.epochs;
  state.step = executor_.step();
  state.learning_rate = executor_.learning_rate();
  hooks.of_session(&hook_calls::fit_begin);
  if (state.resumed && group.is_chief() && settings_.how != verbosity::off)
    std::cout << "resumed at epoch " << state.epoch + 1 << ", after " << state.step << " updates" << std::endl;
  hooks(&hook_calls::train_begin, state);
  for (; state.epoch < settings_.epochs && (!state.stop_training || at.in_epoch); ++state.epoch) {
    state.values = {};
    state.learning_rate = executor_.learning_rate();
    hooks(&hook_calls::epoch_begin, state);
    take_new_learning_rate();
    state.learning_rate = executor_.learning_rate();
    progress.begin_epoch(state.epoch, settings_.epochs, settings_.steps > 0 ? settings_.steps : stream_.length(),
                         settings_.batch_size);
    train_epoch(progress, hooks);
    if (state.interrupted) break;
    report(state.values, at.metric_sums, steps_.metrics(), "");
    validate(state.values);
    progress.end_epoch(state.values);
    hooks(&hook_calls::epoch_end, state);
    share_decisions(group, state);
    at.past.add(state.epoch, state.values);
    take_new_learning_rate();
    hooks.of_session(&hook_calls::fit_epoch_end);
    if (state.interrupted) break;
  }
  hooks(&hook_calls::train_end, state);
  all.reset();
  steps_.time.communication = executor_.communicating() - communicated;
  steps_.time.waiting = executor_.waiting() - waited;
  at.past.set_times(gather(group, steps_.time));
  if (group.is_chief() && settings_.how != verbosity::off && steps_.time.communication + steps_.time.waiting > 0)
    for (std::size_t r = 0; r < at.past.times().size(); ++r)
      std::cout << "process " << r << ", " << at.past.times()[r] << std::endl;
  hooks.of_session(&hook_calls::fit_end);
  return std::move(at.past);
}

template <class T>
[[gnu::cold]] void fit_loop<T>::give_notice() const {
  static std::atomic<bool> was_given = false;
  if (!settings_.notice.empty() && !was_given.exchange(true)) std::clog << settings_.notice << std::endl;
}

template <class T>
[[gnu::cold]] bool fit_loop<T>::begin_pass(samples<T>& batch) {
  steps_.start_pass(stream_, at.next_pass++);
  at.in_pass = true;
  at.batches_of_pass = 0;
  return steps_.next(stream_, batch);
}

template <class T>
bool fit_loop<T>::next(samples<T>& batch) {
  if (settings_.steps == 0) return steps_.next(stream_, batch);
  return at.steps_of_epoch < settings_.steps && (steps_.next(stream_, batch) || begin_pass(batch));
}

template <class T>
void fit_loop<T>::train_epoch(progress_bar& progress, const hook_list& hooks) {
  samples<T> batch;
  const bool resumes = std::exchange(at.in_epoch, true), has_steps = settings_.steps > 0;
  if (!resumes) {
    at.steps_of_epoch = at.samples_of_epoch = 0;
    at.metric_sums.assign(sums_.size(), {});
  }
  for (bool more = resumes || (has_steps && at.in_pass) ? next(batch) : begin_pass(batch); more; more = next(batch)) {
    hooks.of_batch(&hook_calls::batch_begin, state);
    train_on(batch);
    hooks.of_batch(&hook_calls::batch_end, state);
    hooks.of_session(&hook_calls::step_end);
    if (state.interrupted) return;
    if (!std::isfinite(state.loss)) break;
    if (progress.due()) {
      logs now;
      report(now, at.metric_sums, steps_.metrics(), "");
      progress.step(at.steps_of_epoch, now);
    }
  }
  executor_.finish(sums_);
  state.step = executor_.step();  // with the updates of others that it has fetched
  accumulate(at.metric_sums, sums_);
  if (at.steps_of_epoch == 0) throw_error({"epoch ", state.epoch + 1, ": the data set is empty"});
  at.in_epoch = false;
  if (!has_steps) at.in_pass = false;
}

template <class T>
void fit_loop<T>::train_on(const samples<T>& batch) {
  state.learning_rate = executor_.learning_rate();
  steps_.train(batch, at.samples_of_epoch, sums_);
  accumulate(at.metric_sums, sums_);
  state.loss = sums_[0].mean();
  if (!std::isfinite(state.loss)) {
    if (!state.bad_loss_ends_training)
      report_bad_loss(state.loss, batch, steps_.own_rows_of(batch), executor_.about().ends, state.epoch, at.steps_of_epoch,
                      at.samples_of_epoch);
    state.stop_training = true;
  }
  state.step = executor_.step();
  at.samples_of_epoch += batch.count;
  ++at.steps_of_epoch;
  ++at.batches_of_pass;
}

}  // namespace strata::detail
