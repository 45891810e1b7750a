// layout_map<rules...>: the layers of a network that several ranks divide, and how.
#pragma once
#include <cstddef>
#include <strata/base/reason.hpp>
#include <string_view>
#include <type_traits>

namespace strata {

namespace core {
/// A name of a layer as summary prints it; `*` stands for any characters.
template <std::size_t Size>
struct layer_pattern {
  char text[Size] = {};
  constexpr layer_pattern(const char (&name)[Size]) {
    for (std::size_t i = 0; i < Size; ++i) text[i] = name[i];
  }
  constexpr bool matches(std::string_view name) const { return matches({text, Size - 1}, name); }

 private:
  static constexpr bool matches(std::string_view pattern, std::string_view name) {
    std::size_t p = 0, n = 0, star = pattern.size(), from = 0;
    while (n < name.size())
      if (p < pattern.size() && pattern[p] == '*')
        star = p++, from = n;
      else if (p < pattern.size() && pattern[p] == name[n])
        ++p, ++n;
      else if (star < pattern.size())
        p = star + 1, n = ++from;
      else
        return false;
    while (p < pattern.size() && pattern[p] == '*') ++p;
    return p == pattern.size();
  }
};
}  // namespace core

/// Each rank has a part of the units of a dense layer, of the filters of a conv2d, or of the width of an embedding. The results
/// are those of the undivided layer, bit for bit, except if one device fuses a conv2d with the max_pool2d after it, and in mixed
/// precision.
struct by_columns {};
/// Each rank has a part of the rows of an embedding's table, with the results of the undivided layer, bit for bit; or the weights
/// of a part of the inputs of a dense layer. There the output is a sum over ranks, so its bits depend on their number. Where a
/// dense layer by rows follows one by columns, possibly with an activation between them, nothing is sent between the two, and the
/// gradient of the input of the first one is a sum over ranks, too. Shoeybi et al., "Megatron-LM: training multi-billion
/// parameter language models using model parallelism" (2019), https://arxiv.org/abs/1909.08053
struct by_rows {};
/// For the last dense layer of a network whose loss is a crossentropy of classes: each rank has a part of the classes, with their
/// logits and probabilities. Ranks exchange the largest logits and the sums of exponentials, and compute the loss and its
/// gradient for their classes. Sums are added in the order of ranks, so bits depend on their number. Shoeybi et al., section 3.
struct by_classes {};

namespace detail {
enum class division_kind { whole, columns, rows, classes };
template <class How>
inline constexpr division_kind division_kind_of = division_kind::whole;
template <>
inline constexpr division_kind division_kind_of<by_columns> = division_kind::columns;
template <>
inline constexpr division_kind division_kind_of<by_rows> = division_kind::rows;
template <>
inline constexpr division_kind division_kind_of<by_classes> = division_kind::classes;
}  // namespace detail

/// rule<"dense*", by_columns>: how the layers with such names are divided.
template <core::layer_pattern Name, class How = detail::nothing>
struct rule {
  using how = How;
  template <class Layer>
  static constexpr bool matches(std::string_view name) {
    return Name.matches(name);
  }
};
namespace core {
/// rule_for<dense<64, relu>, by_columns>: how all layers of that type are divided.
template <class Type, class How = detail::nothing>
struct rule_for {
  using how = How;
  template <class Layer>
  static constexpr bool matches(std::string_view) {
    return std::is_same_v<Layer, Type>;
  }
};
}  // namespace core

/// layout_map<rule<"dense", by_columns>, rule<"dense_1", by_rows>>: the first rule that matches a layer applies. Every rank
/// computes layers without a matching rule; so layout_map<> divides nothing. https://keras.io/api/distribution/layout_map
template <class... Rules>
struct layout_map {};

}  // namespace strata
