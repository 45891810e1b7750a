// A hash that is the same on all machines: to compare, not to keep anybody out.
#pragma once
#include <cstdint>
#include <string_view>

namespace strata::detail {

/// FNV-1a.  http://www.isthe.com/chongo/tech/comp/fnv
class fnv1a {
  std::uint64_t hash_ = 0xCBF29CE484222325;

 public:
  constexpr void add(std::uint64_t value) { hash_ = (hash_ ^ value) * 0x100000001B3; }
  constexpr void add(std::string_view text) {
    for (const char c : text) add(std::uint64_t{static_cast<unsigned char>(c)});
  }
  constexpr std::uint64_t value() const { return hash_; }
};

constexpr std::uint64_t hash_of(std::string_view text) {
  fnv1a hash;
  hash.add(text);
  return hash.value();
}

}  // namespace strata::detail
