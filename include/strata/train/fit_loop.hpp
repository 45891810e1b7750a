// The loop of fit: epochs of steps, with the hooks of callbacks between them.
#pragma once
#include <cmath>
#include <iostream>
#include <limits>
#include <optional>
#include <strata/base/error.hpp>
#include <strata/base/standard_function.hpp>
#include <strata/base/stopwatch.hpp>
#include <strata/base/text.hpp>
#include <strata/state/training_state.hpp>
#include <strata/train/agreement.hpp>
#include <strata/train/any_executor.hpp>
#include <strata/train/any_process_group.hpp>
#include <strata/train/batch_stream.hpp>
#include <strata/train/fit_options.hpp>
#include <strata/train/hook_calls.hpp>
#include <strata/train/pixel_notice.hpp>
#include <strata/train/progress.hpp>
#include <strata/train/speed_notice.hpp>
#include <strata/train/step_runner.hpp>
#include <strata/train/training_position.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace strata::detail {

struct fit_settings {
  int first_epoch, epochs, batch_size;
  long steps;      // of an epoch; 0: as many as a pass over the data has
  long execution;  // steps between two calls of the hooks of batches
  verbosity how;
  bool validates = false, may_get_pixels = false;
  std::string about_layers = {};  // printed at the beginning
  std::string frozen = {};        // trainable_layers::text
  std::string_view notice = {};   // printed once in a program
};

template <class T>
class fit_loop {
  any_executor<T>& executor_;
  step_runner<T>& steps_;
  batch_stream<T>& stream_;
  fit_settings settings_;
  std::vector<metric_sum> sums_;  // sums of one step
  bool sees_each_step_ = false;   // before the next one begins
  int samples_of_batch_ = 0;      // size of the last batch

 public:
  // Read, saved and replaced by callbacks.
  training_position at{};
  training_state state{};
  plan_of_fit plan{};

  [[gnu::cold]] fit_loop(any_executor<T>& executor, step_runner<T>& steps, batch_stream<T>& stream, const fit_settings& settings)
      : executor_(executor), steps_(steps), stream_(stream), settings_(settings), sums_(pairs_of(steps.metrics())) {}

  /// `validate` adds the values of the validation to those of an epoch.
  training_history run(const hook_list& hooks, const std::function<void(logs&)>& validate);

 private:
  void give_notice() const;
  void warn_of_nan_in_validation() const;
  void warn_of_pixels(const samples<T>& batch) const;
  /// Trains as many batches as the settings require, or one pass over the data. With steps_per_epoch the pass of the previous
  /// epoch continues; an interrupted epoch continues in any case.
  void train_epoch(progress_bar& progress, const hook_list& hooks);
  /// Returns false if the training ends here, even in the middle of the epoch.
  bool train_steps(progress_bar& progress, const hook_list& hooks, bool resumes);
  void end_execution(progress_bar& progress, const hook_list& hooks, bool progress_is_due);
  void train_on(const samples<T>& batch);
  /// Adds the sums of the steps whose results are pending. batch: of the last one; null if it is gone.
  void read_results(const samples<T>* batch = nullptr);
  /// Adds sums_. step: of the epoch, from 1.
  void add_sums(long step, const samples<T>* batch);
  void take_new_learning_rate() {
    if (state.new_learning_rate) executor_.set_learning_rate(*std::exchange(state.new_learning_rate, std::nullopt));
  }
  bool begin_pass(samples<T>& batch);
  bool next(samples<T>& batch);
};

template <class T>
[[gnu::cold]] training_history fit_loop<T>::run(const hook_list& hooks, const std::function<void(logs&)>& validate) {
  const auto refuse_negative = [](const char* option, long value) {
    if (value < 0) throw_error({"fit: ", option, '(', value, "): it must be at least 0"});
  };
  refuse_negative("epochs", settings_.epochs);
  refuse_negative("initial_epoch", settings_.first_epoch);
  refuse_negative("steps_per_epoch", settings_.steps);
  if (settings_.execution < 1) throw_error({"fit: steps_per_execution(", settings_.execution, "): it must be at least 1"});
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
  if (!group.is_late()) plan.weights = executor_.hash_of_parameters();
  if (!group.is_late() && group.size() > 1)
    refuse_other_plans(group, plan, text_of({stream_.order(), steps_.class_weights(), settings_.frozen}));
  state.epoch = at.next_pass = settings_.first_epoch;
  state.epochs = settings_.epochs;
  state.step = executor_.step();
  state.learning_rate = executor_.learning_rate();
  hooks.of_session(&hook_calls::fit_begin);
  if (state.resumed && group.is_chief() && settings_.how != verbosity::off)
    std::cout << "resumed at epoch " << state.epoch + 1 << ", after " << state.step << " updates" << std::endl;
  state.name_of_sample = [this](int n) {
    return names_in_stream<T>(stream_, samples_of_batch_, at.samples_of_epoch - samples_of_batch_).of(n);
  };
  state.expected = expected_values(steps_.metrics(), settings_.validates);
  hooks.train_begin(state);
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
    warn_of_nan_in_validation();
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
  const gathered times(group, steps_.time);
  for (std::size_t r = 0; r < times.size(); ++r) at.past.add_time(times[r]);
  if (group.is_chief() && settings_.how != verbosity::off && steps_.time.communication + steps_.time.waiting > 0)
    for (std::size_t r = 0; r < at.past.times().size(); ++r)
      std::cout << "process " << r << ", " << at.past.times()[r] << std::endl;
  hooks.of_session(&hook_calls::fit_end);
  return std::move(at.past);
}

template <class T>
[[gnu::cold]] void fit_loop<T>::give_notice() const {
  if (!settings_.notice.empty() && is_first_notice()) std::clog << settings_.notice << std::endl;
  if (!settings_.about_layers.empty()) std::clog << settings_.about_layers << std::endl;
}

template <class T>
[[gnu::cold]] void fit_loop<T>::warn_of_pixels(const samples<T>& batch) const {
  if (!settings_.may_get_pixels || !executor_.group().is_chief() || settings_.how == verbosity::off || batch.stored) return;
  const row_range own = steps_.own_rows_of(batch);
  const long size = executor_.about().ends.inputs[0];
  if (are_raw_pixels(batch.inputs[0] + own.begin * size, own.end - own.begin, size) && !pixel_notice_was_given.exchange(true))
    std::clog << pixel_notice << std::endl;
}

template <class T>
[[gnu::cold]] void fit_loop<T>::warn_of_nan_in_validation() const {
  if (!executor_.group().is_chief() || settings_.how == verbosity::off) return;
  if (std::isnan(state.values.find("val_loss").value_or(0)))
    std::clog << text_of({"epoch ", state.epoch + 1,
                          ": the loss of the validation is nan, so callbacks do not count this epoch as an improvement "
                          "(data::check_finite names a sample that is not finite)"})
              << std::endl;
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
[[gnu::cold]] void fit_loop<T>::train_epoch(progress_bar& progress, const hook_list& hooks) {
  const bool resumes = std::exchange(at.in_epoch, true);
  if (!resumes) {
    at.steps_of_epoch = at.samples_of_epoch = 0;
    at.metric_sums.assign(sums_.size(), {});
  }
  executor_.launch_together(settings_.execution);  // an epoch may have kept gradients, which takes steps one by one
  sees_each_step_ = settings_.execution == 1 && (hooks.see_batches() || state.bad_loss_ends_training);
  if (!train_steps(progress, hooks, resumes)) return;
  read_results();
  executor_.finish(sums_);
  state.step = executor_.step();  // includes updates fetched from other workers
  accumulate(at.metric_sums, sums_);
  if (at.steps_of_epoch == 0) throw_error({"epoch ", state.epoch + 1, ": the data set is empty"});
  at.in_epoch = false;
  if (settings_.steps == 0) at.in_pass = false;
}

template <class T>
[[gnu::cold]] bool fit_loop<T>::train_steps(progress_bar& progress, const hook_list& hooks, bool resumes) {
  samples<T> batch;
  long steps = 0;  // steps of this execution
  bool is_due = false;
  for (bool more = resumes || (settings_.steps > 0 && at.in_pass) ? next(batch) : begin_pass(batch); more;) {
    if (at.steps_of_epoch == 0 && state.epoch == settings_.first_epoch) warn_of_pixels(batch);
    if (steps == 0) hooks.of_batch(&hook_calls::batch_begin, state);
    train_on(batch);
    is_due = progress.due() || is_due;
    const bool ends = ++steps == settings_.execution || !std::isfinite(state.loss);
    if (ends) {
      state.batches = steps;
      end_execution(progress, hooks, is_due);
      if (state.interrupted || !std::isfinite(state.loss)) break;
      steps = 0, is_due = false;
    }
    more = next(batch);
    if (more || ends) continue;
    state.batches = steps;
    end_execution(progress, hooks, is_due);
  }
  return !state.interrupted;
}

template <class T>
[[gnu::cold]] void fit_loop<T>::end_execution(progress_bar& progress, const hook_list& hooks, bool progress_is_due) {
  if (hooks.see_batches() || state.bad_loss_ends_training || progress_is_due ||
      executor_.pending() >= detail::most_unread_results)
    read_results();
  hooks.of_batch(&hook_calls::batch_end, state);
  hooks.of_session(&hook_calls::step_end);
  if (state.interrupted || !std::isfinite(state.loss) || !progress_is_due) return;
  logs now;
  report(now, at.metric_sums, steps_.metrics(), "");
  progress.step(at.steps_of_epoch, now);
}

template <class T>
[[gnu::cold]] void fit_loop<T>::read_results(const samples<T>* batch) {
  double bad = 0;  // the first loss that is not finite
  for (long left = executor_.pending(); left > 0; --left) {
    executor_.read_result(sums_);
    add_sums(at.steps_of_epoch - left + 1, left == 1 ? batch : nullptr);
    if (std::isfinite(bad)) bad = state.loss;
  }
  if (!std::isfinite(bad)) state.loss = bad;
}

template <class T>
[[gnu::cold]] void fit_loop<T>::train_on(const samples<T>& batch) {
  state.learning_rate = executor_.learning_rate();
  steps_.check(stream_, batch, at.samples_of_epoch);
  steps_.train(batch, sums_);
  state.step = executor_.step();
  at.samples_of_epoch += samples_of_batch_ = batch.count;
  ++at.steps_of_epoch;
  ++at.batches_of_pass;
  if (executor_.pending() == 0)
    add_sums(at.steps_of_epoch, &batch);
  else if (sees_each_step_ || executor_.pending() == detail::most_pending_results)
    read_results(&batch);
}

template <class T>
[[gnu::cold]] void fit_loop<T>::add_sums(long step, const samples<T>* batch) {
  accumulate(at.metric_sums, sums_);
  state.loss = sums_[0].mean();
  if (std::isfinite(state.loss)) return;
  state.stop_training = true;
  if (state.bad_loss_ends_training) return;
  if (!batch || batch->stored) report_bad_loss_of_step(state.epoch, step);
  report_bad_loss(state.loss, *batch, steps_.own_rows_of(*batch), executor_.about().ends, executor_.about().named, state.epoch,
                  step - 1, names_in_stream<T>(stream_, batch->count, at.samples_of_epoch - batch->count),
                  state.epoch == settings_.first_epoch && step == 1);
}

}  // namespace strata::detail
