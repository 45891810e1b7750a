// Images as a block keeps them in shared memory for products on tensor cores: see image_product.hpp.
#pragma once
#include <algorithm>
#include <cstdint>
#include <strata/cuda/machine/fours.hpp>
#include <strata/cuda/machine/product_terms.hpp>
#include <strata/cuda/machine/rounded_four.hpp>

namespace strata::machine {

/// Eight neighbouring terms, each a bfloat16. A warp multiplies thirty-two terms at once: thread `lane` has number lane % 4 of
/// four such eights.
using eight_terms = four<std::uint32_t>;

/// Thirty-two terms are pairs of neighbours. A thread has four of them, or only the first two where sixteen terms are enough.
constexpr int pairs_of_thirty_two = 16;

namespace detail {
STRATA_DEVICE inline rounded_four rounded(const rounded_four& all) { return all; }
STRATA_DEVICE inline rounded_four rounded(const four<float>& all) {
  return {{rounded_pair(all.at[0], all.at[1]), rounded_pair(all.at[2], all.at[3])}};
}
template <class Four>
STRATA_DEVICE eight_terms rounded_eight(const Four& first, const Four& second) {
  const rounded_four a = rounded(first), b = rounded(second);
  return {a.words[0], a.words[1], b.words[0], b.words[1]};
}

/// Calls f(pixel, number) for the eights of all pixels, which the threads of a block divide among themselves.
template <int Pixels, int Channels, class F>
STRATA_DEVICE void for_each_eight(int t, int threads, const F& f) {
  for (int i = t; i < Pixels * (Channels / 8); i += threads) f(quotient<Channels / 8>(i), remainder<Channels / 8>(i));
}
/// Calls store(pixel of the view, number, terms) for all that is inside an image. View: see for_each_image.
template <class View, class From, class Store>
STRATA_DEVICE void for_each_inside_eight(const From& from, int image, int t, int threads, const Store& store) {
  for_each_eight<View::inside_rows * View::inside_columns, View::channels>(t, threads, [&](int pixel, int number) {
    const int row = quotient<View::inside_columns>(pixel), column = remainder<View::inside_columns>(pixel);
    store((row + View::first_row) * View::columns + column + View::first_column, number,
          rounded_eight(View::pixel_four(from, image, row, column, 8 * number),
                        View::pixel_four(from, image, row, column, 8 * number + 4)));
  });
}

/// An image with many channels: for each 32 of them a plane. Thirty-two terms are those of a tap and a plane.
template <class Product>
class image_of_planes {
  using view = typename Product::view;
  static constexpr int pixels = view::rows * view::columns, planes = view::channels / 32;
  static_assert(view::channels % 32 == 0);
  /// Threads side by side load terms of pixels that are `step` apart. Pixels have as much room as puts what eight threads load
  /// into different banks.
  static constexpr int step = view::step, units_of_pixel = step % 2 == 1 ? 4 : step % 4 == 2 ? 6 : step % 8 == 4 ? 5 : 4;
  eight_terms units_[planes * pixels * units_of_pixel];

  static constexpr int place_of(int plane, int pixel, int number) { return (plane * pixels + pixel) * units_of_pixel + number; }

 public:
  static constexpr int thirty_twos = Product::taps * planes, halves = 2;

  STRATA_DEVICE void clear(int t, int threads) {
    for (int i = t; i < planes * pixels * units_of_pixel; i += threads) units_[i] = {};
  }
  STRATA_DEVICE void keep(const Product& product, int image, int t, int threads) {
    for_each_inside_eight<view>(product.from, image, t, threads, [&](int pixel, int number, const eight_terms& terms) {
      units_[place_of(number / 4, pixel, number % 4)] = terms;
    });
  }
  /// Those that thread `number` of four has, of the pixel of a row.
  STRATA_DEVICE const eight_terms& terms(int thirty_two, int place, int number) const {
    return units_[place_of(thirty_two % planes, place + view::offset(thirty_two / planes), number)];
  }
  /// Calls store(thirty_two, column, pair, word) for all weights.
  template <class Store>
  STRATA_DEVICE static void for_each_weight(const Product& product, int t, int threads, const Store& store) {
    constexpr int columns = Product::columns;
    // A thread fetches four columns or four terms, whichever are neighbours in memory.
    if constexpr (Product::columns_are_neighbours) {
      constexpr int groups = columns / 4;
      for (int i = t; i < thirty_twos * pairs_of_thirty_two * groups; i += threads) {
        const int n = i % groups * 4, pair = i / groups;
        const four<float> first = product.b_four(0, 2 * pair, n), second = product.b_four(0, 2 * pair + 1, n);
        for (int j = 0; j < 4; ++j) store(pair / 16, n + j, pair % 16, rounded_pair(first.at[j], second.at[j]));
      }
    } else {
      for (int i = t; i < thirty_twos * 8 * columns; i += threads) {
        const int pair = i % 8 * 2, n = i / 8 % columns, thirty_two = i / 8 / columns;
        const rounded_four terms = rounded(product.b_four(0, term_index<32>{thirty_two * 32, 2 * pair}, n));
        for (int k = 0; k < 2; ++k) store(thirty_two, n, pair + k, terms.words[k]);
      }
    }
  }
};

/// An image with few channels: each element as a pair with the next one of its row. The terms of a window are runs of neighbours,
/// one for each of its rows. Where a run has an odd number of terms, the second of its last pair is zero.
template <class Product>
class image_of_pairs {
  using view = typename Product::view;
  static constexpr int row_elements = view::columns * view::channels, run = view::window_columns * view::channels,
                       pairs_of_run = (run + 1) / 2, pairs = view::window_rows * pairs_of_run;
  std::uint32_t pairs_[view::rows * row_elements];

  /// Which pair of the window is number `number` of thirty-two terms; -1: none, which is zero.
  static constexpr int pair_of(int thirty_two, int number) {
    const int pair = halves == 2      ? thirty_two * pairs_of_thirty_two + number
                     : number % 4 < 2 ? number / 4 * 2 + number % 4
                                      : pairs;
    return pair < pairs ? pair : -1;
  }

 public:
  static constexpr int thirty_twos = (pairs + pairs_of_thirty_two - 1) / pairs_of_thirty_two,
                       halves = pairs <= pairs_of_thirty_two / 2 ? 1 : 2;

  STRATA_DEVICE void clear(int, int) {}
  STRATA_DEVICE void keep(const Product& product, int image, int t, int threads) {
    for (int i = t; i < view::rows * row_elements; i += threads) {
      const int row = quotient<row_elements>(i), element = remainder<row_elements>(i);
      pairs_[i] = rounded_pair(view::element(product.from, image, row, element),
                               element + 1 < row_elements ? view::element(product.from, image, row, element + 1) : 0.f);
    }
  }
  STRATA_DEVICE eight_terms terms(int thirty_two, int place, int number) const {
    eight_terms all{};
    for (int k = 0; k < 2 * halves; ++k) {
      const int pair = pair_of(thirty_two, 4 * number + k), run_of_pair = quotient<pairs_of_run>(std::max(pair, 0)),
                within = remainder<pairs_of_run>(std::max(pair, 0));
      const std::uint32_t mask = pair < 0 ? 0 : run % 2 == 1 && within + 1 == pairs_of_run ? 0xffff : 0xffff'ffff;
      const int offset = run_of_pair * view::row_step * view::channels + 2 * within;
      all.at[k] = pairs_[place * view::channels + offset] & mask;
    }
    return all;
  }
  template <class Store>
  STRATA_DEVICE static void for_each_weight(const Product& product, int t, int threads, const Store& store) {
    constexpr int groups = Product::columns / 4;
    static_assert(Product::columns_are_neighbours);
    for (int i = t; i < thirty_twos * pairs_of_thirty_two * groups; i += threads) {
      const int n = i % groups * 4, number = i / groups, pair = pair_of(number / 16, number % 16);
      const int first = pair / pairs_of_run * run + pair % pairs_of_run * 2;
      const bool has_second = pair % pairs_of_run * 2 + 1 < run;
      const four<float> terms[2] = {pair < 0 ? four<float>{} : product.b_four(0, first, n),
                                    pair < 0 || !has_second ? four<float>{} : product.b_four(0, first + 1, n)};
      for (int j = 0; j < 4; ++j) store(number / 16, n + j, number % 16, rounded_pair(terms[0].at[j], terms[1].at[j]));
    }
  }
};

template <class Product>
struct kept_image {
  using type = image_of_planes<Product>;
};
template <class Product>
  requires(Product::view::channels % 32 != 0)
struct kept_image<Product> {
  using type = image_of_pairs<Product>;
};
}  // namespace detail

}  // namespace strata::machine
