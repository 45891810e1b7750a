// Multiplies every value of x when a sample is written into its batch: bytes / 255.
#pragma once
#include <concepts>
#include <cstdint>
#include <optional>
#include <strata/base/exact_text.hpp>
#include <strata/concepts/stored_samples.hpp>
#include <strata/data/core/closure.hpp>
#include <strata/data/core/rows_view.hpp>
#include <string>
#include <type_traits>
#include <utility>

namespace strata::data {

namespace detail {
template <row_source Base>
class scaled_rows : public samples_around<Base> {
 public:
  static constexpr row_properties properties = Base::properties;
  using value_type = std::conditional_t<std::floating_point<typename Base::value_type>, typename Base::value_type, float>;

  scaled_rows(Base base, double factor) : samples_around<Base>(std::move(base)), factor_(factor) {}

  template <class T, class Then>
  void write(sample_index i, sample_index ahead, sample_place<T> to, Then then) const {
    this->base_.write(i, ahead, to, [then, factor = static_cast<T>(factor_)](T v) { return then(v * factor); });
  }

  std::string order() const { return "scale(" + strata::detail::exact_text(factor_) + ")"; }

  std::optional<stored_samples> stored() const
    requires has_stored<Base>
  {
    std::optional<stored_samples> all = this->base_.stored();
    if (!all || all->scale_count == stored_samples::most_scales) return {};
    all->scales[all->scale_count++] = factor_;
    return all;
  }

 private:
  double factor_;
};

struct scale_fn {
  template <class V>
  auto operator()(V view, double factor) const {
    constexpr bool no_names = !has_names<V>, right_view = is_sample_view<V> || !no_names;
    static_assert(no_names, "data::scale takes samples without names: put it before data::named");
    static_assert(right_view, "data::scale takes a view of samples: put it before batch");
    if constexpr (sample_view<V>) return with_rows<scaled_rows<rows_t<V>>>(std::move(view), factor);
  }
  constexpr auto operator()(double factor) const { return detail::partial(*this, factor); }
};
}  // namespace detail

/// x * factor, computed in the value type of the batch; labels stay the same. Category and size are those of the view.
/// https://keras.io/api/layers/preprocessing_layers/image_preprocessing/rescaling
inline constexpr detail::scale_fn scale{};

}  // namespace strata::data
