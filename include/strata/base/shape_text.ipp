// Definitions of shape_text.hpp.
#pragma once

namespace strata::detail {

STRATA_FUNCTION std::string shape_text(std::span<const std::uint64_t> extents) {
  return text_of({'(', joined(extents.size(), ", ", [&](std::size_t i) { return text_of({extents[i]}); }),
                  extents.size() == 1 ? ",)" : ")"});
}

STRATA_FUNCTION std::string shape_text(const shape& s) {
  const std::uint64_t extents[] = {std::uint64_t(s[0]), std::uint64_t(s[1]), std::uint64_t(s[2]), std::uint64_t(s[3])};
  return shape_text(std::span(extents, std::size_t(s.rank())));
}

STRATA_FUNCTION std::string batch_shape_text(const shape& s) {
  std::string text = "(None";
  for (int i = 0; i < s.rank(); ++i) text += text_of({", ", s[i]});
  return text += ')';
}

}  // namespace strata::detail
