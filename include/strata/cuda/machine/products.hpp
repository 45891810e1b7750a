// Products of matrices that are given by functions, so that a convolution is one, too.
#pragma once
#include <algorithm>
#include <strata/cuda/machine/loops.hpp>
#include <strata/cuda/machine/tensor_product.hpp>
#include <strata/cuda/machine/tiled_product.hpp>

namespace strata::machine {

namespace detail {
/// Adds up the parts of products, in their order.
template <class Product>
struct sum_of_parts {
  using value = typename Product::precision::value_type;
  Product product;
  const value* from;
  int parts;

  constexpr void operator()(long i) const {
    const long size = long{product.rows()} * Product::columns, z = i / size, at = i % size;
    value sum{};
    for (int part = 0; part < parts; ++part) sum += from[(z * parts + part) * size + at];
    product.store(z, int(at / Product::columns), int(at % Product::columns), sum);
  }
};

template <class Product>
struct code_of_product {
  using type = tiled_code<Product>;
};
template <class Product>
  requires is_tensor_tile<typename Product::tile>
struct code_of_product<Product> {
  using type = tensor_code<Product>;
};
template <class Product>
using code_of = typename code_of_product<Product>::type;

/// The tiles of a product, in a row of tiles and in a column of them.
template <class Product>
constexpr int tiles_across = (Product::columns + Product::tile::columns - 1) / Product::tile::columns;
template <class Product>
constexpr int tiles_down(int rows) {
  return (code_of<Product>::multiplied_rows(rows) + Product::tile::rows - 1) / Product::tile::rows;
}
}  // namespace detail

/// `count` products, each the sum over k of a(z, m, k) * b(z, k, n), for all rows m and columns n. The order in which an element
/// is added up follows from its tile and its number of terms, so its bits do not depend on the number of rows or products.
/// Members of Product:
///   `precision`  the policy by which elements of a and b are rounded; its value_type is that of a sum
///   `tile`       a product_tile or, for tensor cores, a tensor_tile
///   `columns`    a constant
///   `rows()`, `terms(z)`, `a(z, m, k)`, `b(z, k, n)`, `store(z, m, n, sum)`: m, n and k are int; k may also be a term_index
///   or, in place of store: `store_rows(z, m, n, sums)` for the rows m to m + 3 at once, where rows() is a multiple of 4
///   or, in place of terms: `all_terms`, if it is a constant
///   `rows_are_neighbours`     whether elements of a that lie side by side in memory differ in m, not in k
///   `columns_are_neighbours`  whether elements of b that lie side by side in memory differ in n, not in k
///   and perhaps `keep_a(m, k, element)`, which gets each element of a that a block has once; a itself may be called more often
/// On tensor cores the number of neighbours is a multiple of 4, and they are read and stored so:
///   `a_four(z, m, k)`, `b_four(z, k, n)` in place of a and b: four neighbours, as four<float> or rounded_four
///   and perhaps `has_row_of_ones`: whether the last row of a is all ones, which a_four does not know
///   and perhaps `store_four(z, m, n, sums)` of the columns n to n + 3; or `store_four_rows(z, m, n, sums)` of the rows
///   m to m + 3, too, where rows() is a multiple of 4
template <class Product>
auto products(long count, const Product& product) {
  using code = detail::code_of<Product>;
  const int row_tiles = detail::tiles_down<Product>(product.rows()), column_tiles = detail::tiles_across<Product>;
  return grid<code>{{{product, row_tiles, column_tiles}}, count * row_tiles * column_tiles};
}
template <class Product>
void for_each_product(const queue& q, long count, const Product& product) {
  machine::launch(q, products(count, product));
}

/// The largest number of parts into which a product with at most `rows` rows is cut. Together they have up to 128 tiles, or more
/// where one part has more.
template <class Product>
constexpr int most_parts(int rows) {
  return std::max(128 / (detail::tiles_down<Product>(rows) * detail::tiles_across<Product>), 1);
}
/// The parts of each product: all but the last have 512 terms or more. They follow from the tile, the rows and columns, and
/// `most_terms`, the terms of a whole leaf; so they do not depend on the number of leaves or devices.
template <class Product>
constexpr product_parts parts_of(const Product& product, long most_terms) {
  const long wanted = std::clamp(most_terms / 512, 1L, long{most_parts<Product>(product.rows())});
  return parts_of_terms(most_terms, wanted, detail::code_of<Product>::depth);
}
/// `products` in parts: add_parts must be called after them. sums: count * parts.count * rows * columns elements.
template <class Product>
auto products(long count, const Product& product, product_parts parts, typename Product::precision::value_type* sums) {
  using value = typename Product::precision::value_type;
  static_assert(
      !requires(const value(&column)[4]) { product.store_rows(0L, 0, 0, column); } &&
          !requires(const four<value>(&rows)[4]) { product.store_four_rows(0L, 0, 0, rows); },
      "sums of parts are stored one by one");
  auto all = products(count, product);
  if (parts.count > 1) {
    all.code.parts = parts, all.code.sums_of_parts = sums;
    all.blocks *= parts.count;
  }
  return all;
}
template <class Product>
void add_parts(const queue& q, long count, const Product& product, product_parts parts,
               const typename Product::precision::value_type* sums) {
  if (parts.count > 1)
    for_each_index(q, count * product.rows() * Product::columns, detail::sum_of_parts<Product>{product, sums, parts.count});
}

}  // namespace strata::machine
