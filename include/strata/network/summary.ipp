// Definitions of summary.hpp.
#pragma once
#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <strata/io/terminal.hpp>
#include <string_view>

namespace strata::detail {

STRATA_FUNCTION std::string grouped(long n) {
  std::string digits = text_of({n});
  for (int at = int(digits.size()) - 3; at > (n < 0 ? 1 : 0); at -= 3) digits.insert(std::size_t(at), 1, ',');
  return digits;
}

STRATA_FUNCTION std::string readable_memory(double bytes) {
  static constexpr const char* units[] = {"B", "KB", "MB", "GB", "TB", "PB"};
  int unit = 0;
  for (; unit < 5 && bytes >= 1024; ++unit) bytes /= 1024;
  return formatted("%.2f %s", bytes, units[unit]);
}

STRATA_FUNCTION int line_length_of_terminal(int wanted) {
  const int columns = io::terminal_columns(1).value_or(0);
  return columns > 0 ? std::min(wanted, columns - 4) : wanted;
}

/// A text table that looks like those of Python's rich, with which Keras prints. Cells hold ASCII.
class summary_table {
  static constexpr std::size_t most = 4;
  struct column {
    std::string_view header;
    bool right;
    int width;
  };
  column columns_[most] = {};
  std::size_t count_;
  std::string rows_;  // formatted rows

 public:
  /// `ends`: the end of each column, as a fraction of the line.
  [[gnu::cold]] summary_table(std::span<const std::string_view> headers, std::span<const double> ends, int line_length)
      : count_(headers.size()) {
    int at = 0, excess = int(count_) + 1 - line_length;
    for (std::size_t i = 0; i < count_; ++i) {
      const int end = int(ends[i] * line_length);
      columns_[i] = {headers[i], headers[i] == "Param #", end - at + 2};
      excess += end - at + 2;
      at = end;
    }
    // Blanks and rules need room too. As in rich, all columns lose the same width, and halves are rounded to even.
    for (std::size_t i = 0; i < count_; ++i) {
      const int left = int(count_ - i), share = int(std::nearbyint(double(excess) / left));
      columns_[i].width -= share;
      excess -= share;
    }
  }

  /// Adds a row. cells: those of the columns, from the first on; further ones are ignored.
  [[gnu::cold]] void add(std::initializer_list<std::string_view> cells) {
    if (!rows_.empty()) rows_ += rule("├", "─", "┼", "┤");
    rows_ += row(cells.begin(), "│");
  }

  [[gnu::cold]] std::string text() const {
    std::string_view headers[most];
    for (std::size_t i = 0; i < count_; ++i) headers[i] = columns_[i].header;
    return text_of({rule("┏", "━", "┳", "┓"), row(headers, "┃"), rule("┡", "━", "╇", "┩"), rows_, rule("└", "─", "┴", "┘")});
  }

 private:
  [[gnu::cold]] std::string rule(std::string_view left, std::string_view line, std::string_view cross,
                                 std::string_view right) const {
    std::string out;
    for (std::size_t i = 0; i < count_; ++i) {
      out += i == 0 ? left : cross;
      for (int k = 0; k < columns_[i].width; ++k) out += line;
    }
    out.append(right) += '\n';
    return out;
  }

  /// Removes the first line from a text, which breaks at a blank. A word that is too long ends in an ellipsis.
  [[gnu::cold]] static std::string take_line(std::string_view& text, std::size_t width) {
    std::size_t end = std::min(text.find(' '), text.size());
    while (end < text.size())
      if (const std::size_t next = std::min(text.find(' ', end + 1), text.size()); next <= width)
        end = next;
      else
        break;
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(text.size(), end + 1));
    return line.size() > width ? text_of({line.substr(0, width - 1), "…"}) : std::string(line);
  }

  /// The number of code points; the ellipsis has three bytes.
  static int characters(std::string_view text) {
    int n = 0;
    for (const char c : text) n += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    return n;
  }

  [[gnu::cold]] std::string row(const std::string_view* cells, std::string_view bar) const {
    std::string_view left[most];  // the remaining text of each cell
    std::copy_n(cells, count_, left);
    std::string out;
    for (bool more = true; more;) {
      more = false;
      for (std::size_t i = 0; i < count_; ++i) {
        const int width = columns_[i].width - 2;
        const std::string line = take_line(left[i], std::size_t(width));
        const std::string blanks(std::size_t(std::max(0, width - characters(line))), ' ');
        const bool right = columns_[i].right;
        out += text_of({bar, ' ', right ? blanks : line, right ? line : blanks, ' '});
        more = more || !left[i].empty();
      }
      out.append(bar) += '\n';
    }
    return out;
  }
};

STRATA_FUNCTION std::string summary_text(std::span<const tape_node> nodes, std::span<const parameter_slot> slots,
                                         std::span<const named_node> named, long trainable, long state,
                                         const summary_options& options) {
  std::vector<std::string> names = layer_names(nodes);
  for (std::size_t i = 0, layer = 0; i < nodes.size() && !named.empty(); ++i) {
    if (nodes[i].layer_number != int(layer)) continue;  // a layer of several nodes, or one that is used again
    const std::string_view node = named_node_of(named, int(i)).name;
    std::string& own = names[layer++];
    own = nodes[i].is_input() ? std::string(node) : text_of({node, '/', own});
  }
  bool chain = true;
  for (std::size_t i = 1; i < nodes.size(); ++i) chain = chain && nodes[i].arity == 1 && nodes[i].input[0] == int(i) - 1;

  static constexpr std::string_view headers[] = {"Layer (type)", "Output Shape", "Param #", "Connected to"};
  static constexpr double ends[] = {0.45, 0.80, 1.0}, ends_with_inputs[] = {0.3, 0.56, 0.74, 1.0};
  const int length = std::max(40, options.line_length > 0 ? options.line_length : line_length_of_terminal(chain ? 88 : 108));
  summary_table table({headers, chain ? 3u : 4u}, chain ? std::span<const double>(ends) : ends_with_inputs, length);
  for (int layer = chain ? 1 : 0; layer < int(names.size()); ++layer) {
    const tape_node* last = nullptr;
    std::string inputs;
    for (const tape_node& n : nodes) {
      if (n.layer_number != layer) continue;
      for (int k = 0; k < n.arity; ++k)
        if (const int from = nodes[std::size_t(n.input[k])].layer_number; from != layer)
          inputs += text_of({inputs.empty() ? "" : ", ", names[std::size_t(from)], "[0][0]"});
      last = &n;
    }
    long parameters = 0;
    for (const parameter_slot& s : slots)
      if (nodes[std::size_t(s.node)].layer_number == layer) parameters += s.what.extents.size();
    table.add({text_of({names[std::size_t(layer)], " (", last->layer->class_name, ")"}), batch_shape_text(last->out),
               grouped(parameters), inputs.empty() ? "-" : inputs});
  }

  std::string out = text_of({"Model: \"", options.name.empty() ? std::string(chain ? "sequential" : "functional") : options.name,
                             "\"\n", table.text()});
  const auto total = [&](const char* what, long count) {
    out += text_of({" ", what, " params: ", grouped(count), " (", readable_memory(double(count) * options.element_size), ")\n"});
  };
  total("Total", trainable + state + std::max(0L, options.optimizer_parameters));
  total("Trainable", trainable - options.frozen_parameters);
  total("Non-trainable", state + options.frozen_parameters);
  if (options.optimizer_parameters >= 0) total("Optimizer", options.optimizer_parameters);
  return out;
}

}  // namespace strata::detail
