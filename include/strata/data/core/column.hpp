// of<node>(array): a column of a data set, for one input or output of a graph.
#pragma once
#include <strata/base/shape.hpp>
#include <strata/concepts/batch_source.hpp>
#include <type_traits>
#include <utility>

namespace strata {

namespace core {
/// An array for the input or output `Node` of a graph, the struct that names it. `Array` is a const reference if the column
/// borrows the array, which then must outlive it, or else the type of an array that it owns.
template <class Node, class Array>
struct column {
  using node = Node;
  using array_type = std::remove_cvref_t<Array>;

  Array values;
};
}  // namespace core

/// The column of a node: `of<image>(pixels)`. Borrows an array that has a name, and owns one that has not.
template <class Node, class Array>
constexpr core::column<Node, std::conditional_t<std::is_lvalue_reference_v<Array>, const std::remove_reference_t<Array>&, Array>>
of(Array&& values) {
  return {std::forward<Array>(values)};
}

namespace detail {
template <class T>
inline constexpr bool is_column = false;
template <class Node, class Array>
inline constexpr bool is_column<column<Node, Array>> = true;
}  // namespace detail

}  // namespace strata

namespace strata::data {

/// The type of a column: an input of a graph has numbers (label_kind::none); an output has class numbers (sparse), which have no
/// extents, or targets (dense).
template <class Node, shape Extents, label_kind Kind>
struct column_of {
  using node = Node;
  static constexpr shape extents = Extents;
  static constexpr label_kind kind = Kind;
};

}  // namespace strata::data
