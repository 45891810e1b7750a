// Threads that write the samples of a batch.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <thread>
#include <vector>

namespace strata::data::detail {

/// The calling thread and others, which live as long as the team and sleep between batches, since the training needs the cores.
/// A counter hands out parts, which become smaller towards the end, so that no thread waits long for the last one. A batch is
/// done when its parts are, not when every thread has woken up: a thread that wakes late delays nothing.
class gather_team {
 public:
  gather_team() = default;
  gather_team(const gather_team&) = delete;
  gather_team& operator=(const gather_team&) = delete;
  ~gather_team() {
    stops_.store(true, std::memory_order_relaxed);
    members_.store(std::numeric_limits<int>::max(), std::memory_order_release);
    members_.notify_all();
    phase_.fetch_add(1, std::memory_order_release);
    phase_.notify_all();
    for (std::thread& t : others_) t.join();
  }

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

  [[gnu::noinline]] void for_parts(std::size_t count, int threads, part_function f, const void* context) {
    resize(threads);
    run_part_ = f;
    context_ = context;
    done_.store(0, std::memory_order_relaxed);
    ticket_.store(ticket(0, count), std::memory_order_release);
    phase_.fetch_add(1, std::memory_order_release);
    phase_.notify_all();
    help();
    for (std::size_t done = done_.load(std::memory_order_acquire); done != count; done = done_.load(std::memory_order_acquire))
      done_.wait(static_cast<std::uint32_t>(done), std::memory_order_acquire);
  }

  /// The first sample that no thread has taken, and the number of samples.
  static std::uint64_t ticket(std::size_t next, std::size_t count) { return std::uint64_t{count} << 32 | next; }

  /// Threads above the number sleep, but stay: autotune may choose another number.
  [[gnu::cold]] void resize(int threads) {
    while (others_.size() + 1 < static_cast<std::size_t>(threads)) {
      const int rank = static_cast<int>(others_.size()) + 1;
      others_.push_back(std::thread([this, rank] { work(rank); }));
    }
    if (members_.exchange(threads, std::memory_order_release) < threads) members_.notify_all();
  }

  void work(int rank) {
    for (std::uint32_t seen = 0;; seen = phase_.load(std::memory_order_acquire)) {
      help();
      phase_.wait(seen, std::memory_order_acquire);
      for (int members = members_.load(std::memory_order_acquire); members <= rank;
           members = members_.load(std::memory_order_acquire))
        members_.wait(members, std::memory_order_acquire);
      if (stops_.load(std::memory_order_relaxed)) return;
    }
  }

  /// Takes parts while there are any.
  void help() {
    for (;;) {
      std::uint64_t seen = ticket_.load(std::memory_order_acquire);
      std::size_t begin, end, count;
      do {
        begin = seen & 0xFFFF'FFFF, count = seen >> 32;
        if (begin == count) return;
        const std::size_t members = static_cast<std::size_t>(members_.load(std::memory_order_relaxed));
        end = begin + std::max<std::size_t>(1, (count - begin) / (4 * members));
      } while (!ticket_.compare_exchange_weak(seen, ticket(end, count), std::memory_order_acq_rel, std::memory_order_acquire));
      run_part_(context_, begin, end);
      const auto part = static_cast<std::uint32_t>(end - begin);
      if (done_.fetch_add(part, std::memory_order_acq_rel) + part == count) done_.notify_all();
    }
  }

  // Written before the ticket; read after a part has been taken.
  part_function run_part_ = nullptr;
  const void* context_ = nullptr;
  std::vector<std::thread> others_;
  // Each on a cache line of its own.
  alignas(64) std::atomic<std::uint64_t> ticket_{0};
  alignas(64) std::atomic<std::uint32_t> done_{0};
  alignas(64) std::atomic<std::uint32_t> phase_{0};
  std::atomic<int> members_{1};
  std::atomic<bool> stops_{false};
};

}  // namespace strata::data::detail
