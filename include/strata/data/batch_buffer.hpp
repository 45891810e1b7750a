// The memory of one batch, and how samples are gathered into it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <strata/base/arena.hpp>
#include <strata/concepts/batch_source.hpp>
#include <strata/data/sample_view.hpp>

namespace strata::data {

/// Room for the samples of a batch, aligned to cache lines.
template <class T>
class batch_buffer {
 public:
  /// For the whole batch; `values` and `target_values` are numbers of T. Allocates on the first call only.
  void prepare(std::size_t values, std::size_t labels, std::size_t target_values) {
    x_.grow(values), labels_.grow(labels), targets_.grow(target_values);
  }
  T* x() { return x_.data(); }
  std::int32_t* labels() { return labels_.data(); }
  T* targets() { return targets_.data(); }

 private:
  arena<T> x_, targets_;
  arena<std::int32_t> labels_;
};

namespace detail {
/// How many samples ahead a row is asked for.
inline constexpr std::size_t rows_ahead = 4;

/// Writes the first `count` samples of `which` into the buffer, row after row; those after them come next.
template <row_source Rows, class T>
samples<T> gather(const Rows& rows, std::span<const sample_index> which, std::size_t count, batch_buffer<T>& out) {
  constexpr std::size_t sample_size{Rows::sample_shape.size()}, target_size{Rows::target_shape.size()};
  for (std::size_t k = 0; k < count; ++k) {
    const sample_index ahead = which[k + rows_ahead < which.size() ? k + rows_ahead : k];
    rows.write(which[k], ahead, out.x() + k * sample_size, std::identity{});
    if constexpr (Rows::labels == label_kind::sparse) out.labels()[k] = rows.label(which[k]);
    if constexpr (Rows::labels == label_kind::dense) rows.write_target(which[k], out.targets() + k * target_size);
  }
  return {.x = out.x(), .labels = out.labels(), .targets = out.targets(), .count = static_cast<int>(count)};
}
}  // namespace detail

}  // namespace strata::data
