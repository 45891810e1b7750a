// Definitions of layer_names.hpp.
#pragma once
#include <strata/base/text.hpp>

namespace strata::detail {

STRATA_FUNCTION std::string snake_case(std::string_view class_name) {
  std::string word, split, out;
  for (char c : class_name)
    if (is_lower(c) || is_upper(c) || is_digit(c) || c == '_') word += c;
  for (std::size_t i = 0; i < word.size();) {
    split += word[i++];
    if (i + 1 >= word.size() || !is_upper(word[i]) || !is_lower(word[i + 1])) continue;
    split += '_';
    split += word[i++];
    while (i < word.size() && is_lower(word[i])) split += word[i++];
  }
  for (std::size_t i = 0; i < split.size(); ++i) {
    out += is_upper(split[i]) ? char(split[i] - 'A' + 'a') : split[i];
    if (i + 1 < split.size() && is_lower(split[i]) && is_upper(split[i + 1])) out += '_';
  }
  return out;
}

STRATA_FUNCTION bool is_among(const std::string& name, std::span<const std::string> names) {
  for (const std::string& n : names)
    if (n == name) return true;
  return false;
}

STRATA_FUNCTION std::string unique_name(const std::string& name, std::span<const std::string> taken) {
  std::string candidate = name;
  for (int k = 1; is_among(candidate, taken); ++k) candidate = text_of({name, '_', k});
  return candidate;
}

STRATA_FUNCTION std::vector<std::string> layer_names(std::span<const tape_node> nodes) {
  std::vector<std::string> names;
  for (const tape_node& n : nodes)
    if (n.layer_number == int(names.size())) names.push_back(unique_name(snake_case(n.layer->class_name), names));
  return names;
}

STRATA_FUNCTION std::vector<std::string> parameter_names(std::span<const tape_node> nodes,
                                                         std::span<const parameter_slot> slots) {
  const std::vector<std::string> layers = layer_names(nodes);
  std::vector<std::string> names;
  for (const parameter_slot& s : slots)
    names.push_back(
        unique_name(text_of({layers[std::size_t(nodes[std::size_t(s.node)].layer_number)], '/', s.what.name}), names));
  return names;
}

}  // namespace strata::detail
