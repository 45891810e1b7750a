// Where messages go that have not arrived, in the order in which they were asked for.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace strata::detail {

struct expected_message {
  std::byte* to;
  std::size_t bytes;
  int from;
};

/// A queue whose memory grows with what is expected at one time alone, not with what has passed.
class expected_messages {
  std::vector<expected_message> all_;
  std::size_t next_ = 0;  // those from here on have not been taken
  std::uint64_t added_ = 0;

 public:
  explicit expected_messages(std::size_t at_one_time = 64) { all_.reserve(at_one_time); }

  bool empty() const { return next_ == all_.size(); }
  const expected_message& front() const { return all_[next_]; }
  void pop() { ++next_; }
  void push(expected_message m) {
    if (all_.size() == all_.capacity()) {
      all_.erase(all_.begin(), all_.begin() + std::ptrdiff_t(next_));
      next_ = 0;
    }
    all_.push_back(m);
    ++added_;
  }
  /// How many there have ever been, and how many of them have been taken.
  std::uint64_t added() const { return added_; }
  std::uint64_t taken() const { return added_ - (all_.size() - next_); }
};

}  // namespace strata::detail
