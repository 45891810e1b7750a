// Stacks of the fibers that are the threads of a kernel.
// needs: boost_context
#pragma once
#include <boost/context/stack_context.hpp>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <vector>

namespace strata::machine::detail {

/// Stacks for fibers, which are used again.
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
  void deallocate(const boost::context::stack_context& stack) { free_.push_back(static_cast<std::byte*>(stack.sp) - size); }

  /// Of one thread of the program.
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
