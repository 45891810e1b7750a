// How samples are gathered into a batch.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <limits>
#include <mutex>
#include <span>
#include <strata/concepts/batch_source.hpp>
#include <strata/data/batch_buffer.hpp>
#include <strata/data/gather_team.hpp>
#include <strata/data/left_out.hpp>
#include <strata/data/sample_view.hpp>
#include <utility>
#include <vector>

namespace strata::data::detail {

/// How many samples ahead a row is asked for.
inline constexpr std::size_t rows_ahead = 4;

/// A batch of fewer bytes is written before another thread would have heard of it.
inline constexpr std::size_t bytes_worth_sharing = 32'768;

/// What went wrong while some samples were written. The first failure in their order counts, whichever thread met it when.
class gather_failures {
 public:
  /// Samples from this one on need not be written. All before it are, whoever writes which part when: a part is passed over
  /// only if it begins behind a failure, and left early only at a failure of its own.
  std::size_t end() const { return end_.load(std::memory_order_relaxed); }

  /// Sample k has thrown what is being handled.
  void add(std::size_t k) {
    const std::lock_guard lock(mutex_);
    try {
      throw;
    } catch (const left_out& sample) {
      left_out_.emplace_back(k, sample);
    } catch (...) {
      if (k >= end()) return;
      end_.store(k, std::memory_order_relaxed);
      first_ = std::current_exception();
    }
  }

  /// When all threads are done: throws the first failure, or calls f(k) for the samples that are left out, in order.
  template <class F>
  void settle(F&& f) {
    std::sort(left_out_.begin(), left_out_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [k, sample] : left_out_)
      if (k < end()) sample.count();
    if (first_) std::rethrow_exception(first_);
    for (const auto& [k, sample] : left_out_) f(k);
  }

 private:
  std::atomic<std::size_t> end_{std::numeric_limits<std::size_t>::max()};
  std::mutex mutex_;
  std::exception_ptr first_;
  std::vector<std::pair<std::size_t, left_out>> left_out_;
};

/// The first `count` samples of `which` have the rows behind the first `filled` ones of the buffer; those after them come next.
/// Writes samples first ... last - 1 of them. Returns how many rows are filled then: samples that are left out take no room, so
/// where there may be such, all are to be written. Those who write: the team if there is one, or the writers if they can share.
template <row_source Rows, class T>
std::size_t gather(const Rows& rows, std::span<const sample_index> which, std::size_t count, std::size_t first, std::size_t last,
                   batch_buffer<T>& out, std::size_t filled, gather_team* team, int threads, const row_writers& writers) {
  gather_failures failures;
  const auto places = out.template places<Rows>(filled);
  const auto write = [&failures, &rows, which, places, first](std::size_t begin, std::size_t end) {
    if (first + begin >= failures.end()) return;
    for (std::size_t k = first + begin; k < first + end; ++k) {
      const sample_index ahead = which[k + rows_ahead < which.size() ? k + rows_ahead : k];
      try {
        rows.write(which[k], ahead, places[k], std::identity{});
      } catch (...) {
        failures.add(k);
        if (failures.end() <= k) return;
      }
    }
  };
  if (team != nullptr)
    team->for_parts(last - first, threads, write);
  else if (writers && last - first > 1)
    writers(last - first, std::ref(write));
  else
    write(0, last - first);

  std::size_t kept = 0, next = 0;  // the samples before `next` that stay have moved together
  const auto keep_until = [&](std::size_t end) {
    if (kept != next) out.template move<Rows>(filled + next, filled + end, filled + kept);
    kept += end - next;
  };
  failures.settle([&](std::size_t k) {
    keep_until(k);
    next = k + 1;
  });
  keep_until(count);
  return filled + kept;
}

}  // namespace strata::data::detail
