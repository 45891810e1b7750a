// Messages that wait their turn: those that have not arrived, in the order in which they were asked for, or not gone out.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace strata::detail {

/// A queue whose memory grows with what is in it at one time alone, not with what has passed.
template <class Message>
class message_queue {
  std::vector<Message> all_;
  std::size_t next_ = 0;  // those from here on have not been taken
  std::uint64_t added_ = 0;

 public:
  message_queue() { all_.reserve(64); }

  bool empty() const { return next_ == all_.size(); }
  Message& front() { return all_[next_]; }
  void pop() { ++next_; }
  void push(const Message& m) {
    if (all_.size() == all_.capacity()) {
      all_.erase(all_.begin(), all_.begin() + std::ptrdiff_t(next_));
      next_ = 0;
    }
    all_.push_back(m);
    ++added_;
  }
  void clear() { next_ = all_.size(); }
  /// How many there have ever been, and how many of them have been taken.
  std::uint64_t added() const { return added_; }
  std::uint64_t taken() const { return added_ - (all_.size() - next_); }
};

/// Where a message goes that has not arrived.
struct expected_message {
  std::byte* to;
  std::size_t bytes;
  int from;
};

}  // namespace strata::detail
