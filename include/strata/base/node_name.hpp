// The name of a node of a graph at run time.
#pragma once
#include <string_view>

namespace strata::detail {

template <class Node>
constexpr std::string_view name_of_type() {
  constexpr std::string_view text = __PRETTY_FUNCTION__;
  constexpr auto begin = text.find("Node = ") + 7, end = text.find_first_of(";]", begin);
  constexpr std::string_view whole = text.substr(begin, end - begin);
  constexpr auto arguments = whole.find('<');
  constexpr auto colon = whole.rfind(':', arguments);
  return colon == whole.npos ? whole : whole.substr(colon + 1);
}

/// The last part of the name of its type, or its member `node_name`.
template <class Node>
inline constexpr std::string_view node_name = [] {
  if constexpr (requires { std::string_view(Node::node_name); })
    return std::string_view(Node::node_name);
  else
    return name_of_type<Node>();
}();

}  // namespace strata::detail
