// The metrics of one epoch (logs), and those of all epochs (history).
#pragma once
#include <cstddef>
#include <initializer_list>
#include <optional>
#include <ostream>
#include <strata/base/error.hpp>
#include <strata/base/linkage.hpp>
#include <strata/base/text.hpp>
#include <strata/state/time_split.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace strata {

/// Values by name, in the order in which they were added: loss, accuracy, val_loss, val_accuracy.
class logs {
  std::vector<std::pair<std::string, double>> values_;
  std::vector<std::pair<std::string, std::vector<double>>> arrays_;

 public:
  logs() = default;
  // Copied, moved and destroyed by functions of logs.ipp, so that they are not inlined into each caller.
  logs(const logs& other);
  logs(logs&& other) noexcept;
  logs& operator=(const logs& other);
  logs& operator=(logs&& other) noexcept;
  ~logs();
  logs(std::initializer_list<std::pair<std::string, double>> values);

  /// Adds a value, or replaces the value of that name.
  [[gnu::cold]] void set(std::string_view name, double value);
  std::optional<double> find(std::string_view name) const;
  bool contains(std::string_view name) const { return find(name).has_value(); }
  /// Throws strata_error, which lists the existing names.
  [[gnu::cold]] double operator[](std::string_view name) const;

  /// A metric of several values, such as a confusion matrix, row after row. They are neither printed nor kept in a history.
  /// Throws strata_error, which lists the existing names.
  [[gnu::cold]] const std::vector<double>& array(std::string_view name) const;
  [[gnu::cold]] void set_array(std::string_view name, std::vector<double> values);

  std::size_t size() const { return values_.size(); }
  bool empty() const { return values_.empty(); }
  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }
  /// "loss, accuracy, val_loss"
  [[gnu::cold]] std::string names() const;

  friend bool operator==(const logs&, const logs&) = default;
  /// loss: 0.2811 - accuracy: 0.9123
  friend std::ostream& operator<<(std::ostream& out, const logs& l);
};

namespace detail {
/// The result of evaluate. Its first N values, loss and metrics, can be bound by `auto [loss, accuracy] = model.evaluate(x, y)`.
template <std::size_t N>
struct evaluated : logs {
  /// Value I, for structured bindings.
  template <std::size_t I>
  double get() const {
    return (begin() + I)->second;
  }
};
}  // namespace detail

/// The logs of all epochs, which fit returns: h["val_loss"].back().
class training_history {
  std::vector<int> epochs_;
  std::vector<logs> logs_;
  std::vector<time_split> times_;

 public:
  training_history() = default;
  // Copied, moved and destroyed by functions of logs.ipp, so that they are not inlined into each caller.
  training_history(const training_history& other);
  training_history(training_history&& other) noexcept;
  training_history& operator=(const training_history& other);
  training_history& operator=(training_history&& other) noexcept;
  ~training_history();
  /// Epochs count from 0.
  [[gnu::cold]] void add(int epoch, const logs& of_epoch);

  /// The value of each epoch that has it. If none has, throws strata_error, which lists the existing names.
  [[gnu::cold]] std::vector<double> operator[](std::string_view name) const;
  bool contains(std::string_view name) const;

  /// The index of each epoch, from 0, and its logs.
  const std::vector<int>& epochs() const { return epochs_; }
  const std::vector<logs>& all() const { return logs_; }
  std::size_t size() const { return logs_.size(); }
  bool empty() const { return logs_.empty(); }

  /// The time split of each process that trained until the end, in the order of their ranks.
  const std::vector<time_split>& times() const { return times_; }
  void add_time(const time_split& of_next_process);

  /// Epoch 1 - loss: 0.2811 - accuracy: 0.9123, one line per epoch
  friend std::ostream& operator<<(std::ostream& out, const training_history& h);
};

}  // namespace strata

template <std::size_t N>
struct std::tuple_size<strata::detail::evaluated<N>> : std::integral_constant<std::size_t, N> {};
template <std::size_t I, std::size_t N>
struct std::tuple_element<I, strata::detail::evaluated<N>> {
  using type = double;
};

#if STRATA_DEFINES
#include <strata/state/logs.ipp>
#endif
