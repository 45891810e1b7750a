// A graph of Keras as nodes of strata: struct NAME : node<...> {};
// needs: hdf5 libzip
#pragma once
#include <algorithm>
#include <iterator>
#include <set>
#include <span>
#include <strata/base/text.hpp>
#include <strata/interop/keras/layer_text.hpp>
#include <strata/network/layer_names.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace strata::keras {

/// The keywords of C++20.
inline constexpr std::string_view keywords[] = {
    "alignas",     "alignof",  "and",        "and_eq",    "asm",       "auto",         "bitand",
    "bitor",       "bool",     "break",      "case",      "catch",     "char",         "char16_t",
    "char32_t",    "char8_t",  "class",      "co_await",  "co_return", "co_yield",     "compl",
    "concept",     "const",    "const_cast", "consteval", "constexpr", "constinit",    "continue",
    "decltype",    "default",  "delete",     "do",        "double",    "dynamic_cast", "else",
    "enum",        "explicit", "export",     "extern",    "false",     "float",        "for",
    "friend",      "goto",     "if",         "inline",    "int",       "long",         "mutable",
    "namespace",   "new",      "noexcept",   "not",       "not_eq",    "nullptr",      "operator",
    "or",          "or_eq",    "private",    "protected", "public",    "register",     "reinterpret_cast",
    "requires",    "return",   "short",      "signed",    "sizeof",    "static",       "static_assert",
    "static_cast", "struct",   "switch",     "template",  "this",      "thread_local", "throw",
    "true",        "try",      "typedef",    "typeid",    "typename",  "union",        "unsigned",
    "using",       "virtual",  "void",       "volatile",  "wchar_t",   "while",        "xor",
    "xor_eq"};

/// Adds the up_sampling2d of a pixel that Keras' join enlarges to an image.
inline void enlarge_branch(std::vector<std::string>& items, const graph_node& from, const graph_node& join) {
  if (join.text != "concat" && join.out && from.out && layer_writer::is_enlarged_to(*from.out, *join.out))
    items.push_back(detail::text_of({"up_sampling2d<1, sampling_size<", (*join.out)[0], ", ", (*join.out)[1], ">>"}));
}

/// Adds a layer behind others of a row; neighbours that are not trained become one frozen<...>.
inline void append_layer(std::vector<std::string>& items, const graph_node& node) {
  if (node.config.value("trainable", true))
    items.push_back(node.text);
  else if (!items.empty() && items.back().starts_with("frozen<"))
    items.back().insert(items.back().size() - 1, ", " + node.text);
  else
    items.push_back("frozen<" + node.text + ">");
}
inline std::string joined_items(const std::vector<std::string>& items) {
  return detail::joined(items.size(), ", ", [&](std::size_t i) { return items[i]; });
}

/// Writes a struct for each row of layers that begins at an input, at a join or behind an output that is read twice. It has the
/// name of the last layer of the row.
class node_writer {
  std::span<const graph_node> nodes_;     // each behind its inputs
  std::vector<std::vector<int>> inputs_;  // of each node
  std::vector<char> is_read_, ends_row_;
  std::vector<std::string> names_;

 public:
  /// `number_of(name)` is the index of a layer. Nodes that lead to no output are left out.
  node_writer(std::span<const graph_node> nodes, std::span<const int> outputs, auto number_of) : nodes_(nodes) {
    const std::size_t count = nodes.size();
    std::vector<int> readers(count, 0);
    for (const graph_node& node : nodes) {
      std::vector<int>& inputs = inputs_.emplace_back();
      for (const std::string& name : node.inputs) inputs.push_back(number_of(name));
    }
    is_read_.assign(count, false), ends_row_.assign(count, false);
    for (const int o : outputs) is_read_[std::size_t(o)] = ends_row_[std::size_t(o)] = true;
    for (std::size_t i = count; i-- > 0;)
      for (const int input : inputs_[i])
        if (is_read_[i]) {
          const std::size_t k = std::size_t(input);
          is_read_[k] = true;
          if (++readers[k] > 1 || inputs_[i].size() > 1 || inputs_[k].empty()) ends_row_[k] = true;
        }
    name_rows();
  }

  bool is_read(int node) const { return is_read_[std::size_t(node)]; }
  const std::string& name_of(int node) const { return names_[std::size_t(node)]; }

  std::string structs() const {
    std::string text;
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      if (ends_row_[i] && is_read_[i])
        text += "struct " + names_[i] + " : " + (inputs_[i].empty() ? nodes_[i].text : "node<" + row_to(i) + ">") + " {};\n";
    return text;
  }

 private:
  /// The row whose last layer is node `end`.
  std::string row_to(std::size_t end) const {
    std::vector<std::size_t> row{end};
    while (inputs_[row.back()].size() == 1 && !ends_row_[std::size_t(inputs_[row.back()][0])])
      row.push_back(std::size_t(inputs_[row.back()][0]));
    std::vector<std::string> items;
    const bool begins_with_join = inputs_[row.back()].size() > 1;
    items.push_back(begins_with_join ? join(row.back()) : name_of(inputs_[row.back()][0]));
    if (begins_with_join) row.pop_back();
    for (; !row.empty(); row.pop_back()) append_layer(items, nodes_[row.back()]);
    return joined_items(items);
  }
  std::string join(std::size_t at) const {
    std::vector<std::string> branches;
    for (const int input : inputs_[at]) {
      std::vector<std::string> items{name_of(input)};
      enlarge_branch(items, nodes_[std::size_t(input)], nodes_[at]);
      branches.push_back(items.size() == 1 ? items[0] : "branch<" + joined_items(items) + ">");
    }
    return nodes_[at].text + "<" + joined_items(branches) + ">";
  }

  /// Names of layers as identifiers that are distinct from each other and from all words of the types.
  void name_rows() {
    std::set<std::string> taken{"node",    "graph", "branch", "frozen", "up_sampling2d", "sampling_size",
                                "network", "shape", "strata", "std",    "main"};
    taken.insert(std::begin(keywords), std::end(keywords));
    taken.insert({"errno", "stdin", "stdout", "stderr", "unix", "linux"});  // macros
    using detail::is_digit, detail::is_lower, detail::is_upper;
    const auto in_word = [](char c) { return is_lower(c) || is_upper(c) || is_digit(c) || c == '_'; };
    for (const graph_node& node : nodes_)
      for (std::size_t i = 0, end; i < node.text.size(); i = end + 1) {
        for (end = i; end < node.text.size() && in_word(node.text[end]);) ++end;
        taken.insert(node.text.substr(i, end - i));
      }
    names_.resize(nodes_.size());
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (!ends_row_[i] || !is_read_[i]) continue;
      std::string name;
      for (const char c : nodes_[i].name)
        if (in_word(c) && c != '_')
          name += c;
        else if (!name.empty() && name.back() != '_')
          name += '_';
      if (name.empty() || is_digit(name[0])) name = "layer_" + name;
      const bool may_be_a_macro = std::ranges::none_of(name, is_lower);
      if (may_be_a_macro || taken.contains(name)) name += name.back() == '_' ? "layer" : "_layer";
      names_[i] = name;
      for (int k = 1; !taken.insert(names_[i]).second; ++k) names_[i] = detail::text_of({name, '_', k});
    }
  }
};

}  // namespace strata::keras
