// message_link: one end of a connection that carries frames, each a call of the other process, its answer, or a ping.
#pragma once
#include <poll.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <strata/base/text.hpp>
#include <strata/net/byte_stream.hpp>
#include <strata/net/call_status.hpp>
#include <strata/net/envelope.hpp>
#include <string>
#include <string_view>
#include <utility>

namespace strata::detail {

/// Each side begins with these bytes. Another version of the frames has another digit.
inline constexpr std::string_view greeting = "strata 1";

enum class frame_kind : std::uint8_t { request = 1, answer, cancel, ping, pong };

/// A frame is a header, as it is in memory, little endian, and its content: for a request the name of the method and an envelope;
/// for an answer an envelope or, if the call has failed, the reason as a text; otherwise nothing.
struct frame_header {
  std::uint64_t bytes = 0;  // of the content
  std::uint32_t call = 0;   // the caller's number of the call
  frame_kind kind{};
  status_code code{};             // of an answer
  std::uint8_t method_bytes = 0;  // of a request
  std::uint8_t reserved = 0;
};
static_assert(sizeof(frame_header) == 16);

/// Memory that grows as bytes arrive: a length that another process announces allocates nothing.
class growing_bytes {
  struct free_memory {
    void operator()(std::byte* p) const { std::free(p); }
  };
  std::unique_ptr<std::byte, free_memory> data_;
  std::size_t size_ = 0, capacity_ = 0;

 public:
  /// Room for more bytes, of which there will be `all` at last.
  std::span<std::byte> room(std::size_t all) {
    if (size_ == capacity_) {
      const std::size_t larger = std::min(all, std::max<std::size_t>(2 * capacity_, 1 << 14));
      void* const moved = std::realloc(data_.get(), larger);
      if (!moved) throw std::bad_alloc();
      (void)data_.release();
      data_.reset(static_cast<std::byte*>(moved));
      capacity_ = larger;
    }
    return {data_.get() + size_, capacity_ - size_};
  }
  void has_got(std::size_t bytes) { size_ += bytes; }
  std::size_t size() const { return size_; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_.get()), size_}; }
};

struct received_frame {
  frame_header head{};
  growing_bytes bytes{};  // none if there were too many

  bool is_whole() const { return bytes.size() == head.bytes; }
  std::string_view method() const { return bytes.text().substr(0, head.method_bytes); }
  std::string_view content() const { return bytes.text().substr(head.method_bytes); }
};

/// Pings, which detect that the other process or the network is gone.
struct ping_times {
  std::chrono::milliseconds after = std::chrono::seconds(2), timeout = std::chrono::seconds(2);
};

/// Reads and writes what is possible without waiting. Has one owner, in one thread at a time.
class message_link {
  using clock = std::chrono::steady_clock;

 public:
  static constexpr const char* other_protocol =
      "does not speak the protocol of this version of strata: all processes need the same version";

  /// `serves`: takes requests; otherwise takes answers. The stream's two sides have greeted each other.
  message_link(std::unique_ptr<byte_stream> stream, bool serves, std::size_t largest_content)
      : stream_(std::move(stream)), serves_(serves), largest_(largest_content) {
    out_.push_back({std::string(greeting), {}});
  }

  int socket() const { return stream_->socket(); }
  /// True once the other side's greeting has come.
  bool is_greeted() const { return is_greeted_; }
  /// The largest content that is taken.
  void set_largest(std::size_t bytes) { largest_ = bytes; }
  bool has_ended() const { return has_ended_; }
  const std::string& why() const { return why_; }
  /// What poll has to wait for.
  short events() const { return short(POLLIN | (out_.empty() ? 0 : POLLOUT)); }
  bool has_to_write() const { return !out_.empty(); }
  /// True if the other side does not read its answers: it should not be read either.
  bool is_congested() const { return out_.size() >= most_waiting; }

  void send(frame_header head, std::string_view method, wire::sealed_message content) {
    head.method_bytes = std::uint8_t(method.size());
    head.bytes = method.size() + content.size();
    std::string begin(sizeof head, '\0');
    std::memcpy(begin.data(), &head, sizeof head);
    begin.reserve(sizeof head + method.size() + content.head.size());
    begin += method;
    begin += content.head;
    content.head = std::move(begin);
    if (out_is_broken_) return;
    out_.push_back(std::move(content));
    flush();
  }
  void send(frame_kind kind, std::uint32_t call = 0) { send({.call = call, .kind = kind}, {}, {}); }

  /// Writes what is possible. If the connection is broken, what had come before can still be received.
  void flush() {
    while (!out_.empty()) {
      wire::sealed_message& m = out_.front();
      const std::span<const std::byte> part = part_ == 0 ? std::as_bytes(std::span(m.head)) : m.elements[part_ - 1].bytes;
      while (at_ < part.size()) {
        const stream_progress p = stream_->write(part.data() + at_, part.size() - at_);
        if (p.is_broken || p.is_closed) {
          out_is_broken_ = true;
          if (why_.empty()) why_ = reason_of(p);
          out_.clear(), part_ = at_ = 0;
          return;
        }
        if (p.bytes == 0) return;
        at_ += p.bytes, moved_ = clock::now();
      }
      at_ = 0;
      if (part_++ == m.elements.size()) out_.pop_front(), part_ = 0;
    }
  }

  /// The next frame, or nothing until more bytes come. The content of one that is too large is dropped.
  std::optional<received_frame> receive() {
    while (!has_ended_) {
      if (dropped_ > 0) {
        if (begin_ == end_) begin_ = 0, end_ = read(buffer_);
        if (begin_ == end_) return {};
        const std::size_t here = std::size_t(std::min<std::uint64_t>(dropped_, end_ - begin_));
        begin_ += here, dropped_ -= here;
        continue;
      }
      if (!has_header_) {
        const std::size_t needed = is_greeted_ ? sizeof(frame_header) : greeting.size();
        if (end_ - begin_ < needed) {
          std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
          end_ -= std::exchange(begin_, 0);
          if (const std::size_t got = read({buffer_.data() + end_, buffer_.size() - end_}); got > 0)
            end_ += got;
          else
            return {};
          continue;
        }
        is_greeted_ ? take_header() : take_greeting();
        begin_ += needed;
        continue;
      }
      const std::size_t missing = now_.head.bytes - now_.bytes.size();
      if (missing == 0 || now_.head.bytes > largest_) {
        if (missing > 0) dropped_ = now_.head.bytes;
        has_header_ = false;
        return std::exchange(now_, {});
      }
      const std::span<std::byte> room = now_.bytes.room(now_.head.bytes);
      if (const std::size_t here = std::min({missing, room.size(), end_ - begin_}); here > 0) {
        std::memcpy(room.data(), buffer_.data() + begin_, here);
        begin_ += here;
        now_.bytes.has_got(here);
      } else if (const std::size_t got = read(room); got > 0) {
        now_.bytes.has_got(got);
      } else {
        return {};
      }
    }
    return {};
  }

  /// Sends a ping if nothing has moved for a while. Ends the connection if a ping is not answered.
  void check_life(clock::time_point now, const ping_times& pings) {
    if (has_ended_ || now - moved_ < (is_pinged_ ? pings.timeout : pings.after)) return;
    if (is_pinged_) return end("the other process does not answer pings");
    is_pinged_ = true, moved_ = now;
    if (out_.empty()) send(frame_kind::ping);  // otherwise the other side has something to take
  }
  void end(const std::string& why) {
    has_ended_ = true;
    if (why_.empty()) why_ = why;
  }

 private:
  static constexpr std::size_t most_waiting = 64;  // frames that the other side has not taken

  std::string reason_of(const stream_progress& p) const {
    return p.is_closed ? "the other side has closed the connection" : stream_->why_broken();
  }
  std::size_t read(std::span<std::byte> to) {
    const stream_progress p = stream_->read(to.data(), to.size());
    if (p.is_broken || p.is_closed) end(reason_of(p));
    if (p.bytes > 0) is_pinged_ = false, moved_ = clock::now();
    return p.bytes;
  }
  void take_greeting() {
    if (std::memcmp(buffer_.data() + begin_, greeting.data(), greeting.size()) != 0) return end(other_protocol);
    is_greeted_ = true;
  }
  void take_header() {
    frame_header& h = now_.head;
    std::memcpy(&h, buffer_.data() + begin_, sizeof h);
    const bool is_call = serves_ ? h.kind == frame_kind::request : h.kind == frame_kind::answer;
    const bool is_mark = h.kind == frame_kind::ping || h.kind == frame_kind::pong || (serves_ && h.kind == frame_kind::cancel);
    const bool is_right = h.reserved == 0 && h.code <= last_status_code && (is_call || (is_mark && h.bytes == 0)) &&
                          h.method_bytes <= (serves_ ? h.bytes : 0);
    if (!is_right) return end("it has sent a malformed frame");
    has_header_ = true;
  }

  std::unique_ptr<byte_stream> stream_;
  bool serves_;
  std::size_t largest_;
  std::deque<wire::sealed_message> out_;
  std::size_t part_ = 0, at_ = 0;  // of the first message, what is written next
  std::array<std::byte, 1 << 12> buffer_;
  std::size_t begin_ = 0, end_ = 0;  // of what has not been taken from the buffer
  std::uint64_t dropped_ = 0;        // bytes that follow
  received_frame now_;
  clock::time_point moved_ = clock::now();
  bool is_greeted_ = false, has_header_ = false, is_pinged_ = false, out_is_broken_ = false, has_ended_ = false;
  std::string why_;
};

}  // namespace strata::detail
