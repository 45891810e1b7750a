// Products of matrices on tensor cores: each block keeps tiles of both factors in shared memory, and each of its warps multiplies
// 32 rows by 32 columns.
#pragma once
#include <algorithm>
#include <cstdint>
#include <strata/cuda/machine/loops.hpp>
#include <strata/cuda/machine/product_blocks.hpp>
#include <strata/cuda/machine/rounded_four.hpp>
#include <strata/cuda/machine/tensor_cores.hpp>
#include <utility>

namespace strata::machine {

/// The part of a product that a block computes on tensor cores. Its warps may be two slices, which have half of the terms each.
template <int Rows, int Columns, int Slices = 1>
struct tensor_tile {
  static constexpr int rows = Rows, columns = Columns, slices = Slices;
  static constexpr int warps_of_slice = Rows / 32 * (Columns / 32), threads = 32 * warps_of_slice * Slices;
  static_assert(Rows % 32 == 0 && Columns % 32 == 0 && (Slices == 1 || Slices == 2));
};
/// The tile of a product with so many columns. All have 128 threads, so that two products can be one launch.
template <int Columns>
using tensor_tile_of = tensor_tile<64, (Columns <= 32 ? 32 : 64), (Columns <= 32 ? 2 : 1)>;

template <class Tile>
inline constexpr bool is_tensor_tile = false;
template <int Rows, int Columns, int Slices>
inline constexpr bool is_tensor_tile<tensor_tile<Rows, Columns, Slices>> = true;

namespace detail {
/// The word of some terms of a row, from `term` on.
template <class P>
STRATA_DEVICE std::uint32_t word_of_terms(const four<float>& terms, int term) {
  float all[tensor_word<P>::terms];
  for (int k = 0; k < tensor_word<P>::terms; ++k) all[k] = terms.at[term + k];
  return tensor_word<P>::of(all);
}
template <class P>
STRATA_DEVICE std::uint32_t word_of_terms(const rounded_four& terms, int term) {
  return terms.words[term / 2];
}
/// The word of row `row` of four rows: rows[k] are those of term k.
template <class P>
STRATA_DEVICE std::uint32_t word_of_row(const four<float>* rows, int row) {
  float all[tensor_word<P>::terms];
  for (int k = 0; k < tensor_word<P>::terms; ++k) all[k] = rows[k].at[row];
  return tensor_word<P>::of(all);
}
template <class P>
STRATA_DEVICE std::uint32_t word_of_row(const rounded_four* rows, int row) {
  return pair_of(rows[0], rows[1], row);
}

/// The elements of a tile with `Extent` rows (or columns) that each thread fetches, four at once: whole units of words. Either a
/// four is terms of a row, and eight neighbouring threads have all terms of two rows; or it is rows with the same term. Then four
/// neighbouring threads have neighbouring rows, and the next four have the next units, so that they use different banks.
template <class P, int Extent, int Threads, bool IsA, bool TermsAreNeighbours>
struct fours_of_tile {
  using factor = tensor_factor<P, Extent, IsA>;
  static constexpr int groups = Extent / 4;  // of four rows
  /// The number of fours that a thread fetches at once: four or, if they are terms of a row, two.
  static constexpr int at_once = TermsAreNeighbours ? 2 : 4;
  static constexpr int rounds = TermsAreNeighbours ? 4 * Extent / Threads : std::max(8 * groups / Threads, 1);
  static constexpr int count = rounds * at_once;
  static_assert(TermsAreNeighbours ? rounds * Threads == 4 * Extent : (8 * groups) % Threads == 0 || Threads % (8 * groups) == 0);

  /// The index of this thread among those that have terms of the same four rows. Eight are enough; others fetch none.
  static constexpr int slot(int t) { return t / 4 % 2 + t / (2 * groups) * 2; }
  static constexpr bool fetches(int t) { return TermsAreNeighbours || 8 * groups >= Threads || slot(t) < 8; }
  /// The first row and the first term of four j of thread t.
  static constexpr int row(int t, int j) {
    return TermsAreNeighbours ? (t / 8 + j / 2 * (Threads / 8)) * 2 + j % 2 : (t % 4 + t / 8 % (groups / 4) * 4) * 4;
  }
  static constexpr int term(int t, int j) {
    return TermsAreNeighbours ? t % 8 * 4 : (slot(t) + j / 4 * (Threads / groups)) * 4 + j % 4;
  }

  /// Stores what thread t has fetched.
  template <class Four>
  STRATA_DEVICE static void keep(factor& to, const Four (&fetched)[count], int t) {
    for (int first = 0; first < count && fetches(t); first += at_once) {
      const int k = term(t, first) / factor::terms_of_unit, pair = row(t, first) / 2;
      for (int i = 0; i < factor::units_of_thread; ++i) {
        if constexpr (TermsAreNeighbours)
          to.unit(k + i, pair) =
              unit([&](int r, int term) { return word_of_terms<P>(fetched[first + r], i * factor::terms_of_unit + term); });
        else
          for (int half = 0; half < 2; ++half)
            to.unit(k + i, pair + half) = unit([&](int r, int term) {
              return word_of_row<P>(fetched + first + i * factor::terms_of_unit + term, 2 * half + r);
            });
      }
    }
  }

 private:
  /// word_of(row, term): the word of one of two rows whose first term is that term of the unit.
  STRATA_DEVICE static four<std::uint32_t> unit(const auto& word_of) {
    four<std::uint32_t> words;
    for (int r = 0; r < 2; ++r)
      for (int word = 0; word < 2; ++word) words.at[factor::within(r, word)] = word_of(r, word * factor::terms_of_word);
    return words;
  }
};

template <class Product>
struct tensor_code : product_blocks<Product> {
  using blocks = product_blocks<Product>;
  using blocks::product, blocks::parts, blocks::sums_of_parts, blocks::all_terms;
  using precision = typename Product::precision;
  using typename blocks::tile;
  static constexpr int threads = tile::threads, rows = tile::rows, columns = tile::columns, depth = tensor_depth;
  /// Three, so that one block can wait for memory while others multiply. A thread has up to 168 registers then.
  static constexpr int blocks_of_multiprocessor = 3;
  static constexpr int slices = tile::slices, steps = tensor_steps<precision> / slices;
  static constexpr bool a_has_terms = !Product::rows_are_neighbours, b_has_terms = !Product::columns_are_neighbours;
  using of_a = fours_of_tile<precision, rows, threads, true, a_has_terms>;
  using of_b = fours_of_tile<precision, columns, threads, false, b_has_terms>;
  static_assert(Product::columns % 4 == 0);

  /// True if the last row of a is all ones. It is not multiplied: the blocks with the first rows add up the columns of b.
  static constexpr bool has_row_of_ones = [] {
    if constexpr (requires { Product::has_row_of_ones; })
      return Product::has_row_of_ones;
    else
      return false;
  }();
  static_assert(!has_row_of_ones || !b_has_terms);
  static constexpr int threads_of_column = has_row_of_ones ? std::min(threads / of_b::groups, 8) : 1;

  struct factors {
    tensor_factor<precision, rows, true> a;
    tensor_factor<precision, columns, false> b;
  };
  union shared {
    factors now;
    four<float> sums_of_columns[threads_of_column][columns / 4];
    float sums_of_slice[slices == 1 ? 1 : 32][32 * tile::warps_of_slice];
  };
  /// four<float>, or rounded_four.
  using four_of_a = decltype(std::declval<const Product&>().a_four(0L, 0, term_index<depth>{0, 0}));
  using four_of_b = decltype(std::declval<const Product&>().b_four(0L, term_index<depth>{0, 0}, 0));
  struct fetched {
    four_of_a a[of_a::count];
    four_of_b b[of_b::count];
  };

  static constexpr int multiplied_rows(int all) { return all - has_row_of_ones; }
  static_assert(!(a_has_terms || b_has_terms) || (all_terms > 0 && all_terms % 4 == 0), "four terms are in the product, or none");
  static constexpr bool has_all_terms = all_terms > 0 && all_terms % depth == 0;

  /// Terms after the last one are 0. In place of them, and of rows and columns after the last ones, whose sums are not stored, a
  /// thread reads the last ones: so there are no branches around indices.
  STRATA_DEVICE void fetch(fetched& next, int t, long z, int row, int column, int first, int end) const {
    const auto term_inside = [&](int within, int at_once) {
      return term_index<depth>{first, has_all_terms ? within : std::min(within, end - first - at_once)};
    };
    const int after_rows = multiplied_rows(product.rows());
    constexpr int rows_at_once = a_has_terms ? 1 : 4, columns_at_once = b_has_terms ? 1 : 4;
    for (int j = 0; j < of_a::count && of_a::fetches(t); ++j) {
      const int within = of_a::term(t, j), m = row + of_a::row(t, j);
      next.a[j] = product.a_four(z, std::min(m, after_rows - rows_at_once), term_inside(within, a_has_terms ? 4 : 1));
      if (!has_all_terms && first + within >= end) next.a[j] = {};
    }
    for (int j = 0; j < of_b::count && of_b::fetches(t); ++j) {
      const int within = of_b::term(t, j), n = column + of_b::row(t, j);
      next.b[j] = product.b_four(z, term_inside(within, b_has_terms ? 4 : 1), std::min(n, Product::columns - columns_at_once));
      if (!has_all_terms && first + within >= end) next.b[j] = {};
    }
  }

  STRATA_DEVICE void operator()(const lane& l, shared& memory) const {
    const auto [z, part, row, column, begin, end] = blocks::place_of(l.block());
    const int t = l.thread(), slice = t / (32 * tile::warps_of_slice), warp = t / 32 % tile::warps_of_slice;
    const int row_of_warp = warp / (columns / 32) * 32, column_of_warp = warp % (columns / 32) * 32;
    float sums[4][8] = {};
    four<float> sums_of_columns = {};
    fetched next;
    if (begin < end) fetch(next, t, z, row, column, begin, end);
    for (int k = begin; k < end; k += depth) {
      of_a::keep(memory.now.a, next.a, t);
      of_b::keep(memory.now.b, next.b, t);
      if constexpr (has_row_of_ones)
        if (of_b::fetches(t)) add_columns(sums_of_columns, next);
      l.barrier();
      if (k + depth < end) fetch(next, t, z, row, column, k + depth, end);
      multiply_in_warp<steps>(memory.now.a, memory.now.b, t % 32, row_of_warp, column_of_warp, slice * steps, sums);
      l.barrier();
    }
    if constexpr (slices == 2) add_slices(l, memory, slice, sums);
    const tensor_lane own(t % 32);
    for (int half = 0; half < 2 && slice == 0; ++half) {
      four<float> of_rows[4];
      for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) of_rows[i].at[j] = sums[i][4 * half + j];
      store(z, part, row + row_of_warp + own.row, column + column_of_warp + own.column + 4 * half, of_rows);
    }
    if constexpr (has_row_of_ones)
      if (row == 0) store_columns(l, memory, z, part, column, sums_of_columns);
  }

 private:
  STRATA_DEVICE static void add_columns(four<float>& sums, const fetched& next) {
    using word = tensor_word<precision>;
    for (int j = 0; j < of_b::count; j += word::terms)
      for (int i = 0; i < 4; ++i) {
        const std::uint32_t rounded = word_of_row<precision>(next.b + j, i);
        for (int k = 0; k < word::terms; ++k) sums.at[i] += word::term(rounded, k);
      }
  }
  /// Adds the sums of the second slice to those of the first.
  STRATA_DEVICE static void add_slices(const lane& l, shared& memory, int slice, float (&sums)[4][8]) {
    const int t = l.thread() % (32 * tile::warps_of_slice);
    if (slice == 1)
      for (int i = 0; i < 32; ++i) memory.sums_of_slice[i][t] = sums[i / 8][i % 8];
    l.barrier();
    if (slice == 0)
      for (int i = 0; i < 32; ++i) sums[i / 8][i % 8] += memory.sums_of_slice[i][t];
    l.barrier();
  }
  /// Adds up what the threads have that fetched the same columns, in their order. A thread stores four sums.
  STRATA_DEVICE void store_columns(const lane& l, shared& memory, long z, int part, int column, const four<float>& mine) const {
    const int slot = of_b::slot(l.thread()), group = of_b::row(l.thread(), 0) / 4, n = column + 4 * group;
    if (slot < threads_of_column) memory.sums_of_columns[slot][group] = mine;
    l.barrier();
    if (slot != 0 || n >= Product::columns) return;
    four<float> sums = {};
    for (const auto& of_thread : memory.sums_of_columns)
      for (int i = 0; i < 4; ++i) sums.at[i] += of_thread[group].at[i];
    store_row(z, part, product.rows() - 1, n, sums);
  }
  STRATA_DEVICE void store(long z, int part, int m, int n, const four<float> (&of_rows)[4]) const {
    const int after_rows = multiplied_rows(product.rows());
    if (m >= after_rows || n >= Product::columns) return;
    if constexpr (requires { product.store_four_rows(z, m, n, of_rows); })
      product.store_four_rows(z, m, n, of_rows);
    else
      for (int i = 0; i < 4 && m + i < after_rows; ++i) store_row(z, part, m + i, n, of_rows[i]);
  }
  STRATA_DEVICE void store_row(long z, int part, int m, int n, const four<float>& sums) const {
    if (parts.count > 1)
      machine::store_four(sums_of_parts, blocks::place_of_sum(z, part, m, n), sums);
    else if constexpr (requires { product.store_four(z, m, n, sums); })
      product.store_four(z, m, n, sums);
    else
      for (int j = 0; j < 4; ++j) product.store(z, m, n + j, sums.at[j]);
  }
};
}  // namespace detail

}  // namespace strata::machine
