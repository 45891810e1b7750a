// The sources that fit, evaluate and predict read: ranges of batches whose sample shape and kind of labels are in the type.
#pragma once
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <strata/base/shape.hpp>
#include <strata/base/standard_function.hpp>
#include <strata/base/standard_ranges.hpp>
#include <strata/concepts/ends.hpp>
#include <strata/concepts/row_range.hpp>
#include <type_traits>

namespace strata {

/// The label of a sample: none, a class index, or a row of values (one-hot rows, regression targets).
enum class label_kind { none, sparse, dense };

namespace core {
/// The truth of the samples of a batch at one output. A loss reads one of the first two. A weight multiplies the loss of a
/// sample, and so its gradient; metrics and the number of samples do not depend on it. Null: all weights are 1.
/// gradient_weights replace them in the gradient: a graph reports each loss without its loss_weight, which multiplies the
/// gradient. Null: the gradient has the weights of the loss.
template <class T>
struct truth_rows {
  const std::int32_t* labels = nullptr;  // (count)
  const T* targets = nullptr;            // (count, target shape...)
  const T* weights = nullptr;            // (count)
  const T* gradient_weights = nullptr;   // (count)
};

/// Identifies a sample: its row in the source, and the epoch in which it is read, on which random stages depend.
struct sample_index {
  std::uint32_t row = 0, epoch = 0;

  friend constexpr auto operator<=>(sample_index, sample_index) = default;
};

/// Samples of a batch, row after row: for each input of the network their elements, and for each output the truth. If a device
/// keeps the data set (stored_samples), a batch may be the indices of its samples instead.
template <class T>
struct samples {
  using value_type = T;

  const T* inputs[max_ends] = {};  // each (count, shape of the input...)
  truth_rows<T> truths[max_ends] = {};
  const sample_index* stored = nullptr;  // not null: there are no arrays
  int count = 0;

  constexpr samples() = default;
  /// Samples of a network with one input and one output.
  constexpr samples(const T* x, int n) : inputs{x}, count(n) {}
  constexpr samples(const T* x, truth_rows<T> y, int n) : inputs{x}, truths{y}, count(n) {}
  constexpr samples(const T* x, const std::int32_t* labels, int n) : samples(x, {labels, nullptr, nullptr}, n) {}
  constexpr samples(const T* x, const T* targets, int n) : samples(x, {nullptr, targets, nullptr}, n) {}

  /// The only input, and the truth at the only output.
  constexpr const T* x() const { return inputs[0]; }
  constexpr const std::int32_t* labels() const { return truths[0].labels; }
  constexpr const T* targets() const { return truths[0].targets; }

  /// Up to `most` rows from row `begin` on, or fewer at the end.
  [[gnu::noinline]] constexpr samples rows(int begin, int most, const end_sizes& sizes) const {
    samples some;
    const int first = begin < count ? begin : count;
    some.count = most < count - first ? most : count - first;
    if (stored) {
      some.stored = stored + first;
      return some;
    }
    for (int k = 0; k < sizes.input_count; ++k)
      if (inputs[k]) some.inputs[k] = inputs[k] + first * sizes.inputs[k];
    for (int k = 0; k < sizes.output_count; ++k) {
      if (truths[k].labels) some.truths[k].labels = truths[k].labels + first;
      if (truths[k].targets) some.truths[k].targets = truths[k].targets + first * sizes.outputs[k];
      if (truths[k].weights) some.truths[k].weights = truths[k].weights + first;
      if (truths[k].gradient_weights) some.truths[k].gradient_weights = truths[k].gradient_weights + first;
    }
    return some;
  }
};

/// The rows of a batch for each output of a network: (count, shape of the output...).
template <class T>
struct output_rows {
  T* at[max_ends] = {};

  constexpr output_rows() = default;
  /// The rows of a network with one output.
  constexpr output_rows(T* only) : at{only} {}
};

/// How far a training has read a data set, as a snapshot stores it. Independent of batch size, threads and workers.
struct data_position {
  int epoch = 0;
  std::uint64_t samples = 0;  // of this epoch so far, over all workers

  friend bool operator==(const data_position&, const data_position&) = default;
};

/// Returns the rows that a process reads of a batch of `count` samples. Empty: all rows.
using row_choice = std::function<row_range(int count)>;

/// Threads that write the rows of a batch: calls write(begin, end) for parts of [0, count), several at once, and returns when all
/// are written. Empty: the caller writes.
using row_writers = std::function<void(std::size_t count, const std::function<void(std::size_t begin, std::size_t end)>& write)>;
}  // namespace core

namespace detail {
template <class S>
concept has_batch_size_in_type = requires {
  { S::batch_size } -> std::convertible_to<int>;
};
/// Samples with names: `columns` lists what the arrays of a batch are, see data::column_of. Input columns are samples::inputs in
/// their order, those of outputs are samples::truths in theirs.
template <class S>
concept has_columns = requires { typename std::remove_cvref_t<S>::columns; };
template <class S>
concept has_batch_size_at_run_time = requires(const S& source) {
  { source.batch_size() } -> std::convertible_to<int>;
};
}  // namespace detail

namespace core {
/// The number of samples of a global batch of a source (the last batch may have fewer): a constant of its type,
/// `static constexpr int batch_size`, or the result of its member `int batch_size() const`.
template <class S>
  requires detail::has_batch_size_in_type<S> || detail::has_batch_size_at_run_time<S>
constexpr int batch_size_of([[maybe_unused]] const S& source) {
  if constexpr (detail::has_batch_size_in_type<S>)
    return S::batch_size;
  else
    return source.batch_size();
}

/// Iterating again starts the next epoch. Optional members:
///   `set_epoch(int)`            sets the number of the epoch that starts
///   `only_rows(row_choice)`     the rows that this process computes: the source need not write the others
///   `written_by(row_writers)`   the threads that compute write the rows that they will read, between two steps
///   `where()`, `resume_at(at)`  a data_position, to resume a training in the middle of an epoch
///   `stored()`, `by_index()`    the data set as stored_samples, if it lies in memory (std::optional); the batches of the next
///                               pass, and of no other, are the indices of their samples
///   `of_any_batch_size`         a base class, the same source with a batch size known at run time: code that reads it is
///                               compiled once for all sizes. `itself` is the class that declares this: classes derived from it
///                               are read without the conversion
/// The trainer resets only_rows and written_by with empty functions at the end.
template <class S>
concept batch_source = std::ranges::input_range<S> && requires(const std::remove_cvref_t<S>& source) {
  batch_size_of(source);
  typename std::remove_cvref_t<S>::value_type;  // samples<T>
} && (detail::has_columns<S> || requires {
                         { std::remove_cvref_t<S>::sample_shape } -> std::convertible_to<shape>;
                         { std::remove_cvref_t<S>::labels } -> std::convertible_to<label_kind>;
                         {
                           std::remove_cvref_t<S>::target_shape
                         } -> std::convertible_to<shape>;  // of a dense target; shape{} otherwise
                       });
}  // namespace core

namespace detail {
template <class S>
struct of_any_batch_size {
  using type = S;
};
template <class S>
  requires std::same_as<typename S::itself, S>
struct of_any_batch_size<S> {
  using type = typename S::of_any_batch_size;
};
}  // namespace detail

namespace core {
/// The type through which a source is read: its base class of_any_batch_size, if it has one.
template <class S>
using of_any_batch_size_t = typename detail::of_any_batch_size<S>::type;
}  // namespace core

}  // namespace strata
