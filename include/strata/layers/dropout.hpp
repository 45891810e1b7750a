// dropout<Rate>: sets random elements to 0 while training. dropout<Rate, shape{1, 1, C}>: whole channels.
#pragma once
#include <cstdint>
#include <strata/base/decimal.hpp>
#include <strata/base/random.hpp>
#include <strata/base/shape.hpp>
#include <strata/concepts/operation.hpp>

namespace strata {

namespace reasons {
inline constexpr reason dropout_rate_must_be_below_1{
    "the rate of dropout must be at least 0 and below 1: it is the fraction that is dropped"};
inline constexpr reason the_noise_shape_of_dropout_has_each_extent_of_the_input_or_1{
    "the noise shape of dropout must have the rank of its input, and along each axis the extent of the input, or 1"};
}  // namespace reasons

namespace detail {
struct dropout_settings {
  core::decimal rate;
  shape noise;
};
}  // namespace detail

/// In training, sets a share Rate of the elements to 0 and multiplies the others by 1 / (1 - Rate); in inference, the identity.
/// in: any shape  out: the same shape.  dropout<0.5_r>   (Srivastava et al. 2014)
/// With a noise shape, elements are kept or dropped together along the axes whose extent in it is 1: dropout<0.2_r, shape{1, 1,
/// C}> drops whole channels of an image (SpatialDropout2D), dropout<0.2_r, shape{1, 1, 1}> whole samples (stochastic depth).
/// https://keras.io/api/layers/regularization_layers/dropout
template <core::decimal Rate, shape Noise = shape{}>
struct dropout {
  static constexpr auto name = "dropout", class_name = "Dropout";
  static constexpr core::operation_traits traits{.only_trains = true, .makes = core::value_range::those_of_its_input};
  static constexpr double rate = Rate.value();
  static constexpr auto settings = [] {
    if constexpr (Noise == shape{})
      return Rate;
    else
      return detail::dropout_settings{Rate, Noise};
  }();

  static constexpr core::expected_shape output_shape(shape in) {
    if (rate < 0 || rate >= 1) return reasons::dropout_rate_must_be_below_1;
    for (int axis = 0; Noise != shape{} && axis < 4; ++axis)
      if (Noise[axis] != in[axis] && (Noise[axis] != 1 || axis >= in.rank()))
        return reasons::the_noise_shape_of_dropout_has_each_extent_of_the_input_or_1;
    return in;
  }

  static constexpr shape noise(shape in) { return Noise == shape{} ? in : Noise; }
  /// The element of the noise that decides about an element of an input of shape In.
  template <shape In>
  static constexpr int noise_of(int element) {
    if constexpr (noise(In) == In) return element;
    int decides = 0, step = 1;
    for (int axis = In.rank() - 1; axis >= 0; --axis) {
      if (Noise[axis] != 1) decides += step * (element % In[axis]);
      step *= Noise[axis], element /= In[axis];
    }
    return decides;
  }

  /// Whether an element of the noise keeps the elements that it decides about. `sample` is the index of the sample in the global
  /// batch, so the mask depends neither on the backend nor on the thread or process that computes it. One block of random words
  /// serves four elements.
  static constexpr bool keeps(core::philox generator, std::int64_t sample, int element) {
    constexpr auto limit = std::uint64_t(rate * 0x1p32);
    return generator(std::uint64_t(element) / 4, std::uint64_t(sample))[std::size_t(element) % 4] >= limit;
  }
};

}  // namespace strata
