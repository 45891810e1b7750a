// Precision policies: the types of weights and of the operands of products.
#pragma once
#include <strata/base/namespaces.hpp>

namespace strata {

namespace precision {
/// Everything in float.
struct f32 {
  using value_type = float;
  static constexpr auto name = "f32";
};
/// Everything in double: for checks, not for speed.
struct f64 {
  using value_type = double;
  static constexpr auto name = "f64";
};
/// Everything in float, except that products of dense layers and convolutions round their operands to bfloat16 (eight bits of
/// mantissa) and add up in float: on a GPU all of them but convolutions in groups, on a CPU large ones. Kernels without such
/// products are those of f32.
struct mixed_bf16 {
  using value_type = float;
  static constexpr auto name = "mixed_bf16";
};
/// As mixed_bf16, but operands are rounded to TensorFloat-32 (eleven bits of mantissa, the exponents of float), which stays in
/// the memory of a float. A CPU has no such products: there it is f32.
struct tf32 {
  using value_type = float;
  static constexpr auto name = "tf32";
};
}  // namespace precision

namespace core {
template <class P>
concept precision_policy = requires { typename P::value_type; };
}  // namespace core

}  // namespace strata
