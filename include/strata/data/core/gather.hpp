// Gathers samples into a batch.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <iterator>
#include <limits>
#include <mutex>
#include <span>
#include <strata/base/exceptions.hpp>
#include <strata/base/standard_function.hpp>
#include <strata/concepts/batch_source.hpp>
#include <strata/data/core/batch_buffer.hpp>
#include <strata/data/core/gather_team.hpp>
#include <strata/data/core/left_out.hpp>
#include <strata/data/core/rows.hpp>
#include <type_traits>
#include <utility>
#include <vector>

namespace strata::data::detail {

/// The number of samples by which rows are prefetched ahead.
inline constexpr std::size_t rows_ahead = 4;

/// A smaller batch is written by one thread: waking another one would take longer.
inline constexpr std::size_t bytes_worth_sharing = 32'768;

/// The exceptions that were thrown while samples were written. Only the first one in the order of the samples is kept, not the
/// first one in time.
class gather_failures {
 public:
  /// Samples from this one on need not be written. All before it are written: a thread skips a part only if it begins after a
  /// failure, and aborts it only at a failure of its own.
  std::size_t end() const { return end_.load(std::memory_order_relaxed); }

  /// Records the current exception, which sample k has thrown.
  [[gnu::cold]] void add(std::size_t k) {
    const std::lock_guard lock(mutex_);
    if (k >= end()) return;
    end_.store(k, std::memory_order_relaxed);
    first_ = std::current_exception();
  }

  /// Called when all threads are done: throws the first failure.
  void settle() const {
    if (first_) std::rethrow_exception(first_);
  }

 protected:
  std::mutex mutex_;

 private:
  std::atomic<std::size_t> end_{std::numeric_limits<std::size_t>::max()};
  std::exception_ptr first_;
};

/// The same for rows that may leave out samples.
class gather_failures_and_left_out : public gather_failures {
 public:
  [[gnu::cold]] void add(std::size_t k) {
    STRATA_TRY { STRATA_THROW_AGAIN; }
    STRATA_CATCH(const left_out& sample) {
      const std::lock_guard lock(mutex_);
      auto at = left_out_.end();
      while (at != left_out_.begin() && std::prev(at)->first > k) --at;
      left_out_.emplace(at, k, sample);
    }
    STRATA_CATCH_ALL { gather_failures::add(k); }
  }

  /// Throws the first failure, or calls f(k) for each sample k that is left out, in order.
  template <class F>
  void settle(F&& f) const {
    for (const auto& [k, sample] : left_out_)
      if (k < end()) sample.count();
    gather_failures::settle();
    for (const auto& [k, sample] : left_out_) f(k);
  }

 private:
  std::vector<std::pair<std::size_t, left_out>> left_out_;  // in the order of the samples
};

/// Writes samples first ... last - 1 of the first `count` indices into the rows of the buffer after the first `filled`; the
/// indices after `count` are prefetched. Returns the new number of filled rows. A sample that is left out takes no row: rows that
/// may leave out samples must all be written. The team writes if there is one, else the writers, else the calling thread.
template <class Rows, class Buffer>
std::size_t gather(const Rows& rows, std::span<const sample_index> indices, std::size_t count, std::size_t first,
                   std::size_t last, Buffer& out, std::size_t filled, gather_team* team, int threads,
                   const row_writers& writers) {
  constexpr bool leaves_out = Rows::properties.leaves_out;
  std::conditional_t<leaves_out, gather_failures_and_left_out, gather_failures> failures;
  const auto places = out.template places<Rows>(filled);
  // Compiled once instead of once per caller.
  const auto write = [&failures, &rows, indices, places, first](std::size_t begin, std::size_t end) __attribute__((noinline)) {
    if (first + begin >= failures.end()) return;
    for (std::size_t k = first + begin; k < first + end; ++k) {
      const sample_index ahead = indices[k + rows_ahead < indices.size() ? k + rows_ahead : k];
      STRATA_TRY { rows.write(indices[k], ahead, places[k], std::identity{}); }
      STRATA_CATCH_ALL {
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

  if constexpr (leaves_out) {
    std::size_t kept = 0, next = 0;  // samples before `next` that are not left out have moved to the front
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
  } else {
    failures.settle();
    return filled + count;
  }
}

}  // namespace strata::data::detail
