// Threads that write the samples of a batch.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <strata/base/atomic_wait.hpp>
#include <strata/base/grown_array.hpp>
#include <strata/base/linkage.hpp>
#include <strata/base/standard_thread.hpp>

namespace strata::data::detail {

/// The calling thread and others, which live as long as the team and sleep between batches, since the training needs the cores. A
/// counter hands out parts, which become smaller towards the end, so that no thread waits long for the last one. A batch is
/// complete when its parts are, not when every thread has woken up: a thread that wakes late causes no delay.
class gather_team {
 public:
  gather_team() = default;
  gather_team(const gather_team&) = delete;
  gather_team& operator=(const gather_team&) = delete;
  ~gather_team();

  /// Calls f(begin, end) for parts of 0 ... count - 1 on at most `threads` threads. Returns when all are done. f must not throw.
  template <class F>
  void for_parts(std::size_t count, int threads, const F& f) {
    if (threads <= 1 || count <= 1)
      f(std::size_t{0}, count);
    else
      for_parts(
          count, threads,
          [](const void* context, std::size_t begin, std::size_t end) { (*static_cast<const F*>(context))(begin, end); }, &f);
  }

 private:
  using part_function = void (*)(const void* context, std::size_t begin, std::size_t end);

  void for_parts(std::size_t count, int threads, part_function f, const void* context);

  /// The first sample that no thread has taken, and the number of samples.
  static std::uint64_t ticket(std::size_t next, std::size_t count) { return std::uint64_t{count} << 32 | next; }

  /// Threads beyond this number sleep, but are kept: autotune may choose another number later.
  void resize(int threads);

  void work(int rank);

  /// Takes parts until none are left.
  void help();

  // Written before the ticket; read after a part has been taken.
  part_function run_part_ = nullptr;
  const void* context_ = nullptr;
  strata::detail::grown_array<std::thread> others_;
  int started_ = 0;  // number of started threads
  // Each on a cache line of its own.
  alignas(64) std::atomic<std::uint64_t> ticket_{0};
  alignas(64) std::atomic<std::uint32_t> done_{0};
  alignas(64) std::atomic<std::uint32_t> phase_{0};
  std::atomic<int> members_{1};
  std::atomic<bool> stops_{false};
};

}  // namespace strata::data::detail

#if STRATA_DEFINES
#include <strata/data/core/gather_team.ipp>
#endif
