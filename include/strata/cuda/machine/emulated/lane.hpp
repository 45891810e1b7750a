// One thread of a kernel, and the block that it belongs to.
// needs: boost_context
#pragma once
#include <boost/context/fiber.hpp>
#include <cstddef>
#include <utility>
#include <vector>

#define STRATA_DEVICE

namespace strata::machine {

namespace detail {

/// The fibers of one block.
struct block_of_threads {
  std::vector<boost::context::fiber> fibers;
  std::vector<boost::context::fiber> back;  // of each thread: where its barrier returns to
};

}  // namespace detail

/// One thread of a kernel. A kernel is a function object: see launch.
class lane {
  int thread_;
  long block_;
  detail::block_of_threads* all_;

 public:
  lane(int thread, long block, detail::block_of_threads* all) : thread_(thread), block_(block), all_(all) {}
  int thread() const { return thread_; }
  long block() const { return block_; }
  /// The same thread of a kernel whose first block is that one.
  lane from_block(long first) const { return {thread_, block_ - first, all_}; }
  void barrier() const {
    auto& back = all_->back[std::size_t(thread_)];
    back = std::move(back).resume();
  }
};

}  // namespace strata::machine
