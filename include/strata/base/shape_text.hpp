// Shapes and lists in the notation of messages.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <strata/base/linkage.hpp>
#include <strata/base/shape.hpp>
#include <strata/base/text.hpp>
#include <string>
#include <string_view>

namespace strata::detail {

/// text(0), text(1) ... text(n - 1), with a separator between them.
template <class F>
std::string joined(std::size_t n, std::string_view separator, F&& text) {
  std::string out;
  for (std::size_t i = 0; i < n; ++i) {
    if (i > 0) out += separator;
    out += text(i);
  }
  return out;
}

inline constexpr std::size_t most_names_shown = 10;

/// "images, labels": the first ten names of a list, escaped for messages, and "..." if there are more.
template <class Names>
std::string first_names(const Names& names) {
  constexpr std::size_t most = most_names_shown;
  const std::string text =
      joined(names.size() < most ? names.size() : most, ", ", [&](std::size_t i) { return shown(names[i]); });
  return names.size() > most ? text_of({text, ", ..."}) : text;
}

/// "(60000, 28, 28)", "(7,)", "()": the notation of Python.
std::string shape_text(std::span<const std::uint64_t> extents);
std::string shape_text(const shape& s);

/// "(None, 28, 28)": the shape of a batch of any size, in Keras' notation.
std::string batch_shape_text(const shape& s);

}  // namespace strata::detail

#if STRATA_DEFINES
#include <strata/base/shape_text.ipp>
#endif
