// Messages between processes are structs that name their protobuf fields; strata/net/message.hpp encodes them.
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace strata::wire {

/// Member `Member` of a message is protobuf field number `Tag`. A text of more bytes than `Most`, a list of more elements, or an
/// enumerator above it is refused.
template <std::uint32_t Tag, auto Member, std::size_t Most = std::size_t(1) << 16>
struct field {
  static_assert(0 < Tag && Tag < 19'000, "protobuf reserves the field numbers from 19000 to 19999");
  static constexpr std::uint32_t tag = Tag;
  static constexpr auto member = Member;
  static constexpr std::size_t most = Most;
};

namespace detail {
template <class... Fields>
constexpr bool have_distinct_tags() {
  constexpr std::uint32_t tags[] = {Fields::tag..., 0};
  for (std::size_t i = 0; i < sizeof...(Fields); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (tags[i] == tags[j]) return false;
  return true;
}
}  // namespace detail

/// All fields of a message, in the order in which they are written.
template <class... Fields>
struct fields {
  static_assert(detail::have_distinct_tags<Fields...>(), "two fields of a message have the same number");
};

/// A message is a struct like this one. The name appears in errors about malformed bytes.
///     struct heartbeat {
///       int waits_for = -1;
///       std::chrono::milliseconds waited{};
///       static constexpr auto message_name = "heartbeat";
///       using fields = wire::fields<wire::field<1, &heartbeat::waits_for>, wire::field<2, &heartbeat::waited>>;
///     };
/// Member types, and their protobuf types: `bool` bool; signed integers and std::chrono::milliseconds sint64; std::uint32_t
/// fixed32, std::uint64_t fixed64; `float`, `double`; enumerations; std::string, std::string_view (a view into the received
/// bytes) bytes; messages; std::vector of these. Lists of arithmetic types are packed.
template <class M>
concept message = std::default_initializable<M> && requires {
  typename M::fields;
  { M::message_name } -> std::convertible_to<const char*>;
};

}  // namespace strata::wire
