// The table of layers, output shapes and parameters, as Keras prints it; and the names that it gives to layers and parameters.
#pragma once
#include <algorithm>
#include <cmath>
#include <strata/base/text.hpp>
#include <strata/network/layout.hpp>
#include <string>
#include <string_view>
#include <sys/ioctl.h>
#include <unistd.h>
#include <vector>

namespace strata {

// Functions that run once are marked cold: compiled for size, they cost a third of the time.

namespace detail {

constexpr bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
constexpr bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// MaxPooling2D -> max_pooling2d: keras.src.utils.naming.to_snake_case, which splits before an upper-case letter that lower
/// case follows, then between lower and upper case.
[[gnu::cold]] inline std::string snake_case(std::string_view class_name) {
  std::string word, split, out;
  for (char c : class_name)
    if (is_lower(c) || is_upper(c) || is_digit(c) || c == '_') word += c;
  for (std::size_t i = 0; i < word.size();) {
    split += word[i++];
    if (i + 1 >= word.size() || !is_upper(word[i]) || !is_lower(word[i + 1])) continue;
    split += '_';
    split += word[i++];
    while (i < word.size() && is_lower(word[i])) split += word[i++];
  }
  for (std::size_t i = 0; i < split.size(); ++i) {
    out += is_upper(split[i]) ? char(split[i] - 'A' + 'a') : split[i];
    if (i + 1 < split.size() && is_lower(split[i]) && is_upper(split[i + 1])) out += '_';
  }
  return out;
}

/// name, name_1, name_2, ...: the first that is not among `taken`.
[[gnu::cold]] inline std::string unique_name(const std::string& name, std::span<const std::string> taken) {
  std::string candidate = name;
  for (int k = 1; std::ranges::find(taken, candidate) != taken.end(); ++k) candidate = name + '_' + std::to_string(k);
  return candidate;
}

[[gnu::cold]] inline std::vector<std::string> layer_names(std::span<const node> nodes) {
  std::vector<std::string> names;
  for (const node& n : nodes)
    if (n.layer_number == int(names.size())) names.push_back(unique_name(snake_case(n.layer->class_name), names));
  return names;
}

[[gnu::cold]] inline std::vector<std::string> parameter_names(std::span<const node> nodes, std::span<const parameter_slot> slots) {
  const std::vector<std::string> layers = layer_names(nodes);
  std::vector<std::string> names;
  for (const parameter_slot& s : slots)
    names.push_back(unique_name(layers[std::size_t(nodes[std::size_t(s.node)].layer_number)] + '/' + s.what.name, names));
  return names;
}

template <class Network>
std::span<const node> nodes_of() {
  return tape_of<typename Network::items>.nodes;
}
template <class Network>
std::span<const parameter_slot> slots_of() {
  constexpr const auto& layout = layout_of<typename Network::items>;
  return {layout.slots, std::size_t(layout.count)};
}

}  // namespace detail

/// A unique name for each layer, by layer number: Keras' automatic ones, as in a fresh process. input_layer, conv2d, conv2d_1,
/// ...
template <network Network>
std::vector<std::string> layer_names_of() {
  return detail::layer_names(detail::nodes_of<Network>());
}

/// A unique name for each slot of layout_of, in its order: conv2d_1/kernel, conv2d_1/bias, ...
template <network Network>
std::vector<std::string> parameter_names_of() {
  return detail::parameter_names(detail::nodes_of<Network>(), detail::slots_of<Network>());
}

struct summary_options {
  /// Bytes of one number.
  int element_size = 4;
  /// Numbers that the optimizer keeps; below 0: there is none, and no line about it.
  long optimizer_parameters = -1;
  /// Columns of the table. 0: as many as Keras takes, 88 (108 with branches), or less if standard output is a narrower terminal.
  int line_length = 0;
  /// The model's name. Empty: Keras' automatic one.
  std::string name = {};
};

namespace detail {

/// 18496 -> 18,496
[[gnu::cold]] inline std::string grouped(long n) {
  std::string digits = std::to_string(n);
  for (int at = int(digits.size()) - 3; at > (n < 0 ? 1 : 0); at -= 3) digits.insert(std::size_t(at), ",");
  return digits;
}

[[gnu::cold]] inline std::string readable_memory(double bytes) {
  static constexpr const char* units[] = {"B", "KB", "MB", "GB", "TB", "PB"};
  int unit = 0;
  for (; unit < 5 && bytes >= 1024; ++unit) bytes /= 1024;
  return formatted("%.2f %s", bytes, units[unit]);
}

/// A text table with the look of Python's rich, which Keras prints with. Cells hold ASCII.
class summary_table {
  struct column {
    std::string_view header;
    bool right;
    int width;
  };
  std::vector<column> columns_;
  std::vector<std::vector<std::string>> rows_;

 public:
  /// `ends`: where each column ends, as a share of the line.
  [[gnu::cold]] summary_table(std::span<const std::string_view> headers, std::span<const double> ends, int line_length) {
    int at = 0, excess = int(headers.size()) + 1 - line_length;
    for (std::size_t i = 0; i < headers.size(); ++i) {
      const int end = int(ends[i] * line_length);
      columns_.push_back({headers[i], headers[i] == "Param #", end - at + 2});
      excess += end - at + 2;
      at = end;
    }
    // There is no room for the blanks and rules: rich takes it from all columns alike, rounding halves to even.
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const int left = int(columns_.size() - i), share = int(std::nearbyint(double(excess) / left));
      columns_[i].width -= share;
      excess -= share;
    }
  }

  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

  [[gnu::cold]] std::string text() const {
    std::vector<std::string> headers;
    for (const column& c : columns_) headers.emplace_back(c.header);
    std::string out = rule("┏", "━", "┳", "┓") + row(headers, "┃") + rule("┡", "━", "╇", "┩");
    for (std::size_t i = 0; i < rows_.size(); ++i) out += (i > 0 ? rule("├", "─", "┼", "┤") : "") + row(rows_[i], "│");
    return out + rule("└", "─", "┴", "┘");
  }

 private:
  [[gnu::cold]] std::string rule(std::string_view left, std::string_view line, std::string_view cross, std::string_view right) const {
    std::string out;
    for (const column& c : columns_) {
      out += out.empty() ? left : cross;
      for (int i = 0; i < c.width; ++i) out += line;
    }
    return out.append(right) + '\n';
  }

  /// Breaks at blanks; a word that is too long ends in an ellipsis.
  [[gnu::cold]] static std::vector<std::string> wrapped(std::string_view text, std::size_t width) {
    std::vector<std::string> lines;
    while (!text.empty()) {
      const std::string_view word = text.substr(0, text.find(' '));
      text.remove_prefix(std::min(text.size(), word.size() + 1));
      if (!lines.empty() && lines.back().size() + 1 + word.size() <= width)
        lines.back().append(" ").append(word);
      else
        lines.emplace_back(word);
    }
    for (std::string& line : lines)
      if (line.size() > width) line = line.substr(0, width - 1) + "…";
    return lines;
  }

  /// Code points: the ellipsis has three bytes.
  static int characters(std::string_view text) {
    return int(std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
  }

  [[gnu::cold]] std::string row(std::span<const std::string> cells, std::string_view bar) const {
    std::vector<std::vector<std::string>> lines;
    std::size_t height = 1;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      lines.push_back(wrapped(cells[i], std::size_t(columns_[i].width - 2)));
      height = std::max(height, lines.back().size());
    }
    std::string out;
    for (std::size_t k = 0; k < height; ++k) {
      for (std::size_t i = 0; i < cells.size(); ++i) {
        const std::string line = k < lines[i].size() ? lines[i][k] : "";
        const int width = columns_[i].width - 2;
        const std::string blanks(std::size_t(std::max(0, width - characters(line))), ' ');
        out.append(bar) += ' ' + (columns_[i].right ? blanks + line : line + blanks) + ' ';
      }
      out.append(bar) += '\n';
    }
    return out;
  }
};

inline std::string shape_of_batch(const shape& s) {
  std::string out = "(None";
  for (int i = 0; i < s.rank(); ++i) out += ", " + std::to_string(s[i]);
  return out + ")";
}

inline int line_length_of_terminal(int wanted) {
  winsize size{};
  if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    wanted = std::min(wanted, size.ws_col - 4);
  return wanted;
}

[[gnu::cold]] inline std::string summary_text(std::span<const node> nodes, std::span<const parameter_slot> slots, long trainable, long state,
                                const summary_options& options) {
  const std::vector<std::string> names = layer_names(nodes);
  struct row {
    const node* last = nullptr;
    std::string inputs;
    long parameters = 0;
  };
  std::vector<row> rows(names.size());
  bool chain = true;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const node& n = nodes[i];
    row& r = rows[std::size_t(n.layer_number)];
    chain = chain && (i == 0 || (n.arity == 1 && n.input[0] == int(i) - 1));
    for (int k = 0; k < n.arity; ++k)
      if (const int from = nodes[std::size_t(n.input[k])].layer_number; from != n.layer_number)
        r.inputs += (r.inputs.empty() ? "" : ", ") + names[std::size_t(from)] + "[0][0]";
    r.last = &n;
  }
  for (const parameter_slot& s : slots)
    rows[std::size_t(nodes[std::size_t(s.node)].layer_number)].parameters += s.what.extents.size();

  static constexpr std::string_view headers[] = {"Layer (type)", "Output Shape", "Param #", "Connected to"};
  static constexpr double ends[] = {0.45, 0.80, 1.0}, ends_with_inputs[] = {0.3, 0.56, 0.74, 1.0};
  const int length = std::max(40, options.line_length > 0 ? options.line_length : line_length_of_terminal(chain ? 88 : 108));
  summary_table table({headers, chain ? 3u : 4u}, chain ? std::span<const double>(ends) : ends_with_inputs, length);
  for (std::size_t i = chain ? 1 : 0; i < rows.size(); ++i) {
    const row& r = rows[i];
    std::vector<std::string> cells = {names[i] + " (" + r.last->layer->class_name + ")", shape_of_batch(r.last->out),
                                      grouped(r.parameters)};
    if (!chain) cells.push_back(r.inputs.empty() ? "-" : r.inputs);
    table.add(std::move(cells));
  }

  std::string out =
      "Model: \"" + (options.name.empty() ? std::string(chain ? "sequential" : "functional") : options.name) + "\"\n" + table.text();
  const auto total = [&](const char* what, long count) {
    out += std::string(" ") + what + " params: " + grouped(count) + " (" + readable_memory(double(count) * options.element_size) + ")\n";
  };
  total("Total", trainable + state + std::max(0L, options.optimizer_parameters));
  total("Trainable", trainable);
  total("Non-trainable", state);
  if (options.optimizer_parameters >= 0) total("Optimizer", options.optimizer_parameters);
  return out;
}

}  // namespace detail

/// The table that Keras' model.summary() prints (UTF-8), one row per layer; with branches, a column says what a layer is
/// connected to.  https://keras.io/api/models/model#summary-method
template <network Network>
std::string summary_of(const summary_options& options = {}) {
  constexpr const auto& layout = layout_of<typename Network::items>;
  return detail::summary_text(detail::nodes_of<Network>(), detail::slots_of<Network>(), layout.trainable_count,
                              layout.state_count, options);
}

}  // namespace strata
