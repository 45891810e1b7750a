// Definitions of print_divisions.hpp.
#pragma once
#include <strata/base/shape_text.hpp>
#include <strata/base/text.hpp>

namespace strata::detail {

STRATA_FUNCTION std::string divisions_text(int groups, int ranks, int element_size, std::span<const tape_node> nodes,
                                           std::span<const parameter_slot> slots, std::span<const divided_node> divided) {
  const std::vector<std::string> names = layer_names(nodes);
  const auto bytes = [&](long elements) { return readable_memory(double(elements) * element_size); };
  const auto sent = [&](long elements, bool adds_up) {
    return elements == 0 ? std::string("nothing") : text_of({adds_up ? "all-reduce of " : "all-gather of ", bytes(elements)});
  };
  std::vector<std::vector<std::string>> rows = {
      {"layer", "divided", "parameters of a rank", "forward, per sample", "backward, per sample", "after an update"}};
  for (const divided_node& d : divided) {
    std::string parameters;
    for (const parameter_slot& s : slots)
      if (s.node == d.node) parameters += text_of({parameters.empty() ? "" : ", ", s.what.name, ' ', shape_text(s.what.extents)});
    rows.push_back({names[std::size_t(nodes[std::size_t(d.node)].layer_number)], d.how, parameters,
                    sent(d.sends_forward, d.adds_up_forward), sent(d.sends_backward, d.adds_up_backward),
                    d.copied == 0 ? std::string("nothing") : text_of({"all-to-all of ", bytes(d.copied)})});
  }
  return text_of(
      {groups > 1 ? text_of({groups, " groups of "}) : "", ranks, ranks == 1 ? " rank" : " ranks", '\n', aligned(rows)});
}

}  // namespace strata::detail
