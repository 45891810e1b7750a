// Runs single steps of an executor on batches of a stream: checks each batch first, and measures where the time goes.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <strata/base/error.hpp>
#include <strata/base/linkage.hpp>
#include <strata/base/stopwatch.hpp>
#include <strata/base/text.hpp>
#include <strata/concepts/batch_source.hpp>
#include <strata/state/logs.hpp>
#include <strata/state/pass_state.hpp>
#include <strata/state/time_split.hpp>
#include <strata/train/agreement.hpp>
#include <strata/train/any_executor.hpp>
#include <strata/train/batch_stream.hpp>
#include <strata/train/fit_options.hpp>
#include <strata/train/hook_calls.hpp>
#include <string>
#include <utility>
#include <vector>

namespace strata::detail {

/// Adds the metric sums of one step to `sums`.
inline void accumulate(std::span<metric_sum> sums, std::span<const metric_sum> one) {
  for (std::size_t k = 0; k < sums.size(); ++k) sums[k] += one[k];
}

/// The number of metric sums of all metrics.
std::size_t pairs_of(std::span<const reported_metric> metrics);

/// Stores means and results by name: loss, accuracy; with the prefix val_loss, val_accuracy.
void report(logs& to, std::span<const metric_sum> sums, std::span<const reported_metric> metrics, const char* prefix);

/// The names of the values that an epoch will report; see training_state.
logs expected_values(std::span<const reported_metric> metrics, bool validates);

template <class T>
class step_runner {
  any_executor<T>& executor_;
  const row_choice& own_rows_;
  struct classes_of_output {
    std::size_t output;
    class_weight weights;
    std::vector<T> of_samples = {};  // of a batch
  };
  std::vector<classes_of_output> classes_;

 public:
  time_split time{};

  /// `own_rows`: the rows that this process computes, and therefore reads and checks.
  step_runner(any_executor<T>& executor, const row_choice& own_rows) : executor_(executor), own_rows_(own_rows) {}

  std::span<const reported_metric> metrics() const { return executor_.about().metrics; }
  row_range own_rows_of(const samples<T>& batch) const { return own_rows_ ? own_rows_(batch.count) : row_range{0, batch.count}; }

  void start_pass(batch_stream<T>& stream, int pass) {
    const stopwatch running(time.input);
    stream.start(pass);
  }
  bool next(batch_stream<T>& stream, samples<T>& batch) {
    const stopwatch running(time.input);
    return stream.next(batch);
  }

  /// Throws strata_error for a batch that the network cannot take. samples_before: samples of the epoch before it, for
  /// messages.
  void check(const batch_stream<T>& stream, const samples<T>& batch, long samples_before) {
    executor_.check(batch, own_rows_of(batch), names_in_stream<T>(stream, batch.count, samples_before));
  }
  /// sums: receives the sums of this step.
  void train(const samples<T>& batch, std::span<metric_sum> sums) {
    if (classes_.empty())
      timed(&any_executor<T>::train_step, batch, sums);
    else
      timed(&any_executor<T>::train_step, weighed(batch), sums);
  }
  /// Weights each sample of the next training steps by its class at an output. Throws strata_error for classes that do not exist.
  [[gnu::cold]] void weigh(std::size_t output, const class_weight& classes) {
    if (classes.empty()) return;
    for (const classes_of_output& each : classes_)
      if (each.output == output)
        throw_error({"fit: class_weight is given twice", for_end(executor_.about().named.outputs[output])});
    classes.check(std::max(2L, executor_.about().ends.outputs[output]));
    classes_.push_back({output, classes});
  }

  std::string class_weights() const {
    std::string all;
    for (const classes_of_output& each : classes_)
      all += each.weights.text() + for_end(executor_.about().named.outputs[each.output]);
    return all;
  }

  /// Evaluates on one pass over the stream, or on its first `steps` batches.
  std::vector<metric_sum> evaluate(batch_stream<T>& stream, int batch_size, long steps, const hook_list& hooks);

 private:
  [[gnu::cold]] samples<T> weighed(samples<T> batch) {
    for (classes_of_output& each : classes_) weigh(batch, each);
    return batch;
  }
  [[gnu::cold]] void weigh(samples<T>& batch, classes_of_output& classes) const {
    truth_rows<T>& truth = batch.truths[classes.output];
    if (truth.weights)
      throw_error({"fit: the batches have weights", for_end(executor_.about().named.outputs[classes.output]),
                   ", so they cannot have those of classes, too"});
    const std::ptrdiff_t size = executor_.about().ends.outputs[classes.output];
    classes.of_samples.resize(std::max(classes.of_samples.size(), std::size_t(batch.count)));
    const row_range own = own_rows_of(batch);
    for (int n = own.begin; n < own.end; ++n) {
      int index = 0;
      if (truth.labels) {
        index = truth.labels[n];
      } else {
        const T* const row = truth.targets + n * size;
        index = size == 1 ? int(std::lround(row[0])) : int(std::max_element(row, row + size) - row);
      }
      classes.of_samples[std::size_t(n)] = T(classes.weights.of(index));
    }
    truth.weights = classes.of_samples.data();
  }
  /// Measures a step: time that the executor spends on messages is not counted as computing.
  void timed(void (any_executor<T>::*step)(const samples<T>&, std::span<metric_sum>), const samples<T>& batch,
             std::span<metric_sum> sums);
};

template <class T>
[[gnu::cold]] std::vector<metric_sum> step_runner<T>::evaluate(batch_stream<T>& stream, int batch_size, long steps,
                                                               const hook_list& hooks) {
  executor_.prepare(batch_size, purpose::inference);
  std::vector<metric_sum> sums(pairs_of(metrics())), one(sums.size());
  pass_state state{.in_fit = hooks.in_fit};
  const bool reports = hooks.see_test_batches();
  const long length = stream.length();
  if (any_process_group& group = executor_.group(); group.size() > 1)
    refuse_other_batches(group, steps > 0 && (length == 0 || steps < length) ? steps : length, stream.order());
  start_pass(stream, 0);
  hooks.of_test(&hook_calls::test_begin, state);
  long left = steps > 0 ? steps : -1;
  for (samples<T> batch; left != 0 && next(stream, batch); --left) {
    hooks.of_test(&hook_calls::test_batch_begin, state);
    check(stream, batch, state.samples);
    timed(&any_executor<T>::evaluate_step, batch, one);
    accumulate(sums, one);
    ++state.batches;
    state.samples += batch.count;
    if (reports) report(state.values, sums, metrics(), "");
    hooks.of_test(&hook_calls::test_batch_end, state);
  }
  if (state.samples == 0) throw_error("evaluate: the data set is empty");
  if (hooks.see_tests()) report(state.values, sums, metrics(), "");
  hooks.of_test(&hook_calls::test_end, state);
  return sums;
}

template <class T>
void step_runner<T>::timed(void (any_executor<T>::*step)(const samples<T>&, std::span<metric_sum>), const samples<T>& batch,
                           std::span<metric_sum> sums) {
  const double before = executor_.communicating() + executor_.waiting();
  {
    const stopwatch running(time.compute);
    (executor_.*step)(batch, sums);
  }
  time.compute -= executor_.communicating() + executor_.waiting() - before;
}

}  // namespace strata::detail

#if STRATA_DEFINES
#include <strata/train/step_runner.ipp>
#endif
