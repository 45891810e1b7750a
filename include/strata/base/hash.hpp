// A hash that is the same on all machines. It finds differences; it does not resist attackers.
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace strata::detail {

/// FNV-1a of 32 or 64 bits.  http://www.isthe.com/chongo/tech/comp/fnv
template <std::unsigned_integral U>
class basic_fnv1a {
  static_assert(sizeof(U) == 4 || sizeof(U) == 8);
  static constexpr U prime = sizeof(U) == 4 ? U{0x01000193} : static_cast<U>(0x100000001B3u);

  U hash_ = sizeof(U) == 4 ? U{0x811C9DC5} : static_cast<U>(0xCBF29CE484222325u);

 public:
  constexpr void add(U value) { hash_ = (hash_ ^ value) * prime; }
  constexpr void add(std::string_view text) {
    for (const char c : text) add(U{static_cast<unsigned char>(c)});
  }
  constexpr U value() const { return hash_; }
};
using fnv1a = basic_fnv1a<std::uint64_t>;

template <std::unsigned_integral U = std::uint64_t>
constexpr U hash_of(std::string_view text) {
  basic_fnv1a<U> hash;
  hash.add(text);
  return hash.value();
}

/// The hash of a large array, a word at a time.
inline std::uint64_t hash_of_words(std::span<const std::byte> bytes) {
  fnv1a hash;
  for (; bytes.size() >= sizeof(std::uint64_t); bytes = bytes.subspan(sizeof(std::uint64_t))) {
    std::uint64_t word;
    std::memcpy(&word, bytes.data(), sizeof word);
    hash.add(word);
  }
  std::uint64_t rest = 0;
  std::memcpy(&rest, bytes.data(), bytes.size());
  hash.add(rest);
  return hash.value();
}
/// 52 bits of a hash, which a double represents exactly.
constexpr double as_double(std::uint64_t hash) { return double(hash >> 12); }

}  // namespace strata::detail
