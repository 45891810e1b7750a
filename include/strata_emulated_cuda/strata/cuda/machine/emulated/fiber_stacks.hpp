// Stacks for fibers. A fiber is one thread of an emulated kernel whose threads wait for each other.
#pragma once
#include <boost/context/stack_context.hpp>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <vector>

namespace strata::machine::detail {

/// A pool of stacks, 64 KiB each. A stack that a fiber no longer needs serves the next fiber. Not safe for several threads.
class fiber_stacks {
  static constexpr std::size_t size = std::size_t{64} << 10;
  std::vector<void*> free_;

 public:
  fiber_stacks() = default;
  fiber_stacks(const fiber_stacks&) = delete;
  fiber_stacks& operator=(const fiber_stacks&) = delete;
  ~fiber_stacks() {
    for (void* each : free_) std::free(each);
  }
  /// Returns a stack of the pool, or a new one if the pool is empty. Throws std::bad_alloc.
  boost::context::stack_context allocate() {
    void* bottom = nullptr;
    if (free_.empty()) {
      bottom = std::aligned_alloc(64, size);
      if (!bottom) throw std::bad_alloc();
    } else {
      bottom = free_.back();
      free_.pop_back();
    }
    boost::context::stack_context stack;
    stack.size = size;
    stack.sp = static_cast<std::byte*>(bottom) + size;
    return stack;
  }
  /// Gives a stack back to the pool.
  void deallocate(const boost::context::stack_context& stack) { free_.push_back(static_cast<std::byte*>(stack.sp) - size); }

  /// Allocates stacks for boost::context::fiber from the pool of the calling thread of the program.
  struct of_this_thread {
    static fiber_stacks& all() {
      thread_local fiber_stacks stacks;
      return stacks;
    }
    boost::context::stack_context allocate() const { return all().allocate(); }
    void deallocate(const boost::context::stack_context& stack) const { all().deallocate(stack); }
  };
};

}  // namespace strata::machine::detail
