// Selects the products that libraries compute, and those that strata's own kernels compute.
#pragma once
#include <strata/base/precision.hpp>
#include <strata/cuda/machine/blas.hpp>
#include <strata/cuda/machine/dnn.hpp>
#include <strata/layers/conv2d.hpp>
#include <strata/layers/dense.hpp>

namespace strata::machine {

/// The policies whose products libraries compute; doubles are for checks, and stay ours.
template <class P>
inline constexpr bool is_in_libraries = false;
template <>
inline constexpr bool is_in_libraries<precision::f32> = true;
template <>
inline constexpr bool is_in_libraries<precision::tf32> = true;
template <>
inline constexpr bool is_in_libraries<precision::mixed_bf16> = true;

template <class P>
inline constexpr factor_type factors_of = factor_type::f32;
template <>
inline constexpr factor_type factors_of<precision::tf32> = factor_type::tf32;
template <>
inline constexpr factor_type factors_of<precision::mixed_bf16> = factor_type::bf16;

/// True if cuBLASLt should compute the products of a dense layer, provided that each leaf has enough rows (fills_tiles). Our own
/// kernel is one launch, also with its activation or loss; a small product takes no longer than a launch, so our kernel wins
/// there. Large products are bound by arithmetic, and the library chooses among many kernels. The bound between them was
/// reasoned, not measured: a layer of 256 x 256 with 64 rows fills one tile of tensor cores for each 64 x 64 results.
constexpr bool pays_in_blas(long inputs, long units) { return inputs >= 256 && units >= 256; }

/// Leaves are products of their own, since their sums must not depend on how many of them a device has; tiles of the library have
/// at least 64 rows. The answer depends on the size of the batch only, not on the number of devices.
constexpr bool fills_tiles(long rows_of_leaf) { return rows_of_leaf >= 64; }

/// True if cuDNN should compute a convolution, provided that each leaf has enough pixels (fills_convolutions). Ours is one launch
/// for all leaves, also with its activation and pooling, and on tensor cores, too; cuDNN needs one launch per leaf, and another
/// for pooling. So the layers of the reference CNN stay ours. The bounds were reasoned, not measured.
constexpr bool pays_in_dnn(const conv_settings& s, shape in) {
  return s.groups == 1 && in[2] >= 64 && s.filters >= 64 && in[2] % 8 == 0 && s.filters % 8 == 0;
}
constexpr bool fills_convolutions(long pixels_of_leaf) { return pixels_of_leaf >= 2048; }

template <dense_settings S, class P, shape In>
inline constexpr bool goes_to_blas = has_blas && is_in_libraries<P> && pays_in_blas(In[0], S.units);
template <conv_settings S, class P, shape In>
inline constexpr bool goes_to_dnn = has_dnn && is_in_libraries<P> && pays_in_dnn(S, In);

}  // namespace strata::machine
