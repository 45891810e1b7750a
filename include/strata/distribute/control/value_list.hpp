// Several values in one message.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace strata::detail {

static_assert(std::endian::native == std::endian::little, "messages hold numbers as they lie in memory, lowest byte first");

/// Each is its length, in 4 bytes, and its bytes.
inline std::size_t bytes_in_list(std::string_view value) { return sizeof(std::uint32_t) + value.size(); }
inline void append_to_list(std::string& list, std::string_view value) {
  const auto length = std::uint32_t(value.size());
  list.append(reinterpret_cast<const char*>(&length), sizeof length).append(value);
}
/// Nothing if it is not made of whole values.
inline std::optional<std::vector<std::string>> read_list(std::string_view list) {
  std::vector<std::string> values;
  while (!list.empty()) {
    std::uint32_t length = 0;
    if (list.size() < sizeof length) return {};
    std::memcpy(&length, list.data(), sizeof length);
    list.remove_prefix(sizeof length);
    if (list.size() < length) return {};
    values.emplace_back(list.substr(0, length));
    list.remove_prefix(length);
  }
  return values;
}

}  // namespace strata::detail
