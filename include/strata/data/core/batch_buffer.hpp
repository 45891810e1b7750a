// The memory of one batch.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <strata/base/arena.hpp>
#include <strata/data/core/rows.hpp>

namespace strata::data::detail {

/// The number of values of a sample in a batch.
template <row_source Rows>
struct sizes_of_sample {
  static constexpr std::size_t x{Rows::sample_shape.size()}, label = Rows::labels == label_kind::sparse;
  static constexpr std::size_t target = Rows::labels == label_kind::dense ? std::size_t{Rows::target_shape.size()} : 0;
};

/// places[k] is the destination of sample k.
template <row_source Rows, class T>
struct sample_places {
  sample_place<T> first;

  sample_place<T> operator[](std::size_t k) const {
    using sizes = sizes_of_sample<Rows>;
    return {first.x + k * sizes::x, first.label + k * sizes::label, first.target + k * sizes::target};
  }
};

/// Memory for the samples of a batch, aligned to cache lines.
template <class T>
class batch_buffer {
 public:
  /// Allocates memory for the whole batch, on the first call only; `values` and `target_values` are numbers of elements of T.
  void prepare(std::size_t values, std::size_t labels, std::size_t target_values) {
    x_.grow(values), labels_.grow(labels), targets_.grow(target_values);
  }
  /// The destination of sample `first` and those after it, for samples of Rows.
  template <row_source Rows>
  sample_places<Rows, T> places(std::size_t first) {
    return {sample_places<Rows, T>{{x_.data(), labels_.data(), targets_.data()}}[first]};
  }
  /// Moves samples begin ... end - 1 to an earlier place.
  template <row_source Rows>
  void move(std::size_t begin, std::size_t end, std::size_t to) {
    using sizes = sizes_of_sample<Rows>;
    const auto move = [&](auto* first, std::size_t n) { std::copy(first + begin * n, first + end * n, first + to * n); };
    move(x_.data(), sizes::x), move(labels_.data(), sizes::label), move(targets_.data(), sizes::target);
  }
  T* x() { return x_.data(); }
  /// Memory for the indices of so many samples.
  sample_index* indices(std::size_t samples) {
    indices_.grow(samples);
    return indices_.data();
  }
  std::int32_t* labels() { return labels_.data(); }
  T* targets() { return targets_.data(); }
  /// Whether a batch lies in this memory.
  bool holds(const samples<T>& batch) const { return batch.x() == x_.data(); }
  /// Memory for the weights of so many samples.
  T* weights(std::size_t samples) {
    weights_.grow(samples);
    return weights_.data();
  }

 private:
  arena<T> x_, targets_, weights_;
  arena<std::int32_t> labels_;
  arena<sample_index> indices_;
};

}  // namespace strata::data::detail
