// A queue of messages that have not been sent yet, or of receives whose messages have not arrived.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace strata::detail {

/// First in, first out. Its memory grows with the messages that are in it at one time.
template <class Message>
class message_queue {
  std::vector<Message> all_;
  std::size_t next_ = 0;  // the first message in the queue; those before it were taken
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
  /// The number of messages that were added since the beginning, and that were taken.
  std::uint64_t added() const { return added_; }
  std::uint64_t taken() const { return added_ - (all_.size() - next_); }
};

/// A receive whose message has not arrived.
struct expected_message {
  std::byte* to;
  std::size_t bytes;
  int from;
};

}  // namespace strata::detail
