// What fit, evaluate and predict read: a range of batches whose size, sample shape and kind of labels are in its type.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <ranges>
#include <strata/base/shape.hpp>
#include <type_traits>

namespace strata {

/// What comes with each sample: nothing, one class number, or numbers of its own (one-hot rows, regression targets).
enum class label_kind { none, sparse, dense };

/// Some samples of a batch, row after row. At most one of labels and targets is set.
template <class T>
struct samples {
  const T* x = nullptr;                  // (count, sample shape...)
  const std::int32_t* labels = nullptr;  // (count)
  const T* targets = nullptr;            // (count, target shape...)
  int count = 0;
};

/// How far training has come: what a checkpoint keeps of a data set. Its meaning does not depend on batch size, threads or workers.
struct data_position {
  int epoch = 0;
  std::uint64_t samples = 0;  // of this epoch that have been seen, by all workers together

  friend bool operator==(const data_position&, const data_position&) = default;
};

/// Rows [begin, end) of a batch.
struct row_range {
  int begin = 0, end = 0;
};
/// Which rows of a batch of so many samples somebody will look at; an empty one: all of them.
using row_choice = std::function<row_range(int count)>;

/// Threads that write the rows of a batch: calls write(begin, end) for parts of 0 ... count - 1, several at once; returns when all
/// are written. An empty one: nobody but the caller.
using row_writers = std::function<void(std::size_t count, const std::function<void(std::size_t begin, std::size_t end)>& write)>;

/// Re-iterating starts the next epoch; if the source has set_epoch(int), the trainer says which one. If it has
/// only_rows(row_choice), a process that computes a part of each batch says which: the source need not make the others. If it has
/// written_by(row_writers), the threads that will compute make the rows that they will read, between two steps. Both hold until
/// the next call; at the end the trainer takes them back with empty ones.
template <class S>
concept batch_source = std::ranges::input_range<S> && requires {
  { std::remove_cvref_t<S>::batch_size } -> std::convertible_to<int>;  // the global batch; the last one may be shorter
  { std::remove_cvref_t<S>::sample_shape } -> std::convertible_to<shape>;
  { std::remove_cvref_t<S>::labels } -> std::convertible_to<label_kind>;
  { std::remove_cvref_t<S>::target_shape } -> std::convertible_to<shape>;  // of a dense target; shape{} otherwise
  typename std::remove_cvref_t<S>::value_type;                             // samples<T>
};

}  // namespace strata
