// summary_of: the table of layers, output shapes and parameters that Keras prints, and Keras' names of layers and parameters.
#pragma once
#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <span>
#include <strata/base/linkage.hpp>
#include <strata/base/shape_text.hpp>
#include <strata/base/text.hpp>
#include <strata/network/layout.hpp>
#include <string>
#include <string_view>
#include <sys/ioctl.h>
#include <unistd.h>
#include <vector>

namespace strata {

// Functions that run once are marked cold. They are compiled for size, in a third of the time.

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
template <network Network>
std::vector<std::string> layer_names_of() {
  return detail::layer_names(detail::nodes_of<Network>());
}

/// A unique name for each slot of layout_of, in the same order: conv2d_1/kernel, conv2d_1/bias, ...
template <network Network>
std::vector<std::string> parameter_names_of() {
  return detail::parameter_names(detail::nodes_of<Network>(), detail::slots_of<Network>());
}

struct summary_options {
  /// Bytes of one element.
  int element_size = 4;
  /// Elements that the optimizer keeps. Below 0: the line about the optimizer is left out.
  long optimizer_parameters = -1;
  /// Elements that are not trained although the type of their layer allows it.
  long frozen_parameters = 0;
  /// Width of the table. 0: Keras' width, 88 characters (108 with branches), or less if standard output is a narrower terminal.
  int line_length = 0;
  /// The name of the model. Empty: Keras' automatic name.
  std::string name = {};
};

namespace detail {

/// 18496 -> 18,496
[[gnu::cold]] std::string grouped(long n);

[[gnu::cold]] std::string readable_memory(double bytes);

int line_length_of_terminal(int wanted);

[[gnu::cold]] std::string summary_text(std::span<const tape_node> nodes, std::span<const parameter_slot> slots, long trainable,
                                       long state, const summary_options& options);

}  // namespace detail

/// The table that Keras' model.summary() prints, in UTF-8: one row per layer. A network with branches has a column with the
/// inputs of each layer.  https://keras.io/api/models/model#summary-method
template <network Network>
std::string summary_of(const summary_options& options = {}) {
  constexpr const auto& layout = layout_of<typename Network::items>;
  return detail::summary_text(detail::nodes_of<Network>(), detail::slots_of<Network>(), layout.trainable_count,
                              layout.state_count, options);
}

}  // namespace strata

#if STRATA_DEFINES
#include <strata/network/summary.ipp>
#endif
