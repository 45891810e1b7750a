// File names with values in them: weights-{epoch:02d}-{val_loss:.3f}.safetensors
#pragma once
#include <cstddef>
#include <strata/base/error.hpp>
#include <strata/base/text.hpp>
#include <strata/state/logs.hpp>
#include <string>
#include <string_view>

namespace strata::detail {

/// A hint on how a value with an unknown name can be made available.
inline const char* hint_for(std::string_view name) {
  return name.starts_with("val_")
             ? " (val_ ones come from validation(...) among the arguments of fit)"
             : " (a callback that adds a value has its name in a member `adds`, and comes before those that read it)";
}

/// Replaces {epoch} and {batch} by integers, and other names by values of `values`. A format after the name is that of Python:
/// {epoch:02d}, {loss:.2f}, {loss:.1e}. Throws strata_error, which quotes the pattern, for another format and an unknown
/// name. The latter ends with `hint` or, if that is null, with how such a value can be made available.
inline std::string filled_pattern(const std::string& pattern, int epoch, long batch, const logs& values,
                                  const char* hint = nullptr) {
  std::string out;
  for (std::size_t at = 0; at < pattern.size();) {
    if (pattern[at] != '{') {
      out += pattern[at++];
      continue;
    }
    const std::size_t end = pattern.find('}', at);
    if (end == pattern.npos) throw_error({"'", pattern, "': a { has no } after it"});
    const std::string field = pattern.substr(at + 1, end - at - 1);
    const std::size_t colon = field.find(':');
    const std::string name = field.substr(0, colon), format = colon == field.npos ? "" : field.substr(colon + 1);
    const bool is_whole = name == "epoch" || name == "batch";
    const auto value = values.find(name);
    if (!is_whole && !value)
      throw_error({"'", pattern, "': there is no '", name, "'; known: epoch, batch", values.empty() ? "" : ", ", values.names(),
                   hint ? hint : hint_for(name)});
    // The format of printf, with one letter at the end.
    const std::size_t digits = format.find_first_not_of("0123456789.");
    const std::string letter = digits == format.npos ? (is_whole ? "d" : "g") : format.substr(digits);
    const std::string size = format.substr(0, digits);
    const std::size_t point = size.find('.');
    const std::string width = size.substr(0, point), precision = point == size.npos ? "" : size.substr(point + 1);
    const bool is_sane = width.size() <= 2 && precision.size() <= 2 && precision.find('.') == precision.npos;
    const bool is_known =
        is_sane && (is_whole ? letter == "d" && point == size.npos : letter == "f" || letter == "e" || letter == "g");
    if (!is_known) throw_error({"'", pattern, "': the format '", format, "' of '", name, "' is not known"});
    if (is_whole)
      out += formatted(("%" + size + "ld").c_str(), name == "epoch" ? long(epoch) : batch);
    else
      out += formatted(("%" + size + letter).c_str(), *value);
    at = end + 1;
  }
  return out;
}

}  // namespace strata::detail
