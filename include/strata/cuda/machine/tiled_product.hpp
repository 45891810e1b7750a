// Products of matrices by the arithmetic of threads: each block keeps tiles of both factors in shared memory.
#pragma once
#include <algorithm>
#include <bit>
#include <strata/cuda/machine/fours.hpp>
#include <strata/cuda/machine/loops.hpp>
#include <strata/cuda/machine/product_blocks.hpp>
#include <strata/cuda/machine/rounded_operand.hpp>

namespace strata::machine {

/// The part of a product that a block computes. A thread adds up 4x4 elements; where that leaves threads of the block, they
/// divide the terms among them, and their sums are added at the end: a small tile of a product with many terms.
template <int Rows, int Columns, int Threads = 256>
struct product_tile {
  static constexpr int rows = Rows, columns = Columns, threads = Threads;
  static constexpr int threads_of_slice = Rows / 4 * (Columns / 4), slices = Threads / threads_of_slice;
  static_assert(Rows % 4 == 0 && Columns % 4 == 0 && Threads % threads_of_slice == 0 && std::has_single_bit(unsigned(slices)));
};

/// The tile of a product with very many rows.
template <int Columns, int Terms>
struct tile_of_many_rows_at {
  static constexpr int columns = Columns <= 16 ? 16 : Columns <= 32 ? 32 : 64;
  using type = product_tile<(columns == 16 ? 64 : (Terms > 64 ? 2048 : 4096) / columns), columns>;
};
template <int Columns, int Terms>
using tile_of_many_rows = typename tile_of_many_rows_at<Columns, Terms>::type;
/// The tile of a product with very many terms.
template <int Rows, int Columns>
using tile_of_many_terms = product_tile<(Rows <= 16    ? 16
                                         : Rows <= 128 ? 32
                                                       : 64),
                                        (Columns <= 16 ? 16 : 32)>;

namespace detail {
/// The elements of a tile with `Extent` rows or columns and `Depth` terms that each thread fetches. Neighbours in memory, which
/// are terms, or rows or columns, are fetched by neighbouring threads. Otherwise the elements of a thread differ as little as
/// possible, so that little has to be computed for each.
template <int Extent, int Depth, int Threads, bool TermsAreNeighbours>
struct elements_of_tile {
  /// Elements of a thread.
  static constexpr int count = Extent * Depth / Threads;
  static_assert(count * Threads == Extent * Depth);
  /// The tile is cut into groups of some rows and all their terms. In a group, `terms_at_once` neighbouring threads share a row
  /// and have neighbouring terms; or `rows_at_once` of them share a term and have neighbouring rows.
  static constexpr int terms_at_once = TermsAreNeighbours ? std::min(Depth, 8) : 1;
  static constexpr int rows_at_once = TermsAreNeighbours ? 4 : std::min(Extent, std::max(8, Threads / Depth));
  static constexpr int at_once = terms_at_once * rows_at_once, group = rows_at_once * Depth;
  /// The number of elements of a group per thread, and of groups that all threads fetch at once; at least one of the two is 1.
  static constexpr int steps = std::max(group / Threads, 1), groups = std::max(Threads / group, 1);
  static_assert(steps * Threads == groups * group && Threads % at_once == 0 && Extent % rows_at_once == 0 &&
                Depth % terms_at_once == 0);

  /// Elements that are added to each row of the tile in shared memory, so that no two threads of a warp store to one bank.
  static constexpr int padding = Extent % (2 * rows_at_once) == 0 ? rows_at_once : 0;

  /// The row of element j of thread t.
  static constexpr int row(int t, int j) {
    return t / terms_at_once % rows_at_once + (t / group + j / steps * groups) * rows_at_once;
  }
  static constexpr int term(int t, int j) {
    return t % terms_at_once + (t % group / at_once + j % steps * (Threads / at_once)) * terms_at_once;
  }
};

template <class Product>
struct tiled_code : product_blocks<Product> {
  using blocks = product_blocks<Product>;
  using blocks::product, blocks::parts, blocks::sums_of_parts, blocks::all_terms;
  using typename blocks::value, typename blocks::tile;
  static constexpr int threads = tile::threads, rows = tile::rows, columns = tile::columns, slices = tile::slices;
  /// Terms that a slice adds up between two barriers. A thread fetches at most 40 bytes meanwhile where it can: with more, so
  /// many registers are necessary that a multiprocessor has room for one block only.
  static constexpr bool has_room_for(int terms) { return (rows + columns) * slices * terms * int(sizeof(value)) <= 40 * threads; }
  static constexpr int depth_of_slice = has_room_for(16) ? 16 : has_room_for(8) ? 8 : 4;
  static constexpr int depth = depth_of_slice * slices;
  using of_a = elements_of_tile<rows, depth, threads, !Product::rows_are_neighbours>;
  using of_b = elements_of_tile<columns, depth, threads, !Product::columns_are_neighbours>;
  struct factors {
    four<value> a[depth][(rows + of_a::padding) / 4], b[depth][(columns + of_b::padding) / 4];
  };
  union shared {
    factors now;
    value sums[slices == 1 ? 1 : slices / 2][4][4][tile::threads_of_slice];  // neighbouring threads write side by side
  };
  /// Elements of the next tiles, on their way from memory while those of the last ones are multiplied.
  struct fetched {
    value a[of_a::count], b[of_b::count];
  };
  static constexpr int multiplied_rows(int all) { return all; }
  /// True if each depth has all its terms, and each tile all its columns.
  static constexpr bool has_all_terms = all_terms > 0 && all_terms % depth == 0;
  static constexpr bool has_all_columns = Product::columns % columns == 0;

  /// Elements outside of the product are 0. A thread reads the last one inside in place of them: so there are no branches around
  /// indices, and what several elements of a thread have in common is computed once.
  STRATA_DEVICE void fetch(fetched& next, int t, long z, int row, int column, int first, int end) const {
    const auto term_inside = [&](int within) {
      return term_index<depth>{first, has_all_terms ? within : std::min(within, end - first - 1)};
    };
    for (int j = 0; j < of_a::count; ++j) {
      const int within = of_a::term(t, j), m = row + of_a::row(t, j), last = product.rows() - 1;
      const value element = product.a(z, std::min(m, last), term_inside(within));
      const bool is_inside = m <= last && (has_all_terms || first + within < end);
      if constexpr (requires { product.keep_a(m, within, element); })
        if (is_inside) product.keep_a(m, first + within, element);
      next.a[j] = is_inside ? element : value{};
    }
    for (int j = 0; j < of_b::count; ++j) {
      const int within = of_b::term(t, j), n = column + of_b::row(t, j), last = Product::columns - 1;
      const value element = product.b(z, term_inside(within), has_all_columns ? n : std::min(n, last));
      next.b[j] = (has_all_columns || n <= last) && (has_all_terms || first + within < end) ? element : value{};
    }
  }
  STRATA_DEVICE void keep(factors& tiles, const fetched& next, int t) const {
    for (int j = 0; j < of_a::count; ++j) {
      const int m = of_a::row(t, j);
      tiles.a[of_a::term(t, j)][m / 4].at[m % 4] = rounded(next.a[j]);
    }
    for (int j = 0; j < of_b::count; ++j) {
      const int n = of_b::row(t, j);
      tiles.b[of_b::term(t, j)][n / 4].at[n % 4] = rounded(next.b[j]);
    }
  }
  static constexpr value rounded(value x) { return rounded_operand<typename Product::precision>(x); }

  STRATA_DEVICE void operator()(const lane& l, shared& memory) const {
    const auto [z, part, row, column, begin, end] = blocks::place_of(l.block());
    const int t = l.thread(), slice = t / tile::threads_of_slice, in_slice = t % tile::threads_of_slice;
    const int down = in_slice / (columns / 4), across = in_slice % (columns / 4);  // in fours
    value sum[4][4] = {};
    fetched next;
    if (begin < end) fetch(next, t, z, row, column, begin, end);
    for (int k = begin; k < end; k += depth) {
      keep(memory.now, next, t);
      l.barrier();
      if (k + depth < end) fetch(next, t, z, row, column, k + depth, end);
      for (int d = slice * depth_of_slice; d < (slice + 1) * depth_of_slice; ++d) {
        const four<value> a = memory.now.a[d][down], b = memory.now.b[d][across];
        for (int i = 0; i < 4; ++i)
          for (int j = 0; j < 4; ++j) sum[i][j] += a.at[i] * b.at[j];
      }
      l.barrier();
    }
    for (int half = slices / 2; half > 0; half /= 2) {
      if (slice >= half && slice < 2 * half)
        for (int i = 0; i < 4; ++i)
          for (int j = 0; j < 4; ++j) memory.sums[slice - half][i][j][in_slice] = sum[i][j];
      l.barrier();
      if (slice < half)
        for (int i = 0; i < 4; ++i)
          for (int j = 0; j < 4; ++j) sum[i][j] += memory.sums[slice][i][j][in_slice];
      l.barrier();
    }
    if (slice == 0)
      for (int j = 0; j < 4; ++j) {
        const value of_column[4] = {sum[0][j], sum[1][j], sum[2][j], sum[3][j]};
        store(z, part, row + 4 * down, column + 4 * across + j, of_column);
      }
  }

 private:
  /// Four elements of a column.
  STRATA_DEVICE void store(long z, int part, int m, int n, const value (&sums)[4]) const {
    if (m >= product.rows() || n >= Product::columns) return;
    if constexpr (requires { product.store_rows(z, m, n, sums); }) {
      product.store_rows(z, m, n, sums);
    } else {
      for (int i = 0; i < 4 && m + i < product.rows(); ++i)
        if (parts.count == 1)
          product.store(z, m + i, n, sums[i]);
        else
          sums_of_parts[blocks::place_of_sum(z, part, m + i, n)] = sums[i];
    }
  }
};
}  // namespace detail

}  // namespace strata::machine
