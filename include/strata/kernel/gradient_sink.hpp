// The interface through which a kernel passes on gradients that it does not store.
#pragma once
#include <strata/base/namespaces.hpp>

namespace strata::core {

/// The gradient of a matrix as a product of two factors: the sum over n of x[n] (outer product) dz[n].
template <class T>
struct gradient_product {
  const T* x;   // (count, rows)
  const T* dz;  // (count, columns)
  int count, rows, columns;
};

/// Takes the gradients of the parameters of a group: sums over the samples of the call. An optimizer uses them immediately, so
/// that they are not written to memory: they are valid during the call only, and the contents of operands::dw are undefined.
template <class T>
struct gradient_sink {
  void* context;
  /// Elements in 64 bytes.
  static constexpr int alignment = 64 / int(sizeof(T));

  /// Gradients of the elements [first, first + size), followed by zeros up to a multiple of `alignment` elements. Elements after
  /// those are undefined. The receiver may overwrite them.
  void (*take)(void* context, int parameter, long first, long size, T* sums);
  /// The gradient of a matrix as its factors: the sum over n of x[n * rows + k] * dz[n * columns + j] at (k, j).
  void (*take_product)(void* context, int parameter, const T* x, const T* dz, int count, int rows, int columns);

  /// Whether to pass factors instead of the product: for few samples, so that the optimizer can multiply while it updates, and
  /// rows of whole vectors.
  static constexpr bool wants_product(int count, int columns) { return count <= 8 && columns % alignment == 0; }
};

}  // namespace strata::core
