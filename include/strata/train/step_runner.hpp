// Runs single steps of an executor on batches of a stream: checks each batch first, and measures where the time goes.
#pragma once
#include <cstddef>
#include <span>
#include <strata/base/error.hpp>
#include <strata/base/stopwatch.hpp>
#include <strata/base/text.hpp>
#include <strata/concepts/batch_source.hpp>
#include <strata/train/agreement.hpp>
#include <strata/train/any_executor.hpp>
#include <strata/train/batch_stream.hpp>
#include <strata/train/logs.hpp>
#include <strata/train/time_split.hpp>
#include <string>
#include <utility>
#include <vector>

namespace strata::detail {

/// Adds the metric sums of a step.
inline void accumulate(std::span<metric_sum> sums, std::span<const metric_sum> one) {
  for (std::size_t k = 0; k < sums.size(); ++k) sums[k] += one[k];
}

/// Their means by name: loss, accuracy; with the prefix val_loss, val_accuracy.
[[gnu::cold, gnu::noinline]] inline void report(logs& to, std::span<const metric_sum> sums, std::span<const char* const> names,
                                                const char* prefix) {
  for (std::size_t k = 0; k < sums.size(); ++k) to.set(text_of({prefix, names[k]}), sums[k].mean());
}

template <class T>
class step_runner {
  any_executor<T>& executor_;
  const row_choice& own_rows_;

 public:
  time_split time{};

  /// `own_rows`: the rows that this process computes, and therefore reads and checks.
  step_runner(any_executor<T>& executor, const row_choice& own_rows) : executor_(executor), own_rows_(own_rows) {}

  std::span<const char* const> metrics() const { return executor_.about().metrics; }
  row_range own_rows_of(const samples<T>& batch) const { return own_rows_ ? own_rows_(batch.count) : row_range{0, batch.count}; }

  void start_pass(batch_stream<T>& stream, int pass) {
    const stopwatch running(time.input);
    stream.start(pass);
  }
  bool next(batch_stream<T>& stream, samples<T>& batch) {
    const stopwatch running(time.input);
    return stream.next(batch);
  }

  /// `samples_before`: of the epoch, for messages. sums: of this step.
  void train(const samples<T>& batch, long samples_before, std::span<metric_sum> sums) {
    executor_.check(batch, own_rows_of(batch), samples_before);
    timed(&any_executor<T>::train_step, batch, sums);
  }

  /// One pass over the stream.
  std::vector<metric_sum> evaluate(batch_stream<T>& stream, int batch_size);

 private:
  /// Time that the executor spends on messages is not time of computing.
  void timed(void (any_executor<T>::*step)(const samples<T>&, std::span<metric_sum>), const samples<T>& batch,
             std::span<metric_sum> sums);
};

template <class T>
std::vector<metric_sum> step_runner<T>::evaluate(batch_stream<T>& stream, int batch_size) {
  executor_.prepare(batch_size, purpose::inference);
  std::vector<metric_sum> sums(metrics().size()), one(sums.size());
  long seen = 0;
  refuse_other_lengths(executor_.group(), stream.length());
  start_pass(stream, 0);
  for (samples<T> batch; next(stream, batch); seen += batch.count) {
    executor_.check(batch, own_rows_of(batch), seen);
    timed(&any_executor<T>::evaluate_step, batch, one);
    accumulate(sums, one);
  }
  if (seen == 0) throw_error("evaluate: the data set is empty");
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
