// Options of fit, in any order: epochs(5), batch_size(64), steps_per_epoch(100), validation(test), verbose::line.
#pragma once
#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <strata/base/error.hpp>
#include <strata/base/linkage.hpp>
#include <strata/base/standard_ranges.hpp>
#include <strata/base/text.hpp>
#include <strata/concepts/batch_source.hpp>
#include <strata/data/core/column.hpp>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace strata {

/// How many times fit iterates over the data.
struct epochs {
  int count;
  constexpr explicit epochs(int n) : count(n) {}
};

/// The index of the first epoch, for a training that continues an earlier one.
struct initial_epoch {
  int number;
  constexpr explicit initial_epoch(int n) : number(n) {}
};

/// An epoch is this many batches. The next epoch continues where the last one stopped; at the end of the data it starts again.
struct steps_per_epoch {
  long count;
  constexpr explicit steps_per_epoch(long n) : count(n) {}
};

/// The number of batches per call of the batch hooks: they run before the first and after the last of so many, and state.loss is
/// that of the last. The results are the same. Keras' option of compile: https://keras.io/api/models/model_training_apis
struct steps_per_execution {
  long count;
  constexpr explicit steps_per_execution(long n) : count(n) {}
};

/// How many samples of x and y are a batch, over all devices and processes; all of them if there are fewer. Keras' default is 32.
/// A data set has `batch` instead.
struct batch_size {
  int count = 32;
  constexpr explicit batch_size(int n) : count(n) {}

  /// The size of a batch of `samples` samples. Throws strata_error if the count is below 1.
  int of(std::size_t samples) const {
    if (count < 1) throw_error({"batch_size(", count, "): a batch has at least one sample"});
    return static_cast<int>(std::min(samples, static_cast<std::size_t>(count)));
  }
};

/// Whether the samples of x and y are shuffled anew in each epoch, in an order that the seed of the trainer determines. Keras'
/// default is true. A data set has data::shuffle instead.
struct shuffle {
  bool on = true;
  constexpr explicit shuffle(bool yes) : on(yes) {}
};

namespace detail {
/// The type in which an option stores an array: a range that outlives fit is borrowed.
template <class A>
struct kept_array {
  using type = std::remove_cvref_t<A>;
};
template <class A>
  requires(std::is_lvalue_reference_v<A> && std::ranges::contiguous_range<A> && std::ranges::sized_range<A>)
struct kept_array<A> {
  using type = std::span<const std::ranges::range_value_t<A>>;
};
}  // namespace detail

/// A weight for each sample of x, which multiplies its loss and so its gradient: `sample_weight(weights)`. Metrics are
/// unweighted. The loss is the sum of weight * loss over the samples, divided by their number, as in Keras.
template <class Weights>
struct sample_weight {
  Weights values;
  constexpr explicit sample_weight(Weights w) : values(std::move(w)) {}
};
template <class Weights>
sample_weight(Weights&&) -> sample_weight<typename detail::kept_array<Weights>::type>;

/// Weights of classes, such as `class_weight{{0, 1.0}, {1, 50.0}}`: each sample has the weight of its class, 1 if the class is
/// not listed. The class is the label, the index of the largest target or, for a single target, the integer next to it.
/// Validation ignores these weights.
class class_weight {
  std::vector<std::pair<int, double>> weights_;

 public:
  class_weight() = default;
  class_weight(std::initializer_list<std::pair<int, double>> weights);
  class_weight(const class_weight& other);
  class_weight(class_weight&& other) noexcept;
  class_weight& operator=(const class_weight& other);
  class_weight& operator=(class_weight&& other) noexcept;
  ~class_weight();
  /// Takes any range of pairs, such as a std::map<int, double>.
  template <std::ranges::input_range R>
    requires(!std::same_as<std::remove_cvref_t<R>, class_weight>)
  explicit class_weight(const R& weights) {
    for (const auto& [index, weight] : weights) weights_.emplace_back(index, weight);
  }

  bool empty() const { return weights_.empty(); }
  /// Throws strata_error for a class outside [0, classes), and for a weight that is negative or not finite.
  void check(long classes) const;
  /// ", class_weight {0: 1, 1: 50}"; empty without weights. Processes that train together compare it.
  std::string text() const;
  double of(int index) const;
};

namespace core {
/// The class_weight of one output of a graph.
template <class Node>
struct classes_at {
  using node = Node;
  class_weight weights;
};
}  // namespace core
namespace detail {
template <class Option>
inline constexpr bool is_classes_at = false;
template <class Node>
inline constexpr bool is_classes_at<core::classes_at<Node>> = true;

/// The type in which validation stores a source: a copy of an lvalue, which is borrowed if it cannot be copied.
template <class Source>
struct kept_source {
  using type = of_any_batch_size_t<std::decay_t<Source>>;
};
template <class Source>
  requires(!std::copy_constructible<std::remove_const_t<Source>>)
struct kept_source<Source&> {
  using type = of_any_batch_size_t<Source>&;
};
}  // namespace detail

/// Evaluates after each epoch on this source of batches, on the arrays x and y, perhaps with weights of the samples, or on a
/// column for each input and output of a graph: `validation(of<image>(x), of<kind>(y))`.
template <class Source, class Truth = void, class Weights = void>
struct validation {
  Source x;
  Truth y;
  Weights weights;
  /// Only the guides below deduce the types.
  constexpr validation(std::type_identity_t<Source> samples, Truth truth, Weights w)
      : x(std::move(samples)), y(std::move(truth)), weights(std::move(w)) {}
};
template <class Source, class Truth>
struct validation<Source, Truth, void> {
  Source x;
  Truth y;
  constexpr validation(Source samples, Truth truth) : x(std::move(samples)), y(std::move(truth)) {}
};
template <class Source>
struct validation<Source, void, void> {
  Source source;
  constexpr explicit validation(Source s) : source(std::forward<Source>(s)) {}
};
template <class... Columns>
struct validation<std::tuple<Columns...>, void, void> {
  std::tuple<Columns...> columns;
  constexpr explicit validation(Columns... each) : columns(std::move(each)...) {}
};
template <class Source>
  requires(!detail::is_column<std::remove_cvref_t<Source>>)
validation(Source&&) -> validation<typename detail::kept_source<Source>::type>;
template <class X, class Y>
  requires(!detail::is_column<std::remove_cvref_t<X>>)
validation(X&&, Y&&) -> validation<typename detail::kept_array<X>::type, typename detail::kept_array<Y>::type>;
template <class X, class Y, class W>
  requires(!detail::is_column<std::remove_cvref_t<X>>)
validation(X&&, Y&&, W&&) -> validation<typename detail::kept_array<X>::type, typename detail::kept_array<Y>::type,
                                        typename detail::kept_array<W>::type>;
template <class First, class... More>
  requires detail::is_column<std::remove_cvref_t<First>>
validation(First&&, More&&...) -> validation<std::tuple<std::remove_cvref_t<First>, std::remove_cvref_t<More>...>>;

/// Holds out the last samples of x and y, before they are shuffled, and evaluates on them after each epoch:
/// `validation_split(0.2)`.
struct validation_split {
  double fraction;
  constexpr explicit validation_split(double f) : fraction(f) {}

  /// How many of the first samples train, rounded down as in Keras. Throws strata_error if one of the two parts would be
  /// empty.
  std::size_t to_train(std::size_t samples) const {
    if (!(fraction > 0 && fraction < 1))
      throw_error({"validation_split(", fraction,
                   "): the fraction must be above 0 and below 1; leave the option out to hold back no sample"});
    const double first = std::floor(double(samples) * (1 - fraction));
    if (first < 1 || first >= double(samples))
      throw_error({"validation_split(", fraction, "): of ", samples, " samples ", first < 1 ? "none" : "all",
                   " would be used for training"});
    return static_cast<std::size_t>(first);
  }
};

/// Validates after every n-th epoch only. Callbacks that monitor a val_ value skip the other epochs.
struct validation_freq {
  int epochs = 1;
  constexpr explicit validation_freq(int n) : epochs(n) {}
};

/// Validates on the first n batches only.
struct validation_steps {
  long count = 0;
  constexpr explicit validation_steps(long n) : count(n) {}
};

/// The seed of weights and dropout.
struct seed {
  std::uint64_t value;
  constexpr explicit seed(std::uint64_t v) : value(v) {}
};

}  // namespace strata

#if STRATA_DEFINES
#include <strata/train/fit_options.ipp>
#endif
