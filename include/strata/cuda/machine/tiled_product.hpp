// Products of matrices that are given by functions, so that a convolution is one, too: blocks of threads keep tiles of both
// factors in shared memory.
// needs: boost_context
#pragma once
#include <strata/cuda/machine/loops.hpp>
#include <strata/cuda/machine/rounded_operand.hpp>

namespace strata::machine {

/// The rows and the columns of a product that a block computes.
inline constexpr int product_tile = 64;

namespace detail {
template <class Product>
struct tiled_code {
  static constexpr int threads = 256, tile = product_tile, depth = 16, part = 4;  // each thread computes part * part elements
  using value = typename Product::precision::value_type;
  struct shared {
    value a[depth][tile], b[depth][tile];
  };
  Product product;
  long row_tiles, column_tiles;

  static constexpr value rounded(value x) { return rounded_operand<typename Product::precision>(x); }

  STRATA_DEVICE void operator()(const lane& l, shared& memory) const {
    const long z = l.block() / (row_tiles * column_tiles), within = l.block() % (row_tiles * column_tiles);
    const long row = within / column_tiles * tile, column = within % column_tiles * tile;
    const long rows = product.rows(), columns = product.columns(), terms = product.terms(z);
    const int t = l.thread(), down = t / (tile / part) * part, across = t % (tile / part) * part;
    value sum[part][part] = {};
    for (long k = 0; k < terms; k += depth) {
      for (int i = t; i < depth * tile; i += threads) {
        const int m = Product::rows_are_neighbours ? i % tile : i / depth,
                  of_a = Product::rows_are_neighbours ? i / tile : i % depth;
        const int n = i % tile, of_b = i / tile;
        memory.a[of_a][m] = row + m < rows && k + of_a < terms ? rounded(product.a(z, row + m, k + of_a)) : value{};
        memory.b[of_b][n] = column + n < columns && k + of_b < terms ? rounded(product.b(z, k + of_b, column + n)) : value{};
      }
      l.barrier();
      for (int d = 0; d < depth; ++d)
        for (int i = 0; i < part; ++i)
          for (int j = 0; j < part; ++j) sum[i][j] += memory.a[d][down + i] * memory.b[d][across + j];
      l.barrier();
    }
    static_assert(part == 4);
    if constexpr (requires { product.store_rows(z, row, column, sum[0]); }) {
      for (int j = 0; j < part; ++j) {
        const value of_column[part] = {sum[0][j], sum[1][j], sum[2][j], sum[3][j]};
        if (row + down < rows && column + across + j < columns) product.store_rows(z, row + down, column + across + j, of_column);
      }
    } else {
      for (int i = 0; i < part; ++i)
        for (int j = 0; j < part; ++j)
          if (row + down + i < rows && column + across + j < columns)
            product.store(z, row + down + i, column + across + j, sum[i][j]);
    }
  }
};
}  // namespace detail

/// `count` products, each the sum over k of a(z, m, k) * b(z, k, n), for all rows m and columns n. Each element is added up in
/// the order of k, so its bits do not depend on the number of rows or columns. Members of Product:
///   `precision`  the policy by which elements of a and b are rounded; its value_type is that of a sum
///   `rows()`, `columns()`, `terms(z)`, `a(z, m, k)`, `b(z, k, n)`, `store(z, m, n, sum)`
///   or, in place of store: `store_rows(z, m, n, sums)` for the rows m to m + 3 at once, where rows() and m are multiples of 4
///   `rows_are_neighbours`  whether elements of a that lie side by side in memory differ in m, not in k
template <class Product>
auto products(long count, const Product& product) {
  using code = detail::tiled_code<Product>;
  const long row_tiles = (product.rows() + code::tile - 1) / code::tile,
             column_tiles = (product.columns() + code::tile - 1) / code::tile;
  return grid<code>{{product, row_tiles, column_tiles}, count * row_tiles * column_tiles};
}
template <class Product>
void for_each_product(const queue& q, long count, const Product& product) {
  machine::launch(q, products(count, product));
}

}  // namespace strata::machine
