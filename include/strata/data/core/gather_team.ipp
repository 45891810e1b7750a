// Definitions of gather_team.hpp.
#pragma once

namespace strata::data::detail {

STRATA_FUNCTION gather_team::~gather_team() {
  stops_.store(true, std::memory_order_relaxed);
  // A read-modify-write, see progress_counter::raise.
  members_.exchange(std::numeric_limits<int>::max(), std::memory_order_release);
  strata::detail::wake_all(members_);
  phase_.fetch_add(1, std::memory_order_release);
  strata::detail::wake_all(phase_);
  for (std::thread& t : others_)
    if (t.joinable()) t.join();
}

[[gnu::noinline]] STRATA_STEP_FUNCTION void gather_team::for_parts(std::size_t count, int threads, part_function f,
                                                                   const void* context) {
  resize(threads);
  run_part_ = f;
  context_ = context;
  done_.store(0, std::memory_order_relaxed);
  ticket_.store(ticket(0, count), std::memory_order_release);
  phase_.fetch_add(1, std::memory_order_release);
  strata::detail::wake_all(phase_);
  help();
  for (std::size_t done = done_.load(std::memory_order_acquire); done != count; done = done_.load(std::memory_order_acquire))
    strata::detail::wait_while(done_, static_cast<std::uint32_t>(done), std::memory_order_acquire);
}

STRATA_FUNCTION void gather_team::resize(int threads) {
  if (threads > 1) others_.grow(static_cast<std::size_t>(threads - 1));
  for (; started_ + 1 < threads; ++started_)
    others_[static_cast<std::size_t>(started_)] = std::thread([this, rank = started_ + 1] { work(rank); });
  if (members_.exchange(threads, std::memory_order_release) < threads) strata::detail::wake_all(members_);
}

STRATA_STEP_FUNCTION void gather_team::work(int rank) {
  for (std::uint32_t seen = 0;;) {
    help();
    strata::detail::wait_while(phase_, seen, std::memory_order_acquire);
    for (int members = members_.load(std::memory_order_acquire); members <= rank;
         members = members_.load(std::memory_order_acquire))
      strata::detail::wait_while(members_, members, std::memory_order_acquire);
    seen = phase_.load(std::memory_order_acquire);
    // Loaded after the phase, which the destructor raises last. If it were loaded before, a stop could be missed.
    if (stops_.load(std::memory_order_relaxed)) return;
  }
}

STRATA_STEP_FUNCTION void gather_team::help() {
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
    if (done_.fetch_add(part, std::memory_order_acq_rel) + part == count) strata::detail::wake_all(done_);
  }
}

}  // namespace strata::data::detail
