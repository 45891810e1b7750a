// rescaling<Scale, Offset>: each element times a factor, plus a summand.
#pragma once
#include <strata/base/decimal.hpp>
#include <strata/base/meta.hpp>
#include <strata/layers/activations.hpp>

namespace strata {

namespace core {
/// The operation of rescaling.   in: any shape  out: the same shape
template <decimal Scale, decimal Offset>
struct scale_and_offset : detail::elementwise_function {
  static constexpr auto name = "rescaling";
  static constexpr operation_traits traits{.elementwise = true};
  static constexpr double scale = Scale.value(), offset = Offset.value();
};
}  // namespace core

/// Scale * x + Offset, such as rescaling<0.00392156862745098_r> of pixels in 0 ... 255.
/// in: any shape  out: the same shape. https://keras.io/api/layers/preprocessing_layers/image_preprocessing/rescaling
template <core::decimal Scale, core::decimal Offset = core::decimal(0)>
struct rescaling {
  static constexpr auto name = "rescaling", class_name = "Rescaling";
  using operations = core::type_list<core::scale_and_offset<Scale, Offset>>;
};

}  // namespace strata
