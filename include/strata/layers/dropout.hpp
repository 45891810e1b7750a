// dropout<Rate>: sets random elements to 0 while training.
#pragma once
#include <cstdint>
#include <strata/base/decimal.hpp>
#include <strata/base/random.hpp>
#include <strata/concepts/operation.hpp>

namespace strata {

namespace reasons {
inline constexpr reason dropout_rate_must_be_below_1{
    "the rate of dropout must be at least 0 and below 1: it is the fraction that is dropped"};
}  // namespace reasons

/// In training, sets a share Rate of the elements to 0 and multiplies the others by 1 / (1 - Rate); in inference, the identity.
/// in: any shape  out: the same shape.  dropout<0.5_r>   (Srivastava et al. 2014)
/// https://keras.io/api/layers/regularization_layers/dropout
template <core::decimal Rate>
struct dropout {
  static constexpr auto name = "dropout", class_name = "Dropout";
  static constexpr core::operation_traits traits{.only_trains = true, .makes = core::value_range::those_of_its_input};
  static constexpr double rate = Rate.value();

  static constexpr core::expected_shape output_shape(shape in) {
    if (rate < 0 || rate >= 1) return reasons::dropout_rate_must_be_below_1;
    return in;
  }

  /// Whether an element is kept. `sample` is the index of the sample in the global batch, so the mask depends neither on the
  /// backend nor on the thread or process that computes it. One block of random words serves four elements.
  static constexpr bool keeps(core::philox generator, std::int64_t sample, int element) {
    constexpr auto limit = std::uint64_t(rate * 0x1p32);
    return generator(std::uint64_t(element) / 4, std::uint64_t(sample))[std::size_t(element) % 4] >= limit;
  }
};

}  // namespace strata
