// A communicator between threads of one process: messages are copied directly from sender to receiver.
#pragma once
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <strata/base/text.hpp>
#include <strata/communicators/message_memory.hpp>
#include <strata/communicators/message_queue.hpp>
#include <strata/concepts/communicator.hpp>
#include <thread>
#include <vector>

namespace strata {

/// in_process::group(n) makes all n members; each thread takes one.
class in_process {
 public:
  /// Memory for messages. A message shares its memory with the receiver, which may copy it after the sender has given up and
  /// ended.
  class memory {
   public:
    memory() = default;
    explicit memory(std::size_t bytes) : bytes_(std::make_shared<core::message_memory>(bytes)) {}

    std::byte* data() { return bytes_ ? bytes_->data() : nullptr; }

   private:
    friend in_process;
    std::shared_ptr<core::message_memory> bytes_;
  };

  static std::vector<in_process> group(int size, std::chrono::milliseconds timeout = std::chrono::seconds(30)) {
    auto mail = std::make_shared<std::vector<mailbox>>(std::size_t(size) * std::size_t(size));
    std::vector<in_process> members;
    for (int rank = 0; rank < size; ++rank) members.push_back(in_process(mail, rank, size, timeout));
    return members;
  }

  int rank() const { return rank_; }
  int size() const { return size_; }
  static memory allocate(std::size_t bytes) { return memory(bytes); }

  void send(memory& from, std::size_t offset, std::size_t bytes, int to) {
    mailbox& box = box_of(rank_, to);
    const std::uint32_t n = box.posted.load(std::memory_order_relaxed);
    const auto has_room = [&] {
      take_what_is_there();  // or two members that send to each other would wait without end
      return n - box.taken.load(std::memory_order_acquire) < ring;
    };
    wait_until(has_room, "room for a message", to);
    box.messages[n % ring] = {from.bytes_, from.data() + offset, bytes};
    box.posted.store(n + 1, std::memory_order_release);
  }
  void receive(memory& to, std::size_t offset, std::size_t bytes, int from) { expected_.push({to.data() + offset, bytes, from}); }
  std::uint64_t begun() const { return expected_.added(); }
  void wait_received(const char* what, std::uint64_t mark) {
    while (expected_.taken() < mark) {
      const expected& e = expected_.front();
      wait_until([&] { return is_there(e); }, what, e.from);
      take(e, what);
    }
  }
  void wait(const char* what) {
    wait_received(what, begun());
    for (int to = 0; to < size_; ++to) {
      mailbox& box = box_of(rank_, to);
      const std::uint32_t n = box.posted.load(std::memory_order_relaxed);
      wait_until([&] { return box.taken.load(std::memory_order_acquire) == n; }, what, to);
    }
  }

 private:
  static constexpr std::uint32_t ring = 32;
  struct message {
    std::shared_ptr<const core::message_memory> owner{};
    const std::byte* from = nullptr;
    std::size_t bytes = 0;
  };
  /// Messages from one member to another.
  struct mailbox {
    alignas(64) std::atomic<std::uint32_t> posted{0};
    alignas(64) std::atomic<std::uint32_t> taken{0};
    std::array<message, ring> messages{};
  };
  using expected = detail::expected_message;

  in_process(std::shared_ptr<std::vector<mailbox>> mail, int rank, int size, std::chrono::milliseconds timeout)
      : mail_(std::move(mail)), rank_(rank), size_(size), timeout_(timeout) {}
  bool is_there(const expected& e) {
    const mailbox& box = box_of(e.from, rank_);
    return box.posted.load(std::memory_order_acquire) != box.taken.load(std::memory_order_relaxed);
  }
  void take(const expected& e, const char* what) {
    mailbox& box = box_of(e.from, rank_);
    const std::uint32_t n = box.taken.load(std::memory_order_relaxed);
    message& m = box.messages[n % ring];
    if (m.bytes != e.bytes)
      throw communication_error(
          detail::text_of({what, ": process ", e.from, " sent ", m.bytes, " bytes where process ", rank_, " expects ", e.bytes}));
    std::memcpy(e.to, m.from, m.bytes);
    m.owner.reset();
    box.taken.store(n + 1, std::memory_order_release);
    expected_.pop();
  }
  void take_what_is_there() {
    while (!expected_.empty() && is_there(expected_.front())) take(expected_.front(), "a message");
  }
  mailbox& box_of(int from, int to) { return (*mail_)[std::size_t(from) * std::size_t(size_) + std::size_t(to)]; }

  /// Spins, then yields, because there are often more members than cores.
  template <class Ready>
  void wait_until(Ready&& ready, const char* what, int on) {
    for (int i = 0; i < 1000; ++i)
      if (ready()) return;
    const auto deadline = std::chrono::steady_clock::now() + timeout_;
    while (!ready()) {
      std::this_thread::yield();
      if (std::chrono::steady_clock::now() > deadline)
        throw communication_error(
            detail::text_of({what, ": process ", rank_, " has waited ", timeout_.count(), " ms for process ", on}));
    }
  }

  std::shared_ptr<std::vector<mailbox>> mail_;
  int rank_, size_;
  std::chrono::milliseconds timeout_;
  detail::message_queue<expected> expected_;
};
static_assert(core::communicator<in_process>);

}  // namespace strata
