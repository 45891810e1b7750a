// Determines the number of threads that make batches, while they are made.
#pragma once
#include <algorithm>
#include <bit>
#include <limits>
#include <strata/base/standard_clock.hpp>
#include <strata/base/standard_thread.hpp>
#include <utility>

namespace strata::data::detail {

/// Searches downwards from all threads of the machine, ... 8, 4, 2, 1, until batches become slower: the fewest threads are the
/// best, since the training needs the cores, too. It measures the time from one batch to the next, which includes the consumer's:
/// batches that only wait gain nothing. After the search it keeps measuring and searches again if batches have become much faster
/// or slower, for example because a cache is warm.
class thread_tuner {
  using clock = std::chrono::steady_clock;

 public:
  explicit thread_tuner(int most = static_cast<int>(std::thread::hardware_concurrency())) : most_(std::max(most, 1)) {
    restart();
  }

  /// Called when a batch begins. Returns the number of threads for it.
  int threads_for_next_batch() {
    return threads_for_next_batch([] { return clock::now(); });
  }
  template <class Now>
  int threads_for_next_batch(Now&& now) {
    if (++batches_since_ >= stride_) {
      const clock::time_point at = now();
      if (measures_) add(std::chrono::duration<double>(at - last_).count(), batches_since_);
      measures_ = true;
      last_ = at;
      batches_since_ = 0;
    }
    return tries_fewer_ ? fewer() : threads_;
  }
  /// Ignores the time until the next batch: between two epochs the trainer is busy with other work.
  void pause() {
    measures_ = false, unsteady_ = true;
    batches_since_ = stride_;
  }

  /// True while it compares two numbers of threads.
  bool is_searching() const { return !settled_; }

 private:
  static constexpr int batches_of_window = 8, rounds = 3;
  static constexpr double seconds_of_window = 0.02;  // minimum
  static constexpr double as_fast = 1.05, clearly = 1.25, changed = 1.5, tiny = 4e-6;

  struct window {
    double seconds = 0;
    int batches = 0;
  };

  /// The next power of two.
  int fewer() const { return static_cast<int>(std::bit_floor(static_cast<unsigned>(threads_ - 1))); }

  void restart() {
    threads_ = most_;
    best_ = std::numeric_limits<double>::max();
    settled_ = most_ == 1;
    compare();
  }
  /// Starts a comparison of threads_ with fewer().
  void compare() {
    with_these_ = with_fewer_ = std::numeric_limits<double>::max();
    round_ = 0;
    use(false);
  }
  void use(bool fewer) {
    tries_fewer_ = fewer;
    window_ = {};
    unsteady_ = true;
  }

  void add(double seconds, int batches) {
    if (std::exchange(unsteady_, false)) return;  // threads are waking up, caches are cold
    window_.seconds += seconds, window_.batches += batches;
    if (window_.batches < batches_of_window || window_.seconds < seconds_of_window) return;
    const double mean = window_.seconds / window_.batches;
    window_ = {};
    stride_ = mean < tiny ? 16 : 1;  // reading the clock takes 30 ns
    if (settled_)
      look_on(mean);
    else
      judge(mean);
  }

  /// Measures both numbers of threads in turn, since other load of the machine may change. Compares the fastest window of each:
  /// other load only makes batches slower.
  void judge(double mean) {
    double& fastest = tries_fewer_ ? with_fewer_ : with_these_;
    fastest = std::min(fastest, mean);
    if (!tries_fewer_) return use(true);
    ++round_;
    best_ = std::min({best_, with_these_, with_fewer_});
    if (with_fewer_ * clearly < with_these_ || (round_ == rounds && with_fewer_ <= best_ * as_fast)) {
      threads_ = fewer();
      if (threads_ > 1) return compare();
      settle(with_fewer_);
    } else if (with_these_ * clearly < with_fewer_ || round_ == rounds) {
      settle(with_these_);
    } else {
      use(false);
    }
  }
  void settle(double seconds) {
    settled_ = true;
    expected_ = seconds;
    strange_windows_ = 0;
    use(false);
  }

  /// Each new search needs twice as many unusual windows as the one before, so that a noisy machine does not search forever.
  void look_on(double mean) {
    if (most_ == 1) return;
    const bool strange = mean > expected_ * changed || mean * changed < expected_;
    strange_windows_ = strange ? strange_windows_ + 1 : 0;
    if (strange_windows_ < patience_) return;
    patience_ *= 2;
    restart();
  }

  int most_, threads_ = 1, round_ = 0;
  bool settled_ = false, tries_fewer_ = false, measures_ = false, unsteady_ = true;
  window window_;
  double with_these_ = 0, with_fewer_ = 0, best_ = 0, expected_ = 0;  // seconds per batch
  int strange_windows_ = 0, patience_ = 4;
  int stride_ = 1, batches_since_ = 1;  // since the clock was read
  clock::time_point last_;
};

}  // namespace strata::data::detail
