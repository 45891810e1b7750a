// Launches a kernel on an emulated device: each thread is a function call or, where threads wait for each other, a fiber.
#pragma once
#include <boost/context/fiber.hpp>
#include <cstddef>
#include <cstring>
#include <memory>
#include <strata/base/error.hpp>
#include <strata/cuda/machine/emulated/fiber_stacks.hpp>
#include <strata/cuda/machine/emulated/lane.hpp>
#include <strata/cuda/machine/emulated/queue.hpp>
#include <strata/cuda/machine/emulated/work_counts.hpp>
#include <strata/cuda/machine/shared_bytes.hpp>
#include <utility>
#include <vector>

namespace strata::machine {

namespace detail {
/// Runs all threads of one block, in rounds: in each round every thread runs up to its next barrier or to its end. Threads run
/// in ascending order in one round and in descending order in the next, so that code which lacks a barrier gives wrong results.
/// Throws strata_error if some threads wait at a barrier and others have ended.
template <class Code, class Shared>
void run_block(long block, const Code& code, Shared& shared) {
  namespace context = boost::context;
  constexpr std::size_t threads = std::size_t(Code::threads);
  std::memset(static_cast<void*>(&shared), 0xcd, sizeof shared);  // so that code which relies on zeros gives wrong results
  block_of_threads all{std::vector<context::fiber>(threads), std::vector<context::fiber>(threads)};
  for (std::size_t t = 0; t < threads; ++t)
    all.fibers[t] = context::fiber(std::allocator_arg, fiber_stacks::of_this_thread{}, [&, t](context::fiber&& main) {
      all.back[t] = std::move(main);
      code(lane(int(t), block, &all), shared);
      return std::move(all.back[t]);
    });
  for (bool backwards = block % 2 == 1, goes_on = true; goes_on; backwards = !backwards) {
    std::size_t waiting = 0;
    for (std::size_t i = 0; i < threads; ++i) {
      context::fiber& next = all.fibers[backwards ? threads - 1 - i : i];
      if (!next) continue;
      next = std::move(next).resume();
      waiting += bool(next);
    }
    if (waiting != 0 && waiting != threads) throw_error("some threads of a block wait at a barrier that others never reach");
    goes_on = waiting != 0;
  }
}
}  // namespace detail

/// Enqueues a kernel of `blocks` blocks of Code::threads threads, or nothing if `blocks` is not positive. Each thread calls
/// code(lane) or, if there is a type Code::shared, code(lane, memory), where `memory` is one Code::shared for each block.
/// Throws device_lost if the device is lost.
template <class Code>
void launch(const queue& q, long blocks, const Code& code) {
  (void)detail::dynamic_shared_bytes<Code>();  // does not compile where it is too much
  if (blocks <= 0) return;
  detail::count(q, &work_counts::kernels, "a kernel");
  detail::enqueue(q, [blocks, code] {
    detail::machine_state::the().tell_threads(blocks * Code::threads);
    if constexpr (requires { typename Code::shared; }) {
      const auto memory = std::make_unique<typename Code::shared>();
      for (long b = 0; b < blocks; ++b) detail::run_block(b, code, *memory);
    } else {
      for (long b = blocks - 1; b >= 0; --b)
        for (int t = 0; t < Code::threads; ++t) code(lane(t, b, nullptr));
    }
  });
}

}  // namespace strata::machine
