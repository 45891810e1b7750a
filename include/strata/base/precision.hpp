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
}  // namespace precision

template <class P>
concept precision_policy = requires { typename P::value_type; };

}  // namespace strata
