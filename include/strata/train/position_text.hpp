// A training_position as text: names and values, for snapshots and for processes that join late.
#pragma once
#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <strata/base/error.hpp>
#include <strata/base/exact_text.hpp>
#include <strata/base/read_number.hpp>
#include <strata/train/training_position.hpp>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

namespace strata::detail {

inline std::string joined_lines(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) out += (out.empty() ? "" : "\n") + line;
  return out;
}
inline std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    out.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

/// The first difference between two descriptions of a training, as text; empty if there is none.
inline std::string difference_of(const std::vector<std::string>& theirs, const std::vector<std::string>& ours) {
  for (std::size_t i = 0; i < std::max(theirs.size(), ours.size()); ++i) {
    const std::string there = i < theirs.size() ? theirs[i] : "nothing more", here = i < ours.size() ? ours[i] : "nothing more";
    if (there != here) return "it has '" + there + "' where this one has '" + here + "'";
  }
  return {};
}

/// Returns false if the text is not such a number.
template <class Number>
bool read_exact(std::string_view text, Number& value) {
  const auto [end, failure] = read_number(text.data(), text.data() + text.size(), value);
  return failure == std::errc{} && end == text.data() + text.size();
}

/// Values by name.
using named_texts = std::map<std::string, std::string>;

/// Throws strata_error for a name of a value with a line break.
inline named_texts texts_of(const training_position& at) {
  const auto one_line = [](const std::string& name) {
    if (name.find('\n') != name.npos) throw_error({"a value has a name with a line break: ", detail::quoted(name)});
    return name + '\n';
  };
  named_texts out{{"step", exact_text(at.step)},
                  {"epoch", exact_text(at.epoch)},
                  {"in_epoch", exact_text(int(at.in_epoch))},
                  {"steps_of_epoch", exact_text(at.steps_of_epoch)},
                  {"samples_of_epoch", exact_text(at.samples_of_epoch)},
                  {"next_pass", exact_text(at.next_pass)},
                  {"in_pass", exact_text(int(at.in_pass))},
                  {"batches_of_pass", exact_text(at.batches_of_pass)},
                  {"stop_training", exact_text(int(at.stop_training))}};
  if (at.data) {
    out["data_epoch"] = exact_text(at.data->epoch);
    out["data_samples"] = exact_text(at.data->samples);
  }
  if (at.learning_rate) out["learning_rate"] = exact_text(*at.learning_rate);
  if (at.new_learning_rate) out["new_learning_rate"] = exact_text(*at.new_learning_rate);
  if (!at.loss_weights.empty()) {
    std::string& weights = out["loss_weights"];  // a line each
    for (const double weight : at.loss_weights) weights += exact_text(weight) + '\n';
  }
  std::string& sums = out["metric_sums"];  // "sum count", a line each
  for (const metric_sum& t : at.metric_sums) sums += exact_text(t.sum) + ' ' + exact_text(t.count) + '\n';
  if (!at.callbacks.empty()) {
    std::string& states = out["callbacks"];  // "value name", a line each
    for (const auto& [name, value] : at.callbacks) states += exact_text(value) + ' ' + one_line(name);
  }
  std::string& past = out["history"];  // "epoch value name", a line each
  for (std::size_t i = 0; i < at.past.size(); ++i)
    for (const auto& [name, value] : at.past.all()[i])
      past += exact_text(at.past.epochs()[i]) + ' ' + exact_text(value) + ' ' + one_line(name);
  return out;
}

/// One text of all names and values, for other processes: each is preceded by its length in bytes and a colon.
inline std::string packed(const named_texts& all) {
  std::string out;
  for (const auto& [name, value] : all)
    for (const std::string& each : {name, value}) out += exact_text(each.size()) + ':' + each;
  return out;
}
/// Throws strata_error if it is not such a text.
inline named_texts unpacked(std::string_view all) {
  const auto next = [&] {
    const std::size_t colon = std::min(all.find(':'), all.size());
    std::size_t size = 0;
    if (!read_exact(all.substr(0, colon), size) || colon == all.size() || size > all.size() - colon - 1)
      throw_error("the state from another process is damaged");
    const std::string_view text = all.substr(colon + 1, size);
    all.remove_prefix(colon + 1 + size);
    return std::string(text);
  };
  named_texts out;
  while (!all.empty()) {
    std::string name = next();
    out[std::move(name)] = next();
  }
  return out;
}

inline constexpr std::size_t most_names = 1'000;  // of the values of an epoch

/// Throws strata_error if a value is missing or malformed. `file` names the origin in messages.
inline training_position position_of(const named_texts& given, const std::string& file) {
  const auto refuse = [&](const std::string& key) { throw_error(file + ": '" + key + "' is missing or invalid"); };
  const auto text = [&](const char* key) -> const std::string& {
    const auto at = given.find(key);
    if (at == given.end()) refuse(key);
    return at->second;
  };
  const auto number = [&](const char* key, auto& value) {
    if (!read_exact(text(key), value)) refuse(key);
  };
  const auto count = [&](const char* key, auto& value) {
    number(key, value);
    if (std::is_signed_v<std::remove_reference_t<decltype(value)>> && value < 0) refuse(key);
  };
  const auto flag = [&](const char* key, bool& value) { value = text(key) == "1"; };
  training_position at;
  count("step", at.step);
  count("epoch", at.epoch);
  flag("in_epoch", at.in_epoch);
  count("steps_of_epoch", at.steps_of_epoch);
  count("samples_of_epoch", at.samples_of_epoch);
  count("next_pass", at.next_pass);
  flag("in_pass", at.in_pass);
  count("batches_of_pass", at.batches_of_pass);
  flag("stop_training", at.stop_training);
  if (given.contains("data_epoch")) {
    count("data_epoch", at.data.emplace().epoch);
    count("data_samples", at.data->samples);
  }
  if (given.contains("learning_rate")) number("learning_rate", at.learning_rate.emplace());
  if (given.contains("new_learning_rate")) number("new_learning_rate", at.new_learning_rate.emplace());
  if (given.contains("loss_weights"))
    for (const std::string& line : lines_of(text("loss_weights")))
      if (!read_exact(line, at.loss_weights.emplace_back())) refuse("loss_weights");
  for (const std::string& line : lines_of(text("metric_sums"))) {
    const std::size_t space = line.find(' ');
    metric_sum& t = at.metric_sums.emplace_back();
    if (space == line.npos || !read_exact(std::string_view(line).substr(0, space), t.sum) ||
        !read_exact(std::string_view(line).substr(space + 1), t.count))
      refuse("metric_sums");
  }
  if (given.contains("callbacks"))
    for (const std::string& line : lines_of(text("callbacks"))) {
      const std::size_t space = line.find(' ');
      double value = 0;
      if (space == line.npos || !read_exact(std::string_view(line).substr(0, space), value) || at.callbacks.size() == most_names)
        refuse("callbacks");
      at.callbacks.set(line.substr(space + 1), value);
    }
  logs of_epoch;
  std::optional<int> epoch;
  for (const std::string& line : lines_of(text("history"))) {
    const std::size_t first = line.find(' '), second = first == line.npos ? first : line.find(' ', first + 1);
    int of_line = 0;
    double value = 0;
    if (second == line.npos || !read_exact(std::string_view(line).substr(0, first), of_line) ||
        !read_exact(std::string_view(line).substr(first + 1, second - first - 1), value))
      refuse("history");
    if (epoch && of_line != *epoch) at.past.add(*epoch, std::exchange(of_epoch, {}));
    epoch = of_line;
    // Each name is compared with those before it.
    if (of_epoch.size() == most_names) refuse("history");
    of_epoch.set(line.substr(second + 1), value);
  }
  if (epoch) at.past.add(*epoch, std::move(of_epoch));
  return at;
}

}  // namespace strata::detail
