// of<node>(sample_weight(w)), of<node>(class_weight{...}): weights in the loss of one output of a graph.
#pragma once
#include <algorithm>
#include <array>
#include <span>
#include <strata/base/node_name.hpp>
#include <strata/base/shape.hpp>
#include <strata/data/core/column.hpp>
#include <strata/data/views/sample_weight.hpp>
#include <strata/layers/input.hpp>
#include <strata/program/program_of_graph.hpp>
#include <strata/train/arrays.hpp>
#include <strata/train/fit_options.hpp>
#include <string_view>
#include <utility>

namespace strata {

namespace core {
/// Names the column with the weights of the samples at an output of a graph: a number for each.
template <class Node>
struct weights_at : input<1> {
 private:
  static constexpr std::string_view of = "sample_weight of ";
  static constexpr auto text = [] {
    std::array<char, of.size() + detail::node_name<Node>.size()> all{};
    std::ranges::copy(detail::node_name<Node>, std::ranges::copy(of, all.begin()).out);
    return all;
  }();

 public:
  static constexpr std::string_view node_name{text.data(), text.size()};
};
}  // namespace core

/// The weights of the samples at one output of a graph, a column like others: `of<kind>(sample_weight(weights))`. In fit,
/// evaluate and validation, and in data sets. Throws strata_error if one of an array is not finite.
template <class Node, class Weights>
constexpr core::column<core::weights_at<Node>, Weights> of(sample_weight<Weights> given) {
  if constexpr (detail::array_traits<Weights>::flat && detail::array_traits<Weights>::valid)
    data::detail::refuse_infinite_weights(std::span(std::as_const(given.values)));
  return {std::move(given.values)};
}
/// The weights of the classes at one output of a graph: `of<kind>(class_weight{{0, 1.0}, {1, 50.0}})`, an option of fit.
template <class Node>
core::classes_at<Node> of(class_weight given) {
  return {std::move(given)};
}

namespace detail {
template <class Program, class Node>
inline constexpr shape shape_of_end<Program, weights_at<Node>> = shape{1};
}  // namespace detail

}  // namespace strata
