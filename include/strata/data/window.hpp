// Neighbouring samples of a time series as one sample.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ranges>
#include <strata/base/error.hpp>
#include <strata/base/shape.hpp>
#include <strata/concepts/batch_source.hpp>
#include <strata/data/adaptor.hpp>
#include <strata/data/addressable.hpp>
#include <strata/data/numbered.hpp>
#include <strata/data/sample_view.hpp>
#include <string>
#include <utility>

namespace strata::data {

/// From one window to the next, and from one of its samples to the next.
struct window_options {
  std::optional<int> shift = {};  // nothing: the size of the window
  int stride = 1;
};

namespace detail {
/// (size, s...)
constexpr shape stacked(int size, shape s) {
  switch (s.rank()) {
    case 0: return {size};
    case 1: return {size, s[0]};
    case 2: return {size, s[0], s[1]};
    default: return {size, s[0], s[1], s[2]};
  }
}
}  // namespace detail

/// Window w consists of the samples w * shift, w * shift + stride ...
template <detail::addressable V, int Size>
class window_rows {
  using base_rows = rows_t<V>;

 public:
  using value_type = typename base_rows::value_type;
  static constexpr shape sample_shape = detail::stacked(Size, base_rows::sample_shape), target_shape = base_rows::target_shape;
  static constexpr label_kind labels = base_rows::labels;
  static constexpr bool is_random = detail::is_random<base_rows>(), leaves_out = detail::leaves_out<base_rows>();

  /// Throws strata::error if shift or stride is not positive, or no window is within the view.
  window_rows(V base, window_options options) : base_(std::move(base)) {
    const int shift = options.shift.value_or(Size);
    if (shift < 1) throw error(name() + ": the shift is " + std::to_string(shift) + ", it must be at least 1");
    if (options.stride < 1) throw error(name() + ": the stride is " + std::to_string(options.stride) + ", it must be at least 1");
    shift_ = static_cast<std::size_t>(shift), stride_ = static_cast<std::size_t>(options.stride);
    const std::size_t span = (Size - 1) * stride_ + 1, n = base_.size();
    if (n < span)
      throw error(name() + ": a window spans " + std::to_string(span) + " samples, but the data set has " + std::to_string(n));
    size_ = (n - span) / shift_ + 1;
  }

  std::size_t size() const { return size_; }
  template <class T, class Then>
  void write(sample_index i, sample_index ahead, sample_place<T> to, Then then) const {
    constexpr std::size_t step{base_rows::sample_shape.size()};
    for (std::size_t k = 0; k < Size; ++k, to.x += step) base_.rows().write(number(i, k), number(ahead, k), to, then);
  }
  std::int32_t label(sample_index i) const
    requires requires(const base_rows& rows) { rows.label(i); }
  {
    return base_.rows().label(number(i, Size - 1));
  }
  std::string describe(sample_index i) const {
    return "window " + std::to_string(i.row) + ", from " + detail::describe(base_.rows(), number(i, 0)) + " to " +
           detail::describe(base_.rows(), number(i, Size - 1));
  }
  int parallelism() const { return detail::parallelism(base_.rows()); }

 private:
  static std::string name() { return "window<" + std::to_string(Size) + ">"; }
  sample_index number(sample_index i, std::size_t k) const {
    return detail::number_at(base_, i.row * shift_ + k * stride_, i.epoch);
  }

  V base_;
  std::size_t shift_ = 1, stride_ = 1, size_ = 0;
};

namespace detail {
template <int Size>
struct window_fn {
  static_assert(Size > 0, "window<Size> needs at least one sample");

  template <std::ranges::range V>
  auto operator()(V view, window_options options = {}) const {
    constexpr bool has_samples = sample_view<V>;
    static_assert(has_samples, "data::window takes a view of samples: put it before batch, and behind the map that makes "
                               "samples");
    if constexpr (has_samples) {
      constexpr bool flat_enough = rows_t<V>::sample_shape.rank() < 4, by_place = addressable<V>;
      static_assert(flat_enough, "data::window makes samples of shape (Size, S...), which has at most four extents");
      static_assert(by_place, "data::window takes a random-access view: put it before shuffle, filter, take and skip, and give "
                              "it no stream");
      if constexpr (flat_enough && by_place) return numbered_view("window", window_rows<V, Size>(std::move(view), options));
    }
  }
  constexpr auto operator()(window_options options = {}) const {
    return adaptor{[options]<class V>(V&& view) { return window_fn{}(std::forward<V>(view), options); }};
  }
};
}  // namespace detail

/// `series | window<24>({.shift = 1})`: Size samples become one of shape (Size, S...), with the label or target of the last one;
/// another target is zipped: `zip(series | window<24>({.shift = 1}), what_comes_next)`. in: random access. out: random access,
/// sized. Windows overlap if the shift is less than Size. As in tf.data, shift and stride count samples, and the shift is the
/// size unless given. Unlike there a window is one sample, not a data set of its own, as its shape is a constant; so windows that
/// are not full at the end are left out (drop_remainder), and no batch and flat_map is needed after it. Nothing is copied before
/// the batch. Throws strata::error if shift or stride is not positive, or if no window is within the view.
/// https://www.tensorflow.org/api_docs/python/tf/data/Dataset#window
template <int Size>
inline constexpr detail::window_fn<Size> window{};

}  // namespace strata::data
