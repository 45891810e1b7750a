// Serializes a tf.train.Example. Needs protozero (headers only).
// needs: protozero
#pragma once
#ifndef __cpp_exceptions
#error "protozero, which handles tf.train.Example, throws exceptions: compile the program without -fno-exceptions"
#endif
#include <cstddef>
#include <cstdint>
#include <limits>
#include <protozero/pbf_writer.hpp>
#include <protozero/varint.hpp>
#include <span>
#include <strata/base/error.hpp>
#include <string>
#include <string_view>

namespace strata::data {

/// Makes the bytes of a tf.train.Example from named features:
///
///     data::example_builder e;
///     for (...) {
///       e.clear();
///       e.floats("image", pixels).integer("label", 3);
///       writer.write(e.serialized());
///     }
///
/// Of two features with the same name the later is used. Nothing is allocated once the largest Example has been built. Throws
/// strata_error if the Example exceeds 2 GiB, the limit of protobuf.
/// https://www.tensorflow.org/api_docs/python/tf/train/Example
class example_builder {
  using bytes_view = std::span<const std::byte>;

 public:
  example_builder() { clear(); }

  // One value.
  example_builder& bytes(std::string_view key, bytes_view value) { return bytes_list(key, {&value, 1}); }
  example_builder& text(std::string_view key, std::string_view value) { return bytes(key, std::as_bytes(std::span(value))); }
  example_builder& number(std::string_view key, float value) { return floats(key, {&value, 1}); }
  example_builder& integer(std::string_view key, std::int64_t value) { return integers(key, {&value, 1}); }

  // Any number of values.
  example_builder& bytes_list(std::string_view key, std::span<const bytes_view> values) {
    std::size_t size = 0;
    for (const bytes_view& value : values) size += delimited(value.size());
    return add(key, 1, size, [&](protozero::pbf_writer& list) {
      for (const bytes_view& value : values) list.add_bytes(1, reinterpret_cast<const char*>(value.data()), value.size());
    });
  }
  example_builder& floats(std::string_view key, std::span<const float> values) {
    return add(key, 2, values.empty() ? 0 : delimited(values.size_bytes()),
               [&](protozero::pbf_writer& list) { list.add_packed_float(1, values.begin(), values.end()); });
  }
  example_builder& integers(std::string_view key, std::span<const std::int64_t> values) {
    std::size_t size = 0;
    for (const std::int64_t value : values) size += std::size_t(protozero::length_of_varint(std::uint64_t(value)));
    return add(key, 3, values.empty() ? 0 : delimited(size),
               [&](protozero::pbf_writer& list) { list.add_packed_int64(1, values.begin(), values.end()); });
  }

  void clear() { buffer_.assign(head, '\0'); }

  /// Valid until the next call of another member.
  std::span<const std::byte> serialized() {
    // The length of the features is available now; it is written in front of them.
    char text[head];
    char* end = text;
    *end++ = 1 << 3 | int(protozero::pbf_wire_type::length_delimited);
    end += protozero::add_varint_to_buffer(end, buffer_.size() - head);
    const std::size_t begin = head - std::size_t(end - text);
    buffer_.replace(begin, head - begin, text, head - begin);
    return std::as_bytes(std::span(buffer_).subspan(begin));
  }

 private:
  static constexpr std::size_t head = 1 + 5;  // field and length, at most

  std::string buffer_;

  /// The size of a field with its number and length.
  static std::size_t delimited(std::size_t bytes) { return 1 + std::size_t(protozero::length_of_varint(bytes)) + bytes; }

  /// Writes with sizes computed in advance, so that nothing is moved when a message ends.
  template <class Write>
  example_builder& add(std::string_view key, protozero::pbf_tag_type kind, std::size_t list_size, Write write) {
    const std::size_t feature_size = delimited(list_size), entry_size = delimited(key.size()) + delimited(feature_size);
    if (buffer_.size() + delimited(entry_size) > std::size_t{std::numeric_limits<std::int32_t>::max()})
      throw_error("example_builder: with feature '" + std::string(key.substr(0, 60)) +
                  "' the Example would have more than 2 GiB, which protobuf does not allow");
    protozero::pbf_writer features(buffer_);
    protozero::pbf_writer entry(features, 1, entry_size);
    entry.add_string(1, key.data(), key.size());
    protozero::pbf_writer feature(entry, 2, feature_size);
    if (list_size == 0) {
      feature.add_message(kind, "", 0);
    } else {
      protozero::pbf_writer list(feature, kind, list_size);
      write(list);
    }
    return *this;
  }
};

}  // namespace strata::data
