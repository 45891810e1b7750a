// Where a kernel hands gradients over that it does not store.
#pragma once

namespace strata {

/// Takes the gradients of the parameters of a group, sums over the samples of the call. An optimizer uses them at once, so that
/// they need not go through memory; after the call they are gone, and what lies at operands::dw is undefined.
template <class T>
struct gradient_sink {
  void* context;
  /// Of elements [first, first + size); behind them come zeros up to a multiple of 64 bytes.
  void (*take)(void* context, int parameter, long first, long size, const T* sums);
  /// Of a matrix, not yet multiplied: the sum over n of x[n * rows + k] * dz[n * columns + j] at (k, j).
  void (*take_product)(void* context, int parameter, const T* x, const T* dz, int count, int rows, int columns);

  /// Few enough samples for the optimizer to multiply on its way, and whole vectors in each row.
  static constexpr bool wants_product(int count, int columns) { return count <= 8 && columns * int(sizeof(T)) % 64 == 0; }
};

}  // namespace strata
