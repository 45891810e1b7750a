// The value that a callback monitors, by name, and whether smaller or larger is better.
#pragma once
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <strata/base/error.hpp>
#include <strata/base/text.hpp>
#include <strata/callbacks/pattern.hpp>
#include <strata/state/logs.hpp>
#include <strata/state/training_state.hpp>
#include <string>
#include <string_view>
#include <utility>

namespace strata {

/// Which values are better. `automatic`: deduced from the name of the loss or metric.
enum class monitor_mode : std::uint8_t { automatic, min, max };

namespace detail {

/// Whether the name contains the word without a letter or digit beside it: "acc" in "val_acc", but not in "acceleration".
constexpr bool has_word(std::string_view name, std::string_view word) {
  constexpr auto within_word = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); };
  for (std::size_t at = 0; (at = name.find(word, at)) != name.npos; ++at) {
    const std::size_t end = at + word.size();
    if ((at == 0 || !within_word(name[at - 1])) && (end == name.size() || !within_word(name[end]))) return true;
  }
  return false;
}

/// Which values of a loss or metric are better, by its name, with or without val_; empty for an unknown name.
constexpr std::optional<monitor_mode> mode_of(std::string_view name) {
  if (name.starts_with("val_")) name.remove_prefix(4);
  if (name == "loss") return monitor_mode::min;
  constexpr std::array smaller{"error", "crossentropy", "loss", "hinge", "divergence", "poisson", "log_cosh", "huber", "false"};
  constexpr std::array larger{"accuracy",   "acc", "auc",      "precision", "recall",      "f1",         "fbeta",
                              "similarity", "iou", "r2_score", "true",      "sensitivity", "specificity"};
  for (const char* part : smaller)
    if (has_word(name, part)) return monitor_mode::min;
  for (const char* part : larger)
    if (has_word(name, part)) return monitor_mode::max;
  return {};
}

/// The value that a callback monitors.
class monitored {
  const char* callback_;
  std::string name_;
  monitor_mode mode_;
  double min_delta_;

 public:
  /// Throws strata_error if min_delta is not a number.
  monitored(const char* callback, std::string name, monitor_mode mode, double min_delta)
      : callback_(callback), name_(std::move(name)), mode_(mode), min_delta_(std::abs(min_delta)) {
    if (!std::isfinite(min_delta_)) throw_error({callback_, ": min_delta is ", min_delta});
    if (mode_ == monitor_mode::automatic) mode_ = mode_of(name_).value_or(mode_);
  }

  /// "val_loss, smaller is better": a stored best value is only used if these settings are equal.
  std::string settings() const { return text_of({name_, ", ", mode_ == monitor_mode::max ? "larger" : "smaller", " is better"}); }
  /// Whether the value is a val_ value in an epoch without validation.
  bool is_left_out(const training_state& s) const { return s.skips_validation && name_.starts_with("val_"); }
  /// Throws strata_error, which lists the values of an epoch, if the name is not among them, or if `automatic` cannot be
  /// deduced from it.
  void check(const logs& values) const {
    if (!values.contains(name_))
      throw_error({callback_, ": there is no '", name_, "'; known: ", values.names(), hint_for(name_)});
    if (mode_ == monitor_mode::automatic)
      throw_error({callback_, ": it is unknown whether a smaller or a larger '", name_, "' is better: set mode to ",
                   "monitor_mode::min or monitor_mode::max"});
  }
  /// Checks the name before the first epoch.
  void check(const training_state& s) const {
    if (!s.expected.empty()) check(s.expected);
  }
  /// The value; nan if the loss over the same data is nan, because some metrics of diverged weights look good, such as a count of
  /// false positives. Throws strata_error as check does.
  double of(const logs& values) const {
    check(values);
    const double value = values[name_], loss = values.find(name_.starts_with("val_") ? "val_loss" : "loss").value_or(value);
    return std::isnan(loss) ? loss : value;
  }
  /// Whether `value` is better by more than min_delta. Any number is better than none, and nan is never better.
  bool is_better(double value, std::optional<double> than) const {
    if (!than) return !std::isnan(value);
    return mode_ == monitor_mode::max ? value - min_delta_ > *than : value + min_delta_ < *than;
  }
};

/// Stores a best value, if there is one, in the state of a callback.
inline void put_best(logs& state, const std::optional<double>& best) {
  if (best) state.set("best", *best);
}

/// Reads a count from the state of a callback; -1: none. Throws strata_error if it is not such a number.
inline int count_in(const logs& state, std::string_view name) {
  const double count = state[name];
  if (!(count >= -1 && count <= 1e9)) throw_error({"the state of a callback has ", count, " as '", std::string(name), '\''});
  return int(count);
}

/// Throws strata_error if the setting is nan, with which no value compares.
inline void refuse_nan(const char* callback, const char* setting, const std::optional<double>& value) {
  if (value && std::isnan(*value)) throw_error({callback, ": ", setting, " is nan"});
}
/// Throws strata_error if the setting is negative.
inline void refuse_negative(const char* callback, const char* setting, double value) {
  if (!(value >= 0)) throw_error({callback, ": ", setting, " is ", value, ", but must be at least 0"});
}

}  // namespace detail
}  // namespace strata
