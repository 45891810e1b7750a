// Windows of a time series: neighbouring samples as one sample.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ranges>
#include <strata/base/error.hpp>
#include <strata/base/shape.hpp>
#include <strata/base/standard_function.hpp>
#include <strata/base/tensor.hpp>
#include <strata/base/text.hpp>
#include <strata/concepts/batch_source.hpp>
#include <strata/data/core/addressable.hpp>
#include <strata/data/core/closure.hpp>
#include <strata/data/core/column.hpp>
#include <strata/data/core/indexed_view.hpp>
#include <strata/data/core/named_sample.hpp>
#include <strata/data/core/sample_view.hpp>
#include <strata/layers/input.hpp>
#include <string>
#include <type_traits>
#include <utility>

namespace strata::data {

struct window_options {
  std::optional<int> shift = {};  // samples from one window to the next; nothing: the size of the window
  int stride = 1;                 // samples from one sample of a window to the next
};

namespace detail {
/// (size, s...)
constexpr shape stacked(int size, shape s) {
  switch (s.rank()) {
    case 0:
      return {size};
    case 1:
      return {size, s[0]};
    case 2:
      return {size, s[0], s[1]};
    default:
      return {size, s[0], s[1], s[2]};
  }
}

/// What windows of Size samples of Base have.
template <class Base, int Size>
struct form_of_windows {
  using value_type = typename Base::value_type;
  static constexpr shape sample_shape = stacked(Size, Base::sample_shape), target_shape = Base::target_shape;
  static constexpr label_kind labels = Base::labels;
  static constexpr bool fit = Base::sample_shape.rank() < 4;
};
template <class Node, class V, int Size>
using window_of_column =
    std::conditional_t<strata::detail::names_input<Node>,
                       column<Node, tensor<const typename numbers<V>::value_type, stacked(Size, numbers<V>::extents)>>,
                       column<Node, V>>;
template <class Named, int Size>
struct window_of_names;
template <class... Node, class... V, int Size>
struct window_of_names<named_sample<column<Node, V>...>, Size> : named_form<named_sample<window_of_column<Node, V, Size>...>> {
  static constexpr bool fit = ((!strata::detail::names_input<Node> || numbers<V>::extents.rank() < 4) && ...);

  /// The destination of sample k of a window.
  template <class Place>
  static Place place(const Place& to, std::size_t k) {
    return {{data::get<Node>(to) + (strata::detail::names_input<Node> ? k * std::size_t{numbers<V>::extents.size()} : 0)}...};
  }
};
template <named_source Base, int Size>
struct form_of_windows<Base, Size> : window_of_names<typename Base::named, Size> {};

/// Window w consists of the samples w * shift, w * shift + stride ...
template <addressable V, int Size>
class window_rows : public form_of_windows<rows_t<V>, Size> {
  using base_rows = rows_t<V>;

 public:
  static constexpr row_properties properties = around(base_rows::properties);

  /// Throws strata_error if shift or stride is not positive, or if the view is shorter than a window.
  window_rows(V base, window_options options) : base_(std::move(base)) {
    const int shift = options.shift.value_or(Size);
    if (shift < 1) throw_error({name(), ": the shift is ", shift, ", it must be at least 1"});
    if (options.stride < 1) throw_error({name(), ": the stride is ", options.stride, ", it must be at least 1"});
    shift_ = static_cast<std::size_t>(shift), stride_ = static_cast<std::size_t>(options.stride);
    const std::size_t span = (Size - 1) * stride_ + 1, n = base_.size();
    if (n < span) throw_error({name(), ": a window spans ", span, " samples, but the data set has ", n});
    size_ = (n - span) / shift_ + 1;
  }

  std::size_t size() const { return size_; }
  template <class T, class Then>
  void write(sample_index i, sample_index ahead, sample_place<T> to, Then then) const {
    constexpr std::size_t step{base_rows::sample_shape.size()};
    for (std::size_t k = 0; k < Size; ++k, to.x += step) base_.rows().write(index(i, k), index(ahead, k), to, then);
  }
  template <class Place>
    requires named_source<base_rows>
  void write(sample_index i, sample_index ahead, const Place& to, std::identity then) const {
    for (std::size_t k = 0; k < Size; ++k) base_.rows().write(index(i, k), index(ahead, k), window_rows::place(to, k), then);
  }
  std::int32_t label(sample_index i) const
    requires has_label<base_rows>
  {
    return base_.rows().label(index(i, Size - 1));
  }
  auto weight(sample_index i) const
    requires has_weight<base_rows>
  {
    return base_.rows().weight(index(i, Size - 1));
  }
  std::string describe(sample_index i) const {
    return strata::detail::text_of({"window ", i.row, ", from ", detail::describe(base_.rows(), index(i, 0)), " to ",
                                    detail::describe(base_.rows(), index(i, Size - 1))});
  }
  std::string order() const {
    return strata::detail::text_of({order_of(base_), " | ", name(), "(shift ", shift_, ", stride ", stride_, ")"});
  }
  int parallelism() const { return detail::parallelism(base_.rows()); }

 private:
  static std::string name() { return strata::detail::text_of({"window<", Size, ">"}); }
  sample_index index(sample_index i, std::size_t k) const { return index_at(base_, i.row * shift_ + k * stride_, i.epoch); }

  V base_;
  std::size_t shift_ = 1, stride_ = 1, size_ = 0;
};

template <int Size>
struct window_fn {
  static_assert(Size > 0, "window<Size> needs at least one sample");

  template <std::ranges::range V>
  auto operator()(V view, window_options options = {}) const {
    constexpr bool has_samples = is_sample_view<V> || has_names<V>;
    static_assert(has_samples, "data::window takes a view of samples: put it before batch, and after the map that makes samples");
    if constexpr (has_samples) {
      constexpr bool flat_enough = form_of_windows<rows_t<V>, Size>::fit, by_place = addressable<V>;
      static_assert(flat_enough, "data::window makes samples of shape (Size, S...), which has at most four extents");
      static_assert(by_place,
                    "data::window takes a random-access view: put it before shuffle, filter, repeat and shard; streams have no "
                    "random access");
      if constexpr (flat_enough && by_place) return indexed_view("window", window_rows<V, Size>(std::move(view), options));
    }
  }
  constexpr auto operator()(window_options options = {}) const { return detail::partial(*this, options); }
};
}  // namespace detail

/// `series | window<24>({.shift = 1})`: Size samples become one sample of shape (Size, S...), with the label or target of the
/// last one; zip adds another target: `zip(series | window<24>({.shift = 1}), next_values)`. Of samples with names, each input
/// has the shape (Size, S...), and each output the truth of the last one. in: random access. out: random
/// access, sized. Windows overlap if the shift is less than Size. As in tf.data, shift and stride count samples, and the default
/// shift is Size. Unlike in tf.data, a window is one sample and not a data set, since its shape is a constant: windows that would
/// be cut off at the end are dropped (drop_remainder), and no flat_map and batch are needed after it. Samples are copied only
/// into the batch. Throws strata_error if shift or stride is not positive, or if the view is shorter than a window.
/// https://www.tensorflow.org/api_docs/python/tf/data/Dataset#window
template <int Size>
inline constexpr detail::window_fn<Size> window{};

}  // namespace strata::data
