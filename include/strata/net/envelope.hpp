// The format of every message of the control plane: its sender, a message of the method, and perhaps a large array. Needs
// protozero.
// needs: protozero
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <protozero/varint.hpp>
#include <span>
#include <strata/base/text.hpp>
#include <strata/net/message.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace strata::wire {

/// The process that sends a message.
struct sender {
  std::string run{};             // cluster::run_id
  std::uint64_t generation = 0;  // of the cluster
  int rank = -1;                 // -1: no member
  std::uint64_t incarnation = 0;

  static constexpr auto message_name = "sender";
  using fields = wire::fields<field<1, &sender::run, 1024>, field<2, &sender::generation>, field<3, &sender::rank>,
                              field<4, &sender::incarnation>>;
};

// An envelope is this protobuf message. Its elements are not copied while it is built, and only to their destination when it is
// read.
//     message Envelope {
//       Sender sender = 1;    // of requests
//       bytes body = 2;       // a message that the method names
//       bytes elements = 3;   // an array as it is in memory, little endian; the last field
//     }

/// Bytes that are sent without a copy, and what keeps them alive until then.
struct shared_bytes {
  std::shared_ptr<const void> owner{};
  std::span<const std::byte> bytes{};
};
template <class T>
shared_bytes shared_array(std::shared_ptr<const void> owner, const T* begin, std::size_t count) {
  return {std::move(owner), std::as_bytes(std::span(begin, count))};
}

/// An encoded envelope: a text, and then arrays.
struct sealed_message {
  std::string head{};
  std::vector<shared_bytes> elements{};

  std::size_t size() const {
    std::size_t bytes = head.size();
    for (const shared_bytes& e : elements) bytes += e.bytes.size();
    return bytes;
  }
};

namespace detail {
enum envelope_field : std::uint32_t { sender_field = 1, body_field = 2, elements_field = 3 };

inline sealed_message with_elements(std::string head, std::vector<shared_bytes> elements) {
  const std::size_t bytes = sealed_message{{}, elements}.size();
  if (bytes == 0) return {std::move(head), {}};
  pbf_writer(head).add_bytes(elements_field, "", 0);
  head.pop_back();  // the length, 0
  protozero::add_varint_to_buffer(&head, bytes);
  return {std::move(head), std::move(elements)};
}
}  // namespace detail

/// Encodes a request.
template <message M>
sealed_message sealed(const sender& from, const M& body, std::vector<shared_bytes> elements = {}) {
  std::string head;
  head.reserve(128);
  detail::pbf_writer to(head);
  detail::write(to, detail::sender_field, from);
  detail::write(to, detail::body_field, body);
  return detail::with_elements(std::move(head), std::move(elements));
}
/// Encodes an answer.
template <message M>
sealed_message sealed(const M& body, std::vector<shared_bytes> elements = {}) {
  std::string head;
  detail::pbf_writer to(head);
  detail::write(to, detail::body_field, body);
  return detail::with_elements(std::move(head), std::move(elements));
}

/// A received envelope, which refers to the bytes. After construction the reader stands in front of the elements.
class envelope {
 public:
  /// Throws malformed_message.
  explicit envelope(std::string_view received) : rest_(received) {
    while (!rest_.empty()) {
      const std::uint64_t key = varint(), tag = key >> 3;
      const auto type = protozero::pbf_wire_type(key & 7);
      const bool is_delimited = type == protozero::pbf_wire_type::length_delimited;
      if (tag == 0 || tag > UINT32_MAX || (tag <= detail::elements_field && !is_delimited))
        refuse(strata::detail::text_of({"it begins a field with ", key}));
      const std::uint64_t bytes = is_delimited                                ? varint()
                                  : type == protozero::pbf_wire_type::fixed64 ? 8
                                  : type == protozero::pbf_wire_type::fixed32 ? 4
                                  : type == protozero::pbf_wire_type::varint  ? (varint(), 0)
                                                                              : std::uint64_t(-1);
      if (bytes > rest_.size())
        refuse(strata::detail::text_of({"field ", tag, " announces more bytes than the ", rest_.size(), " that follow"}));
      const std::string_view content = rest_.substr(0, bytes);
      if (tag == detail::elements_field) {
        rest_ = content;
        return;
      }
      if (tag == detail::sender_field)
        sender_ = content;
      else if (tag == detail::body_field)
        body_ = content;
      rest_.remove_prefix(bytes);
    }
  }

  sender from() const { return decode<sender>(sender_); }
  /// std::string_view members point into the received bytes.
  template <message M>
  M body() const {
    return decode<M>(body_);
  }

  /// Bytes of elements that have not been read.
  std::size_t left() const { return rest_.size(); }
  /// Reads the next elements, of which there must be enough.
  void read(void* to, std::size_t bytes) {
    if (bytes > 0) std::memcpy(to, rest_.data(), bytes);
    rest_.remove_prefix(bytes);
  }

 private:
  [[noreturn]] static void refuse(const std::string& why) { throw malformed_message("message", why); }

  /// https://protobuf.dev/programming-guides/encoding/#varints
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) refuse("it ends within a number");
      const auto byte = static_cast<std::uint8_t>(rest_.front());
      rest_.remove_prefix(1);
      value |= std::uint64_t(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    refuse("a number has more than 10 bytes");
  }

  std::string_view rest_, sender_, body_;
};

}  // namespace strata::wire
