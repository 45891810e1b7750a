// Messages in protobuf's format: each is decoded, encoded and decoded again to the same message.
#pragma once
#include <strata/net/message.hpp>

#include "fuzz.hpp"

namespace strata::fuzz {

/// One input for each message.
template <class... Messages>
std::vector<std::string> encoded(const Messages&... all) {
  unsigned number = 0;
  return {with_choice(number++, wire::encode(all))...};
}

/// Decodes the message that the first byte selects, in the same order.
template <class... Messages>
void decode_one_of(std::string_view input) {
  const choice chosen(input);
  const auto decode = [&]<class M>(std::type_identity<M>) {
    const M decoded = wire::decode<M>(chosen.rest);
    accepted([&] {
      const std::string once = wire::encode(decoded);
      check(wire::encode(wire::decode<M>(once)) == once);
    });
  };
  unsigned number = 0;
  ((number++ == chosen.number % sizeof...(Messages) ? decode(std::type_identity<Messages>{}) : void()), ...);
}

}  // namespace strata::fuzz
