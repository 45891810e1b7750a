// The memory of one batch, and how samples are gathered into it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <span>
#include <strata/concepts/batch_source.hpp>
#include <strata/data/sample_view.hpp>
#include <vector>

namespace strata::data {

/// Room for the samples of a batch, aligned to cache lines.
template <class T>
class batch_buffer {
 public:
  /// Allocates on the first call; `values` and `target_values` are numbers of T, for the whole batch.
  void prepare(std::size_t values, std::size_t labels, std::size_t target_values) {
    if (x_) return;
    x_ = allocate(values);
    targets_ = allocate(target_values);
    labels_.resize(labels);
  }
  T* x() const { return x_.get(); }
  std::int32_t* labels() { return labels_.data(); }
  T* targets() const { return targets_.get(); }

 private:
  static constexpr std::align_val_t alignment{64};
  struct release {
    void operator()(T* p) const { ::operator delete[](p, alignment); }
  };
  using block = std::unique_ptr<T[], release>;

  static block allocate(std::size_t n) {
    if (n == 0) return {};
    block b(static_cast<T*>(::operator new[](n * sizeof(T), alignment)));
    std::uninitialized_fill_n(b.get(), n, T(0));
    return b;
  }

  block x_, targets_;
  std::vector<std::int32_t> labels_;
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
  return {.x = out.x(),
          .labels = Rows::labels == label_kind::sparse ? out.labels() : nullptr,
          .targets = out.targets(),
          .count = static_cast<int>(count)};
}
}  // namespace detail

}  // namespace strata::data
