// Precision policies: in which type weights are kept, and products formed.
#pragma once

namespace strata {

namespace precision {
/// Everything in float.
struct f32 {
  using value_type = float;
};
/// Everything in double: for checks, not for speed.
struct f64 {
  using value_type = double;
};
/// Everything in float, except that large products of dense layers and convolutions round their operands to bfloat16 (eight
/// bits of mantissa) and add up in float. A kernel without such products serves it as it serves f32.
struct mixed_bf16 {
  using value_type = float;
};
}  // namespace precision

template <class P>
concept precision_policy = requires { typename P::value_type; };

}  // namespace strata
