// Pooling over windows and over whole images.
#pragma once
#include <strata/layers/average_pool2d.hpp>
#include <strata/layers/global_pool2d.hpp>
#include <strata/layers/max_pool2d.hpp>
#include <strata/xla/emitter/emission.hpp>

namespace strata::stablehlo {

namespace detail {
tensor max_pool_forward(operation_call& c, const pool_settings& s);
void max_pool_backward(operation_call& c, const pool_settings& s);
tensor average_pool_forward(operation_call& c, const pool_settings& s);
void average_pool_backward(operation_call& c, const pool_settings& s);
/// 1 where x is the largest of some axes, and of equal ones the first, else 0. largest: spread over x.
tensor first_of_largest(tensor x, tensor largest, const extents& axes);
}  // namespace detail

/// Element-wise if the platform requires it and windows neither overlap nor have padding.
template <pool_settings S>
struct emission<max_pooling<S>> {
  static tensor forward(operation_call& c) { return detail::max_pool_forward(c, S); }
  static void backward(operation_call& c) { detail::max_pool_backward(c, S); }
};
template <pool_settings S>
struct emission<average_pooling<S>> {
  static tensor forward(operation_call& c) { return detail::average_pool_forward(c, S); }
  static void backward(operation_call& c) { detail::average_pool_backward(c, S); }
};
template <>
struct emission<global_average_pool2d> {
  static tensor forward(operation_call& c);
  static void backward(operation_call& c);
};
template <>
struct emission<global_max_pool2d> {
  static tensor forward(operation_call& c);
  static void backward(operation_call& c);
};

}  // namespace strata::stablehlo

#if STRATA_DEFINES
#include <strata/xla/emitter/pooling.ipp>
#endif
