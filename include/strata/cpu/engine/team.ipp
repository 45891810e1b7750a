// Definitions of team.hpp.
#pragma once

namespace strata::core {

STRATA_FUNCTION int thread_team::spins_for(std::chrono::microseconds time) {
  using clock = std::chrono::steady_clock;
  constexpr int some = 256;
  clock::duration fastest = clock::duration::max();
  for (int attempt = 0; attempt < 4; ++attempt) {
    const auto start = clock::now();
    for (int i = 0; i < some; ++i) pause();
    fastest = std::min(fastest, clock::now() - start);
  }
  return static_cast<int>(std::clamp<std::int64_t>(some * (time / std::max(fastest, clock::duration(1))), 1'000, 1'000'000));
}

STRATA_STEP_FUNCTION void thread_team::help(int thread, unsigned phase) {
  for (int i = 0; i < size_; ++i) {
    const int other = thread + i < size_ ? thread + i : thread + i - size_;
    if (!take(shares_[std::size_t(other)], thread, phase)) return;
  }
}

STRATA_STEP_FUNCTION bool thread_team::take(share& from, int thread, unsigned phase) {
  for (tickets seen = from.left.load(std::memory_order_relaxed);;) {
    if (!seen.are_of(phase)) return false;
    if (!seen.any()) return unfinished_.load(std::memory_order_relaxed) > 0;
    // Acquires what the caller wrote before it stored the tickets: run_task_, context_ and unfinished_.
    if (!from.left.compare_exchange_weak(seen, seen.rest(), std::memory_order_acquire, std::memory_order_relaxed)) continue;
    run_task_(context_, seen.next(), thread);
    // From here on the caller may return, and start the next phase.
    if (unfinished_.fetch_sub(1, std::memory_order_release) == 1) return false;
    seen = from.left.load(std::memory_order_relaxed);
  }
}

STRATA_STEP_FUNCTION void thread_team::work(int thread) {
  const flush_denormals scope;
  for (unsigned seen = 0;;) {
    bool waits = true;
    for (int i = 0; i < spins_ && waits; ++i) {
      pause();
      waits = phase_.load(std::memory_order_acquire) == seen;
    }
    if (waits) detail::wait_while(phase_, seen, std::memory_order_acquire);  // waking a thread costs the caller a system call
    seen = phase_.load(std::memory_order_acquire);
    // Read after the phase, which end() raises last. Read before it, a stop could be missed.
    if (stop_.load(std::memory_order_relaxed)) return;
    help(thread, seen);
  }
}

STRATA_FUNCTION thread_team::thread_team(int size)
    : size_(size < 1 ? 1 : size),
      spins_(spins_for(std::chrono::microseconds(300))),
      shares_(std::size_t(size_)),
      others_(std::size_t(size_ - 1)) {
  int started = 1;
  STRATA_TRY {
    for (; started < size_; ++started) others_[std::size_t(started - 1)] = std::thread([this, started] { work(started); });
  }
  STRATA_CATCH(const std::system_error& failure) {
    end();
    throw_error({"cannot start ", size_, " threads, only ", started, ": ", failure.what()});
  }
}

STRATA_FUNCTION void thread_team::end() {
  stop_.store(true, std::memory_order_relaxed);
  phase_.fetch_add(1, std::memory_order_release);
  detail::wake_all(phase_);
  for (std::thread& t : others_)
    if (t.joinable()) t.join();
}

[[gnu::noinline]] STRATA_STEP_FUNCTION void thread_team::for_tasks(int count, task_function f, void* context) {
  const flush_denormals scope;
  if (size_ == 1 || count <= 1) {
    for (int task = 0; task < count; ++task) f(context, task, 0);
    return;
  }
  run_task_ = f;
  context_ = context;
  unfinished_.store(count, std::memory_order_relaxed);
  const unsigned phase = phase_.load(std::memory_order_relaxed) + 1;
  for (int thread = 0; thread < size_; ++thread)
    shares_[std::size_t(thread)].left.store(tickets::of(phase, share_begin(count, thread), share_begin(count, thread + 1)),
                                            std::memory_order_release);
  // A read-modify-write, see progress_counter::raise. Tasks may wait for each other, so no thread may sleep through the phase.
  phase_.exchange(phase, std::memory_order_release);
  detail::wake_all(phase_);
  help(0, phase);
  while (unfinished_.load(std::memory_order_acquire) > 0) pause();
}

}  // namespace strata::core
