// Encodes and decodes messages in protobuf's wire format (https://protobuf.dev/programming-guides/encoding/). Needs protozero.
// needs: protozero
#pragma once
#include <bit>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>
#include <strata/base/error.hpp>
#include <strata/base/text.hpp>
#include <strata/net/field.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace strata::wire {

static_assert(std::endian::native == std::endian::little, "packed lists of numbers are copied as they lie in memory");

/// Thrown for received bytes that are not the expected message.
class malformed_message : public strata_error {
 public:
  malformed_message(const char* name, const std::string& why) : strata_error({"malformed ", name, ": ", why}) {}
};

namespace detail {

using protozero::pbf_reader, protozero::pbf_writer, protozero::pbf_wire_type;

template <class T>
inline constexpr bool is_list = false;
template <class T>
inline constexpr bool is_list<std::vector<T>> = true;
template <class T>
inline constexpr bool is_text = std::same_as<T, std::string> || std::same_as<T, std::string_view>;
/// True for types that are encoded as they are in memory.
template <class T>
inline constexpr bool is_fixed = std::floating_point<T> || std::same_as<T, std::uint32_t> || std::same_as<T, std::uint64_t>;

template <message M>
void write_fields(pbf_writer& to, const M& m);

template <class T>
void write(pbf_writer& to, std::uint32_t tag, const T& value) {
  if constexpr (is_text<T>) {
    to.add_bytes(tag, value.data(), value.size());
  } else if constexpr (is_list<T>) {
    using element = typename T::value_type;
    if constexpr (is_fixed<element>) {
      if (!value.empty()) to.add_bytes(tag, reinterpret_cast<const char*>(value.data()), value.size() * sizeof(element));
    } else if constexpr (std::signed_integral<element>) {
      to.add_packed_sint64(tag, value.begin(), value.end());
    } else {
      for (const element& e : value) write(to, tag, e);
    }
  } else if constexpr (std::same_as<T, bool>) {
    to.add_bool(tag, value);
  } else if constexpr (std::is_enum_v<T>) {
    to.add_enum(tag, std::int32_t(value));
  } else if constexpr (std::same_as<T, std::chrono::milliseconds>) {
    to.add_sint64(tag, value.count());
  } else if constexpr (std::signed_integral<T>) {
    to.add_sint64(tag, value);
  } else if constexpr (is_fixed<T> && sizeof(T) == 4) {
    to.add_fixed32(tag, std::bit_cast<std::uint32_t>(value));
  } else if constexpr (is_fixed<T>) {
    to.add_fixed64(tag, std::bit_cast<std::uint64_t>(value));
  } else {
    static_assert(message<T>, "this type of member has no encoding");
    pbf_writer inner(to, tag);
    write_fields(inner, value);
  }
}

template <message M, class... Fields>
void write_all(pbf_writer& to, const M& m, fields<Fields...>) {
  (write(to, Fields::tag, m.*Fields::member), ...);
}
template <message M>
void write_fields(pbf_writer& to, const M& m) {
  write_all(to, m, typename M::fields{});
}

/// The reason why a field is refused; the message's name is added by the caller.
struct refused_field {
  std::string why;
};
[[noreturn]] inline void refuse(std::uint32_t tag, const std::string& why) {
  throw refused_field{strata::detail::text_of({"field ", tag, ' ', why})};
}
/// Checks the wire type, which protozero only asserts.
inline void expect(const pbf_reader& at, pbf_wire_type type) {
  if (at.wire_type() != type)
    refuse(at.tag(), strata::detail::text_of({"has wire type ", int(at.wire_type()), " instead of ", int(type)}));
}

template <message M>
void read_fields(pbf_reader from, M& m);

template <class T>
T narrowed(std::uint32_t tag, std::int64_t value) {
  if (value < std::int64_t(std::numeric_limits<T>::min()) || value > std::int64_t(std::numeric_limits<T>::max()))
    refuse(tag, strata::detail::text_of({"holds ", value, ", which does not fit into ", 8 * sizeof(T), " bits"}));
  return T(value);
}
inline void check_size(std::uint32_t tag, std::size_t size, std::size_t most, const char* of) {
  if (size > most) refuse(tag, strata::detail::text_of({"holds ", size, of, "; the limit is ", most}));
}

template <class T>
void read(pbf_reader& from, T& value, std::size_t most) {
  [[maybe_unused]] const std::uint32_t tag = from.tag();  // protozero forgets it once the value is read
  if constexpr (is_text<T>) {
    expect(from, pbf_wire_type::length_delimited);
    const protozero::data_view text = from.get_view();
    check_size(tag, text.size(), most, " bytes");
    value = T(text.data(), text.size());
  } else if constexpr (is_list<T>) {
    using element = typename T::value_type;
    constexpr bool is_packed = is_fixed<element> || std::signed_integral<element>;
    if (is_packed && from.wire_type() == pbf_wire_type::length_delimited) {
      if constexpr (is_fixed<element>) {
        const protozero::data_view bytes = from.get_view();
        const std::size_t before = value.size(), count = bytes.size() / sizeof(element);
        if (bytes.size() % sizeof(element) != 0)
          refuse(tag, strata::detail::text_of({"holds ", bytes.size(), " bytes, which is not a multiple of ", sizeof(element)}));
        check_size(tag, before + count, most, " elements");
        value.resize(before + count);
        if (count > 0) std::memcpy(value.data() + before, bytes.data(), bytes.size());
      } else if constexpr (std::signed_integral<element>) {
        for (const std::int64_t v : from.get_packed_sint64()) {
          check_size(tag, value.size() + 1, most, " elements");
          value.push_back(narrowed<element>(tag, v));
        }
      }
    } else {
      check_size(tag, value.size() + 1, most, " elements");
      read(from, value.emplace_back(), most);
    }
  } else if constexpr (std::same_as<T, bool>) {
    expect(from, pbf_wire_type::varint);
    value = from.get_uint64() != 0;  // get_bool would read a byte beyond a message that ends here
  } else if constexpr (std::is_enum_v<T>) {
    expect(from, pbf_wire_type::varint);
    const std::int64_t number = from.get_enum();
    if (number < 0 || std::size_t(number) > most)
      refuse(tag, strata::detail::text_of({"holds ", number, "; the limit is ", most}));
    value = T(number);
  } else if constexpr (std::same_as<T, std::chrono::milliseconds>) {
    expect(from, pbf_wire_type::varint);
    // A thousand years: the sum with a time of day does not overflow.
    const std::int64_t count = from.get_sint64(), limit = std::int64_t(1) << 45;
    if (count < -limit || count > limit) refuse(tag, strata::detail::text_of({"holds ", count, " ms; the limit is ", limit}));
    value = T(count);
  } else if constexpr (std::signed_integral<T>) {
    expect(from, pbf_wire_type::varint);
    value = narrowed<T>(tag, from.get_sint64());
  } else if constexpr (is_fixed<T> && sizeof(T) == 4) {
    expect(from, pbf_wire_type::fixed32);
    value = std::bit_cast<T>(from.get_fixed32());
  } else if constexpr (is_fixed<T>) {
    expect(from, pbf_wire_type::fixed64);
    value = std::bit_cast<T>(from.get_fixed64());
  } else {
    static_assert(message<T>, "this type of member has no encoding");
    expect(from, pbf_wire_type::length_delimited);
    read_fields(from.get_message(), value);
  }
}

template <class Field, message M>
bool read_if(pbf_reader& from, M& m) {
  if (from.tag() != Field::tag) return false;
  read(from, m.*Field::member, Field::most);
  return true;
}
template <message M, class... Fields>
void read_all(pbf_reader& from, M& m, fields<Fields...>) {
  while (from.next())
    if (!(read_if<Fields>(from, m) || ...)) from.skip();
}
template <message M>
void read_fields(pbf_reader from, M& m) {
  read_all(from, m, typename M::fields{});
}

}  // namespace detail

/// Appends the encoded message to `out`.
template <message M>
void encode(const M& m, std::string& out) {
  protozero::pbf_writer to(out);
  detail::write_fields(to, m);
}
template <message M>
std::string encode(const M& m) {
  std::string out;
  encode(m, out);
  return out;
}

/// Unknown fields are skipped, so that a newer program may send more; missing fields keep their defaults. Members of type
/// std::string_view point into `bytes`. Throws malformed_message with the message and the field.
template <message M>
M decode(std::string_view bytes) {
  M m{};
  try {
    detail::read_fields(protozero::pbf_reader(bytes.data(), bytes.size()), m);
  } catch (const detail::refused_field& field) {
    throw malformed_message(M::message_name, field.why);
  } catch (const protozero::exception& e) {
    throw malformed_message(M::message_name, strata::detail::text_of({e.what(), " in ", bytes.size(), " bytes"}));
  }
  return m;
}

}  // namespace strata::wire
