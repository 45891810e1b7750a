// One thread of an emulated kernel, as the code of the kernel sees it.
#pragma once
#include <boost/context/fiber.hpp>
#include <cstddef>
#include <utility>
#include <vector>

/// Marks code that only runs on a device. Empty here; nvcc needs a word there, see hardware.cuh.
#define STRATA_DEVICE

namespace strata::machine {

namespace detail {

/// The threads of one block whose threads wait for each other, as fibers.
struct block_of_threads {
  std::vector<boost::context::fiber> fibers;  // one for each thread
  std::vector<boost::context::fiber> back;    // for each thread, the fiber of run_block, which a barrier resumes
};

}  // namespace detail

/// One thread of a kernel. A kernel is a function object that is called with a lane: see launch.
class lane {
  int thread_;
  long block_;
  detail::block_of_threads* all_;

 public:
  /// all: the threads of the block. Null if they do not wait for each other.
  lane(int thread, long block, detail::block_of_threads* all) : thread_(thread), block_(block), all_(all) {}
  /// The index of this thread in its block.
  int thread() const { return thread_; }
  /// The index of its block in the kernel.
  long block() const { return block_; }
  /// The same thread, with blocks counted from block `first`: its block() is less by `first`.
  lane from_block(long first) const { return {thread_, block_ - first, all_}; }
  /// Returns when all threads of the block have called it. Only kernels with Code::shared may call it.
  void barrier() const {
    auto& back = all_->back[std::size_t(thread_)];
    back = std::move(back).resume();
  }
};

}  // namespace strata::machine
