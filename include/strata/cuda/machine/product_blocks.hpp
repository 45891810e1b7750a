// The part of a product that a block computes.
#pragma once
#include <strata/cuda/machine/machine.hpp>
#include <strata/cuda/machine/product_terms.hpp>

namespace strata::machine::detail {

/// The common part of kernels of products. Product: see products.
template <class Product>
struct product_blocks {
  using value = typename Product::precision::value_type;
  using tile = typename Product::tile;
  Product product;
  int row_tiles, column_tiles;
  product_parts parts = {};
  value* sums_of_parts = nullptr;  // where there are several: (product, part, row, column)

  /// The terms of each product, if they are a constant; else 0.
  static constexpr int all_terms = [] {
    if constexpr (requires { Product::all_terms; })
      return Product::all_terms;
    else
      return 0;
  }();
  STRATA_DEVICE int terms_of(long z) const {
    if constexpr (all_terms > 0)
      return all_terms;
    else
      return product.terms(z);
  }

  /// Tile (row, column) of product z, of which the terms begin to end - 1 are added up.
  struct place {
    long z;
    int part, row, column, begin, end;
  };
  STRATA_DEVICE place place_of(long block) const {
    const int tiles = row_tiles * column_tiles;
    const long z = block / tiles / parts.count;
    const int part = int(block / tiles % parts.count), within = int(block % tiles);
    const int terms = terms_of(z), begin = part * parts.terms;
    return {z,
            part,
            within / column_tiles * tile::rows,
            within % column_tiles * tile::columns,
            begin,
            terms - begin < parts.terms ? terms : begin + parts.terms};
  }
  /// The index of the sum of one of several parts.
  STRATA_DEVICE long place_of_sum(long z, int part, int m, int n) const {
    return ((z * parts.count + part) * product.rows() + m) * Product::columns + n;
  }
};

}  // namespace strata::machine::detail
