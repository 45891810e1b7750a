// What one epoch gave (logs), and what all of them gave (history).
#pragma once
#include <algorithm>
#include <initializer_list>
#include <optional>
#include <ostream>
#include <strata/base/error.hpp>
#include <strata/train/time_split.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace strata {

/// Values by name, in the order in which they came: loss, accuracy, val_loss, val_accuracy.
class logs {
  std::vector<std::pair<std::string, double>> values_;

 public:
  logs() = default;
  logs(std::initializer_list<std::pair<std::string, double>> values) {
    for (const auto& [name, value] : values) set(name, value);
  }

  /// Adds a value, or replaces the one of that name.
  void set(std::string_view name, double value) {
    const auto at = std::ranges::find(values_, name, &std::pair<std::string, double>::first);
    if (at != values_.end())
      at->second = value;
    else
      values_.emplace_back(name, value);
  }
  std::optional<double> find(std::string_view name) const {
    const auto at = std::ranges::find(values_, name, &std::pair<std::string, double>::first);
    return at != values_.end() ? std::optional(at->second) : std::nullopt;
  }
  bool contains(std::string_view name) const { return find(name).has_value(); }
  /// Throws strata::error, which names those that exist.
  double operator[](std::string_view name) const {
    if (const auto value = find(name)) return *value;
    throw error("there is no '" + std::string(name) + "' in the logs" + (empty() ? ": they are empty" : ", but " + names()));
  }

  std::size_t size() const { return values_.size(); }
  bool empty() const { return values_.empty(); }
  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }
  /// "loss, accuracy, val_loss"
  std::string names() const {
    std::string out;
    for (const auto& [name, value] : values_) out += (out.empty() ? "" : ", ") + name;
    return out;
  }

  friend bool operator==(const logs&, const logs&) = default;
  /// loss: 0.2811 - accuracy: 0.9123
  friend std::ostream& operator<<(std::ostream& out, const logs& l) {
    for (const char* between = ""; const auto& [name, value] : l) out << std::exchange(between, " - ") << name << ": " << value;
    return out;
  }
};

/// The logs of all epochs, as fit returns them: h["val_loss"].back().
class history {
  std::vector<int> epochs_;
  std::vector<logs> logs_;
  std::vector<time_split> times_;

 public:
  /// Epochs count from 0.
  void add(int epoch, logs of_epoch) {
    epochs_.push_back(epoch);
    logs_.push_back(std::move(of_epoch));
  }

  /// That value in each epoch which has it. Throws strata::error if none has, and names what there is.
  std::vector<double> operator[](std::string_view name) const {
    std::vector<double> out;
    for (const logs& one : logs_)
      if (const auto value = one.find(name)) out.push_back(*value);
    if (!out.empty()) return out;
    logs all;
    for (const logs& one : logs_)
      for (const auto& [known, value] : one) all.set(known, value);
    throw error("there is no '" + std::string(name) + "' in the history" +
                (all.empty() ? ": it is empty" : ", but " + all.names()));
  }
  bool contains(std::string_view name) const {
    return std::ranges::any_of(logs_, [&](const logs& one) { return one.contains(name); });
  }

  /// The numbers of the epochs, and what each gave.
  const std::vector<int>& epochs() const { return epochs_; }
  const std::vector<logs>& all() const { return logs_; }
  std::size_t size() const { return logs_.size(); }
  bool empty() const { return logs_.empty(); }

  /// Where the time of each process went that trained until the end, in the order of their ranks.
  const std::vector<time_split>& times() const { return times_; }
  void set_times(std::vector<time_split> times) { times_ = std::move(times); }

  /// Epoch 1 - loss: 0.2811 - accuracy: 0.9123, one line per epoch
  friend std::ostream& operator<<(std::ostream& out, const history& h) {
    for (std::size_t i = 0; i < h.size(); ++i) out << "Epoch " << h.epochs_[i] + 1 << " - " << h.logs_[i] << '\n';
    return out;
  }
};

}  // namespace strata
