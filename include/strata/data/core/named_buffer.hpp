// The memory of one batch of samples with names.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <strata/base/arena.hpp>
#include <strata/base/meta.hpp>
#include <strata/base/shape.hpp>
#include <strata/concepts/batch_source.hpp>
#include <strata/concepts/ends.hpp>
#include <strata/data/core/batch_buffer.hpp>
#include <strata/data/core/named_sample.hpp>
#include <type_traits>

namespace strata::data::detail {

/// Memory for the samples of a batch: an array for each column, aligned to cache lines.
template <class T, class Columns>
class named_buffer;
template <class T, class... Node, shape... S, label_kind... Kind>
class named_buffer<T, type_list<column_of<Node, S, Kind>...>> {
  static constexpr int columns = sizeof...(Node);
  static constexpr std::size_t sizes[] = {std::size_t{S.size()}...};
  static constexpr label_kind kinds[] = {Kind...};
  static constexpr bool distinct = strata::detail::are_distinct<Node...>;
  static_assert(distinct, "a data set has a node twice");
  static_assert(((Kind == label_kind::none) + ... + 0) <= max_ends && ((Kind != label_kind::none) + ... + 0) <= max_ends,
                "a data set has at most eight columns of inputs and of weights, and eight of outputs");

 public:
  /// Allocates memory for so many samples, on the first call only.
  void prepare(std::size_t samples) {
    for (int k = 0; k < columns; ++k) {
      if (kinds[k] == label_kind::sparse)
        labels_[k].grow(samples);
      else
        values_[k].grow(samples * sizes[k]);
    }
  }

  /// places()[k] is the destination of sample k.
  struct sample_places {
    T* values[columns];
    std::int32_t* labels[columns];

    auto operator[](std::size_t sample) const {
      using place = typename named_place<T, type_list<column_of<Node, S, Kind>...>>::type;
      int k = 0;
      return place{{at<Kind>(k++, sample)}...};
    }

   private:
    template <label_kind K>
    auto at(int k, std::size_t sample) const {
      if constexpr (K == label_kind::sparse)
        return labels[k] + sample;
      else
        return values[k] + sample * sizes[k];
    }
  };
  /// The destination of sample `first` and those after it.
  template <class Rows>
  sample_places places(std::size_t first) {
    sample_places all;
    for (int k = 0; k < columns; ++k) {
      all.labels[k] = labels_[k].data() + (kinds[k] == label_kind::sparse ? first : 0);
      all.values[k] = values_[k].data() + (kinds[k] == label_kind::sparse ? 0 : first * sizes[k]);
    }
    return all;
  }
  /// Moves samples begin ... end - 1 to an earlier place.
  template <class Rows>
  void move(std::size_t begin, std::size_t end, std::size_t to) {
    const auto move = [&](auto* first, std::size_t n) { std::copy(first + begin * n, first + end * n, first + to * n); };
    for (int k = 0; k < columns; ++k) {
      if (kinds[k] == label_kind::sparse)
        move(labels_[k].data(), 1);
      else
        move(values_[k].data(), sizes[k]);
    }
  }
  /// Memory for the indices of so many samples.
  sample_index* indices(std::size_t samples) {
    indices_.grow(samples);
    return indices_.data();
  }
  /// Memory for the weights of so many samples.
  T* weights(std::size_t samples) {
    weights_.grow(samples);
    return weights_.data();
  }

  /// The batch in this memory. The weights, if there are any, are those of the samples at every output that has a
  /// column.
  samples<T> batch(const T* weights, int count) {
    samples<T> all;
    all.count = count;
    int inputs = 0, outputs = 0;
    for (int k = 0; k < columns; ++k) {
      if (kinds[k] == label_kind::none)
        all.inputs[inputs++] = values_[k].data();
      else if (kinds[k] == label_kind::sparse)
        all.truths[outputs++] = {labels_[k].data(), nullptr, weights};
      else
        all.truths[outputs++] = {nullptr, values_[k].data(), weights};
    }
    return all;
  }
  /// Whether a batch lies in this memory.
  bool holds(const samples<T>& batch) {
    const samples<T> own = this->batch(nullptr, 0);
    return batch.inputs[0] == own.inputs[0] && batch.truths[0].labels == own.truths[0].labels &&
           batch.truths[0].targets == own.truths[0].targets;
  }
  /// Copies a batch into this memory, which has room for `most` samples.
  samples<T> copy(const samples<T>& from, std::size_t most) {
    const std::size_t count = static_cast<std::size_t>(from.count);
    prepare(most);
    int inputs = 0, outputs = 0;
    const T* of_samples = nullptr;
    for (int k = 0; k < columns; ++k) {
      if (kinds[k] == label_kind::none) {
        std::copy_n(from.inputs[inputs++], count * sizes[k], values_[k].data());
        continue;
      }
      const truth_rows<T>& truth = from.truths[outputs++];
      if (kinds[k] == label_kind::sparse)
        std::copy_n(truth.labels, count, labels_[k].data());
      else
        std::copy_n(truth.targets, count * sizes[k], values_[k].data());
      of_samples = truth.weights;
    }
    if (of_samples) std::copy_n(of_samples, count, weights(most));
    return batch(of_samples ? weights_.data() : nullptr, from.count);
  }

 private:
  arena<T> values_[columns], weights_;
  arena<std::int32_t> labels_[columns];
  arena<sample_index> indices_;
};

/// The memory of a batch of T, of a source or of rows.
template <class T, class Source>
struct buffer_for {
  using type = batch_buffer<T>;
};
template <class T, strata::detail::has_columns Source>
struct buffer_for<T, Source> {
  using type = named_buffer<T, typename Source::columns>;
};

/// What batches of a source or of rows have: x and the truth, or columns.
template <class Source>
struct form_of_batches {
  static constexpr shape sample_shape = Source::sample_shape, target_shape = Source::target_shape;
  static constexpr label_kind labels = Source::labels;
};
template <strata::detail::has_columns Source>
struct form_of_batches<Source> {
  using columns = typename Source::columns;
};

/// The numbers of a sample, without class numbers.
template <class Source>
inline constexpr std::size_t numbers_of_sample = Source::sample_shape.size() + Source::target_shape.size();
template <class... Node, shape... S, label_kind... Kind>
constexpr std::size_t numbers_of(type_list<column_of<Node, S, Kind>...>) {
  return (std::size_t{S.size()} + ... + 0);
}
template <strata::detail::has_columns Source>
inline constexpr std::size_t numbers_of_sample<Source> = detail::numbers_of(typename Source::columns{});

}  // namespace strata::data::detail
