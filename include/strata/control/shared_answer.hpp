// The answer to get_all that the members of a run share. Needs gRPC.
// needs: grpc
#pragma once
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <strata/control/control_messages.hpp>
#include <string>
#include <utility>

namespace strata::control {

/// The last answer to get_all, as the bytes that are sent. All members request the same values and share it. The memory of all
/// such answers that gRPC still sends is bounded.
class shared_answer {
 public:
  /// The answer, or null if it is for other values.
  const grpc::Slice* find(const get_all_request& wanted) const {
    return prefix_ == wanted.prefix && count_ == wanted.count ? &answer_ : nullptr;
  }
  /// True if an answer of `bytes` bytes may be sent, too.
  bool has_room_for(std::size_t bytes) const { return *under_way_ + bytes <= most_under_way; }
  /// Stores the answer `sealed` for other requests of the same values.
  const grpc::Slice& keep(const get_all_request& wanted, std::string sealed) {
    std::string prefix = wanted.prefix;  // copied first: if that throws, nothing has changed
    answer_ = counted(std::move(sealed));
    prefix_ = std::move(prefix), count_ = wanted.count;
    return answer_;
  }
  void clear() { prefix_.clear(), count_ = 0, answer_ = {}; }
  /// A value was set: forgets the answer if it may contain an older one.
  void value_is_set(const std::string& key) {
    if (key.starts_with(prefix_)) clear();
  }

 private:
  /// Its bytes count as under way until the last call that it answers has ended.
  grpc::Slice counted(std::string text) const {
    struct counted_text {
      std::string text;
      std::shared_ptr<std::atomic<std::size_t>> under_way;
    };
    auto all = std::make_unique<counted_text>(counted_text{std::move(text), under_way_});
    *under_way_ += all->text.size();
    const auto end = [](void* ended) {
      const std::unique_ptr<counted_text> sent(static_cast<counted_text*>(ended));
      *sent->under_way -= sent->text.size();
    };
    counted_text* const raw = all.release();
    return grpc::Slice(raw->text.data(), raw->text.size(), end, raw);
  }

  static constexpr std::size_t most_under_way = 32 << 20;

  std::string prefix_;
  int count_ = 0;
  grpc::Slice answer_;
  /// Bytes of the answers under way. gRPC may hold them for longer than the coordinator lives.
  const std::shared_ptr<std::atomic<std::size_t>> under_way_ = std::make_shared<std::atomic<std::size_t>>(0);
};

}  // namespace strata::control
