// Kernels before and after a library call: round factors, finish outputs, clear gradients of leaves without samples.
#pragma once
#include <cstddef>
#include <cstdint>
#include <strata/cuda/kernels/gradients.hpp>
#include <strata/cuda/machine/blas_product.hpp>
#include <strata/cuda/machine/rounded_operand.hpp>

namespace strata::machine {

/// Floats of scratch for a workspace of `bytes`: it begins at a multiple of 256 bytes, wherever the scratch begins.
constexpr int floats_for_workspace(std::size_t bytes) { return int((bytes + workspace_alignment) / sizeof(float)); }
inline float* first_aligned(float* scratch) {
  const auto at = reinterpret_cast<std::uintptr_t>(scratch);
  return scratch + (workspace_alignment - at % workspace_alignment) % workspace_alignment / sizeof(float);
}

/// Rows of `columns` elements of From become rows of bfloat16, `leading` elements apart.
template <class From>
struct round_rows {
  From from;
  bfloat16* to;
  long columns, leading;
  constexpr void operator()(long i) const { to[i / columns * leading + i % columns] = bfloat16::nearest(from[i]); }
};
/// A kernel of `rows` rows and, if there is one, a bias as one more row.
struct round_weights {
  const float *w, *bias;
  bfloat16* to;
  long rows, columns, leading;
  constexpr long count() const { return (rows + (bias != nullptr)) * columns; }
  constexpr void operator()(long i) const {
    const long row = i / columns;
    to[row * leading + i % columns] = bfloat16::nearest(row < rows ? w[i] : bias[i % columns]);
  }
};
/// Elements as the policy P multiplies them.
template <class P, class From>
struct rounded_elements {
  From from;
  constexpr auto operator[](long i) const { return rounded_operand<P>(from[i]); }
};
template <class From>
struct store_elements {
  From from;
  float* to;
  constexpr void operator()(long i) const { to[i] = from[i]; }
};
/// The work that the library leaves: bias (null: none) and activation. from: its results, perhaps at the address of y.
template <class A, class From, class Y>
struct finish_outputs {
  const From* from;
  Y* y;
  const float* bias;
  long columns;
  constexpr void operator()(long i) const {
    const float x(from[i]);
    y[i] = stored_as<Y>(activated<A>(bias ? bias[i % columns] + x : x));
  }
};
/// The gradients of leaves without samples.
struct clear_gradients {
  gradient_place<float> to;
  long first, size;
  constexpr void operator()(long i) const { to.store(first + i / size, i % size, 0); }
};

}  // namespace strata::machine
