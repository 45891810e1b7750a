// The answer to get_all that the members of a run share.
#pragma once
#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <strata/control/control_messages.hpp>
#include <strata/net/envelope.hpp>
#include <string>
#include <utility>

namespace strata::control {

/// The last answer to get_all, as the bytes that are sent. All members request the same values and share it. The memory of all
/// such answers that are still being sent is bounded.
class shared_answer {
 public:
  /// The answer; nothing if it is for other values.
  std::optional<wire::sealed_message> find(const get_all_request& wanted) const {
    if (prefix_ != wanted.prefix || count_ != wanted.count) return {};
    return wire::sealed_message{{}, {answer_}};
  }
  /// True if an answer of `bytes` bytes may be sent, too.
  bool has_room_for(std::size_t bytes) const { return *under_way_ + bytes <= most_under_way; }
  /// Stores the answer `sealed` for other requests of the same values.
  wire::sealed_message keep(const get_all_request& wanted, std::string sealed) {
    std::string prefix = wanted.prefix;  // copied first: if that throws, nothing has changed
    answer_ = counted(std::move(sealed));
    prefix_ = std::move(prefix), count_ = wanted.count;
    return {{}, {answer_}};
  }
  void clear() { prefix_.clear(), count_ = 0, answer_ = {}; }
  /// A value was set: forgets the answer if it may contain an older one.
  void value_is_set(const std::string& key) {
    if (key.starts_with(prefix_)) clear();
  }

 private:
  /// Its bytes count as under way until the last call that it answers has ended.
  wire::shared_bytes counted(std::string text) const {
    struct counted_text {
      const std::string text;
      const std::shared_ptr<std::atomic<std::size_t>> under_way;
      counted_text(std::string t, std::shared_ptr<std::atomic<std::size_t>> u) : text(std::move(t)), under_way(std::move(u)) {
        *under_way += text.size();
      }
      ~counted_text() { *under_way -= text.size(); }
    };
    const auto all = std::make_shared<const counted_text>(std::move(text), under_way_);
    return wire::shared_array(all, all->text.data(), all->text.size());
  }

  static constexpr std::size_t most_under_way = 32 << 20;

  std::string prefix_;
  int count_ = 0;
  wire::shared_bytes answer_;
  /// Bytes of the answers under way. A connection may hold them for longer than the coordinator lives.
  const std::shared_ptr<std::atomic<std::size_t>> under_way_ = std::make_shared<std::atomic<std::size_t>>(0);
};

}  // namespace strata::control
