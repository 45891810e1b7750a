// Multiplies every number of a sample while it is written into its batch: bytes / 255.
#pragma once
#include <concepts>
#include <cstdint>
#include <strata/data/adaptor.hpp>
#include <strata/data/sample_view.hpp>
#include <type_traits>
#include <utility>

namespace strata::data {

template <row_source Base>
class scaled_rows : public detail::rows_around<Base> {
 public:
  using value_type = std::conditional_t<std::floating_point<typename Base::value_type>, typename Base::value_type, float>;
  static constexpr shape sample_shape = Base::sample_shape, target_shape = Base::target_shape;
  static constexpr label_kind labels = Base::labels;
  static constexpr bool any_thread_may_write = detail::any_thread_may_write<Base>();

  scaled_rows(Base base, double factor) : detail::rows_around<Base>(std::move(base)), factor_(factor) {}

  template <class T, class Then>
  void write(sample_index i, sample_index ahead, sample_place<T> to, Then then) const {
    this->base_.write(i, ahead, to, [then, factor = static_cast<T>(factor_)](T v) { return then(v * factor); });
  }
  std::int32_t label(sample_index i) const
    requires requires(const Base& b) { b.label(i); }
  {
    return this->base_.label(i);
  }

 private:
  double factor_;
};

namespace detail {
struct scale_fn {
  template <class V>
  auto operator()(V view, double factor) const {
    static_assert(sample_view<V>, "data::scale takes a view of samples: put it before batch");
    if constexpr (sample_view<V>) {
      scaled_rows<rows_t<V>> rows(view.rows(), factor);
      return rows_view(std::move(view), std::move(rows));
    }
  }
  constexpr auto operator()(double factor) const {
    return adaptor{[factor]<class V>(V&& view) { return scale_fn{}(std::forward<V>(view), factor); }};
  }
};
}  // namespace detail

/// x * factor, computed in the value type of the batch; labels stay as they are. Category and size are those of the view.
/// https://keras.io/api/layers/preprocessing_layers/image_preprocessing/rescaling
inline constexpr detail::scale_fn scale{};

}  // namespace strata::data
