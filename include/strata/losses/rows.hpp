// The common part of losses that read one row of elements.
#pragma once
#include <strata/base/shape.hpp>

namespace strata {

namespace reasons {
inline constexpr reason the_loss_takes_a_rank_1_shape_put_flatten_before_it{
    "the loss adds up over one row for each sample: it takes a rank-1 shape, so put flatten before it"};
}  // namespace reasons

namespace detail {
constexpr expected_shape shape_of_row(shape in) {
  if (in.rank() != 1) return reasons::the_loss_takes_a_rank_1_shape_put_flatten_before_it;
  return in;
}
}  // namespace detail

}  // namespace strata
