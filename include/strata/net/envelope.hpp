// The format of every gRPC message: its sender, a message of the method, and perhaps a large array. Needs gRPC and protozero.
// needs: grpc protozero
#pragma once
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

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

/// A slice of bytes that are kept alive by `owner`, without a copy.
template <class T>
grpc::Slice shared_slice(std::shared_ptr<const T> owner, const T* begin, std::size_t count) {
  auto held = std::make_unique<std::shared_ptr<const T>>(std::move(owner));
  return grpc::Slice(
      const_cast<T*>(begin), count * sizeof(T), [](void* p) { delete static_cast<std::shared_ptr<const T>*>(p); },
      held.release());
}

namespace detail {
enum envelope_field : std::uint32_t { sender_field = 1, body_field = 2, elements_field = 3 };

inline grpc::ByteBuffer with_elements(std::string head, std::span<const grpc::Slice> elements) {
  std::size_t bytes = 0;
  for (const grpc::Slice& e : elements) bytes += e.size();
  if (bytes == 0) {
    const grpc::Slice slice(head);
    return grpc::ByteBuffer(&slice, 1);
  }
  pbf_writer(head).add_bytes(elements_field, "", 0);
  head.pop_back();  // the length, 0
  protozero::add_varint_to_buffer(&head, bytes);
  std::vector<grpc::Slice> slices;
  slices.reserve(elements.size() + 1);
  slices.emplace_back(head);
  slices.insert(slices.end(), elements.begin(), elements.end());
  return grpc::ByteBuffer(slices.data(), slices.size());
}
}  // namespace detail

/// Encodes a request.
template <message M>
grpc::ByteBuffer sealed(const sender& from, const M& body, std::span<const grpc::Slice> elements = {}) {
  std::string head;
  head.reserve(128);
  detail::pbf_writer to(head);
  detail::write(to, detail::sender_field, from);
  detail::write(to, detail::body_field, body);
  return detail::with_elements(std::move(head), elements);
}
/// Encodes an answer.
template <message M>
std::string sealed_text(const M& body) {
  std::string head;
  detail::pbf_writer to(head);
  detail::write(to, detail::body_field, body);
  return head;
}
template <message M>
grpc::ByteBuffer sealed(const M& body, std::span<const grpc::Slice> elements = {}) {
  return detail::with_elements(sealed_text(body), elements);
}

/// A received envelope. After construction the reader stands in front of the elements.
class envelope {
 public:
  /// Throws malformed_message.
  explicit envelope(const grpc::ByteBuffer& received) {
    if (received.Valid() && received.Dump(&slices_).ok())
      for (const grpc::Slice& s : slices_) left_ += s.size();
    while (left_ > 0) {
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
      if (bytes > left_)
        refuse(strata::detail::text_of({"field ", tag, " announces more bytes than the ", left_, " that follow"}));
      if (tag == detail::elements_field) {
        left_ = bytes;
        return;
      }
      if (tag == detail::sender_field)
        sender_ = view(bytes, sender_copy_);
      else if (tag == detail::body_field)
        body_ = view(bytes, body_copy_);
      else
        skip(bytes);
    }
  }
  envelope(const envelope&) = delete;
  envelope& operator=(const envelope&) = delete;

  sender from() const { return decode<sender>(sender_); }
  /// std::string_view members point into this envelope.
  template <message M>
  M body() const {
    return decode<M>(body_);
  }

  /// Bytes of elements that have not been read.
  std::size_t left() const { return left_; }
  /// Reads the next elements, of which there must be enough.
  void read(void* to, std::size_t bytes) {
    auto* out = static_cast<std::byte*>(to);
    for (left_ -= bytes; bytes > 0;) {
      const grpc::Slice& s = slices_[slice_];
      const std::size_t some = std::min(bytes, s.size() - at_);
      if (some > 0) std::memcpy(out, s.begin() + at_, some);
      out += some, at_ += some, bytes -= some;
      if (at_ == s.size()) ++slice_, at_ = 0;
    }
  }

 private:
  [[noreturn]] static void refuse(const std::string& why) { throw malformed_message("message", why); }

  /// The next bytes, in place if one slice has all of them; otherwise in `copy`.
  std::string_view view(std::size_t bytes, std::string& copy) {
    if (slice_ < slices_.size() && slices_[slice_].size() - at_ >= bytes) {
      const auto* const begin = reinterpret_cast<const char*>(slices_[slice_].begin() + at_);
      skip(bytes);
      return {begin, bytes};
    }
    copy.resize(bytes);
    read(copy.data(), bytes);
    return copy;
  }
  void skip(std::size_t bytes) {
    for (left_ -= bytes; bytes > 0;) {
      const std::size_t some = std::min(bytes, slices_[slice_].size() - at_);
      at_ += some, bytes -= some;
      if (at_ == slices_[slice_].size()) ++slice_, at_ = 0;
    }
  }

  /// https://protobuf.dev/programming-guides/encoding/#varints
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      std::uint8_t byte = 0;
      if (left_ == 0) refuse("it ends within a number");
      read(&byte, 1);
      value |= std::uint64_t(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    refuse("a number has more than 10 bytes");
  }

  std::vector<grpc::Slice> slices_;
  std::size_t slice_ = 0, at_ = 0, left_ = 0;
  std::string sender_copy_, body_copy_;
  std::string_view sender_, body_;
};

}  // namespace strata::wire
