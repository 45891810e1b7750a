// The names of layers and parameters, which are those of Keras.
#pragma once
#include <cstddef>
#include <span>
#include <strata/base/linkage.hpp>
#include <strata/network/layout.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace strata {

// Functions that run once are marked cold: they are compiled for size, in a third of the time.

namespace detail {

constexpr bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
constexpr bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// MaxPooling2D -> max_pooling2d. As keras.src.utils.naming.to_snake_case: splits before an upper-case letter that is followed by
/// a lower-case one, then between lower and upper case.
[[gnu::cold]] std::string snake_case(std::string_view class_name);

[[gnu::cold]] bool is_among(const std::string& name, std::span<const std::string> names);

/// The first of name, name_1, name_2, ... that is not among `taken`.
[[gnu::cold]] std::string unique_name(const std::string& name, std::span<const std::string> taken);

[[gnu::cold]] std::vector<std::string> layer_names(std::span<const tape_node> nodes);

[[gnu::cold]] std::vector<std::string> parameter_names(std::span<const tape_node> nodes, std::span<const parameter_slot> slots);

template <class Network>
std::span<const tape_node> nodes_of() {
  return tape_of<typename Network::items>.nodes;
}
template <class Network>
std::span<const parameter_slot> slots_of() {
  constexpr const auto& layout = layout_of<typename Network::items>;
  return {layout.slots, std::size_t(layout.count)};
}

}  // namespace detail

/// A unique name for each layer, by its index: input_layer, conv2d, conv2d_1, ... These are Keras' automatic names in a new
/// process.
template <core::network Network>
std::vector<std::string> layer_names_of() {
  return detail::layer_names(detail::nodes_of<Network>());
}

/// A unique name for each slot of layout_of, in the same order: conv2d_1/kernel, conv2d_1/bias, ...
template <core::network Network>
std::vector<std::string> parameter_names_of() {
  return detail::parameter_names(detail::nodes_of<Network>(), detail::slots_of<Network>());
}

}  // namespace strata

#if STRATA_DEFINES
#include <strata/network/layer_names.ipp>
#endif
