// The text on which the processes of a training must agree, with its hash, and the error message for two that do not.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <strata/base/text.hpp>
#include <strata/io/sha256.hpp>
#include <strata/net/field.hpp>
#include <string>
#include <string_view>
#include <utility>

namespace strata::control {

/// The hash of the whole text is compared. The text is for people: it is cut at the limit of a message, so it begins with the
/// program, in which processes differ more often than in the long list of addresses.
struct agreement {
  static constexpr std::size_t most = 48 << 10;  // characters

  agreement() = default;
  agreement(const std::string& all) : text(all.substr(0, most)), hash(hash_of(all)) {}

  std::string text{}, hash{};

  static constexpr auto message_name = "agreement";
  using fields = wire::fields<wire::field<1, &agreement::text>, wire::field<2, &agreement::hash>>;

  friend bool operator==(const agreement& a, const agreement& b) { return a.hash == b.hash; }

 private:
  static std::string hash_of(std::string_view all) {
    io::sha256 sum;
    sum.update(std::span(reinterpret_cast<const std::uint8_t*>(all.data()), all.size()));
    return sum.hex();
  }
};

/// The parts of two texts that differ, without the common beginning and end. A part ends with a comma or a semicolon; of a long
/// one, the words from the first difference on.
inline std::pair<std::string, std::string> differences_of(std::string_view a, std::string_view b) {
  constexpr std::size_t most = 300, most_alike = 100;  // characters: the first difference is what helps
  const auto ends_piece = [](char c) { return c == ',' || c == ';'; };
  std::size_t begin = 0, end = 0, word = 0, same = 0;
  for (; same < std::min(a.size(), b.size()) && a[same] == b[same]; ++same) {
    if (ends_piece(a[same])) begin = same + 1;
    if (a[same] == ' ') word = same;
  }
  const bool is_long = same - begin > most_alike;
  if (is_long) begin = std::max(word, same - most_alike);
  const std::string_view rest[] = {a.substr(begin), b.substr(begin)};
  const std::size_t shorter = std::min(rest[0].size(), rest[1].size());
  for (std::size_t i = 0; i < shorter && rest[0][rest[0].size() - 1 - i] == rest[1][rest[1].size() - 1 - i]; ++i)
    if (ends_piece(rest[0][rest[0].size() - 1 - i])) end = i + 1;
  const auto text = [&](std::string_view all) {
    std::string_view part = all.substr(0, all.size() - end);
    if (part.starts_with(' ')) part.remove_prefix(1);
    return detail::text_of({is_long ? "... " : "", part.substr(0, most), part.size() > most ? "..." : ""});
  };
  return {text(rest[0]), text(rest[1])};
}

/// The error message for two processes that do not train the same: it quotes the difference. Several processes print it, so it
/// has neither "here" nor "there".
inline std::string disagreement(const std::string& who, const std::string& than, const agreement& its, const agreement& others) {
  if (its.text == others.text)
    return detail::text_of({who, " does not train what ", than, ": the descriptions of program and cluster are equal for ",
                            its.text.size(), " characters, and differ after these"});
  const auto [one, other] = differences_of(its.text, others.text);
  return detail::text_of({who, " does not train what ", than, ": it has '", one, "' instead of '", other, "'"});
}

}  // namespace strata::control
