// The sparse gradients of convolution + relu + max pooling with bfloat16 products: two living outputs form a pair.
#pragma once
#include <bit>
#include <cstdint>
#include <strata/cpu/convolution/frame.hpp>
#include <strata/cpu/convolution/pooled_image.hpp>
#include <strata/cpu/convolution/pooled_masks.hpp>
#include <strata/cpu/products/image_product.hpp>
#include <strata/cpu/simd/bf16.hpp>

namespace strata::simd {

/// Two living outputs: the one that is added first, the next one, and whether there is a next one.
struct living_pair {
  int one, two;
  bool whole;
};
/// Calls f(living_pair) for the bits of a word, in order.
template <class F>
STRATA_INLINE inline void each_living_pair(std::uint64_t bits, F&& f) {
  while (bits != 0) {
    const std::uint64_t rest = bits & (bits - 1);
    f(living_pair{std::countr_zero(bits), std::countr_zero(rest != 0 ? rest : bits), rest != 0});
    bits = rest & (rest - 1);
  }
}
/// The gradients of two outputs as a pair. The upper half is added first. An output without a partner is paired with itself, with
/// weight 0.
STRATA_INLINE inline bf16_pairs gradient_pair(std::uint16_t one, std::uint16_t two, bool whole) {
  return broadcast_pair(std::uint32_t(one) << 16 | (two & (0u - std::uint32_t(whole))));
}
/// sum += g.second * one + g.first * two for 2 * lanes neighbours, in the order of B::place.
template <class B>
STRATA_INLINE inline void add_pair(vec<float> (&sum)[2], const std::uint16_t* one, const std::uint16_t* two, bf16_pairs g) {
  bf16_pairs a = load_pairs(reinterpret_cast<const bf16_pair*>(two)), b = load_pairs(reinterpret_cast<const bf16_pair*>(one));
#if !defined(__clang__)
  keep(a), keep(b);
#endif
  bf16_pairs low, high;
  B::interleave(a, b, low, high);
  sum[0] = B::dot(sum[0], g, low);
  sum[1] = B::dot(sum[1], g, high);
#if defined(__clang__) && defined(STRATA_AVX512)
  asm volatile("" : "+v"(sum[0]), "+v"(sum[1]) : : "memory");  // or it loads for a whole block first and spills the sums
#endif
}

/// The weight gradient of some samples, whose rounded x and dy lie one after the other. `image` has the windows of all of them;
/// `offset` holds winner_offsets of their winners.
/// A block has G groups of 2 * lanes neighbours in Rows kernel rows, each group in the order of B::place.
template <class B, int Rows, int G>
[[gnu::noinline]] void mixed_pooled_weights(const std::uint16_t* x, const std::uint16_t* dy, const std::int32_t* offset,
                                            const std::uint32_t* alive, float* block, int row_size, int filter_size,
                                            pooled_image image) {
  constexpr int L = lanes<float>, width = 2 * L;
  const std::ptrdiff_t filters = image.filters;
  const int words = (image.windows + 31) / 32;
  for (int f = 0; f < image.filters; ++f, block += filter_size) {
    vec<float> sum[Rows * G][2];
    in_grid<Rows, G>(block, width, row_size, [&](auto i, const float* at) STRATA_INLINE {
      sum[i][0] = load(at), sum[i][1] = load(at + L);
      __builtin_prefetch(at + filter_size, 1);  // hides the latency of the second-level cache with the work of this filter
      __builtin_prefetch(at + filter_size + L, 1);
    });
    for (int word = 0; word < words; word += 2) {
      std::uint64_t bits = alive[word * filters + f];
      if (word + 1 < words) bits |= std::uint64_t(alive[(word + 1) * filters + f]) << 32;
      const std::ptrdiff_t first = word * 32 * filters + f;
      each_living_pair(bits, [&](living_pair p) STRATA_INLINE {
        const std::ptrdiff_t one = first + p.one * filters, two = first + p.two * filters;
        const bf16_pairs both = gradient_pair(dy[one], dy[two], p.whole);
        const std::uint16_t *x_one = x + offset[one], *x_two = x + offset[two];
        STRATA_UNROLL
        for (int row = 0; row < Rows; ++row) {
          asm("" : "+r"(x_one), "+r"(x_two));  // as in in_grid
          STRATA_UNROLL
          for (int g = 0; g < G; ++g) add_pair<B>(sum[row * G + g], x_one + g * width, x_two + g * width, both);
          x_one += image.x_row, x_two += image.x_row;
        }
      });
    }
    in_grid<Rows, G>(block, width, row_size,
                     [&](auto i, float* at) STRATA_INLINE { store(at, sum[i][0]), store(at + L, sum[i][1]); });
  }
}

/// The input gradient of 2 * lanes channels, added to dx: pixels, dx_pixel elements apart. Weights: [filter][tap][2 * lanes],
/// stored so that interleaving two of them gives the natural order.
template <class B, int KH, int KW>
[[gnu::noinline]] void mixed_pooled_input(const std::uint16_t* w, const std::uint16_t* dy, const std::uint64_t* alive, float* dx,
                                          int dx_width, const pooled_image& image) {
  constexpr int L = lanes<float>, pixel = 2 * L, filter = KH * KW * pixel, width = KW + 1;
  constexpr bool patch = 2 * KH * width + 5 <= registers;  // all but one row of the pixels under a window stay in registers
  const int words = filter_words(image.filters);
  const std::ptrdiff_t dx_row = std::ptrdiff_t(dx_width) * pixel;
  const auto each_pair = [&](int q, auto&& f) STRATA_INLINE {
    for (int word = 0; word < words; ++word) {
      const std::uint16_t *const from = w + std::ptrdiff_t(word) * 64 * filter, *const g = dy + word * 64;
      each_living_pair(alive[q * words + word], [&](living_pair p) STRATA_INLINE {
        f(from + p.one * filter, from + p.two * filter, gradient_pair(g[p.one], g[p.two], p.whole));
      });
    }
  };
  for (int window = 0; window < image.windows; ++window, dy += image.filters, alive += 4 * words) {
    float* const corner = dx + (window / image.across * 2) * dx_row + window % image.across * 2 * pixel;
    if constexpr (patch) {
      vec<float> sum[KH * width][2];
      const auto load_row = [&](int row, int to) STRATA_INLINE {
        STRATA_UNROLL
        for (int i = 0; i < 2 * width; ++i) sum[to * width + i / 2][i % 2] = load(corner + row * dx_row + i * L);
      };
      const auto store_row = [&](int row, int from) STRATA_INLINE {
        STRATA_UNROLL
        for (int i = 0; i < 2 * width; ++i) store(corner + row * dx_row + i * L, sum[from * width + i / 2][i % 2]);
      };
      STRATA_UNROLL
      for (int row = 0; row < KH; ++row) load_row(row, row);
      unroll<2>([&](auto down) STRATA_INLINE {
        if constexpr (down == 1) {
          store_row(0, 0);
          STRATA_UNROLL
          for (int i = 0; i < 2 * (KH - 1) * width; ++i) sum[i / 2][i % 2] = sum[i / 2 + width][i % 2];
          load_row(KH, KH - 1);
        }
        unroll<2>([&](auto right) STRATA_INLINE {
          each_pair(2 * down + right, [&](const std::uint16_t* one, const std::uint16_t* two, bf16_pairs g) STRATA_INLINE {
            STRATA_UNROLL
            for (int t = 0; t < KH * KW; ++t)
              add_pair<B>(sum[t / KW * width + t % KW + right], one + t * pixel, two + t * pixel, g);
          });
        });
      });
      STRATA_UNROLL
      for (int row = 0; row < KH; ++row) store_row(row + 1, row);
    } else {
      for (int q = 0; q < 4; ++q)
        for (int row = 0; row < KH; ++row) {
          float* const to = corner + (q / 2 + row) * dx_row + q % 2 * pixel;
          vec<float> sum[KW][2];
          STRATA_UNROLL
          for (int i = 0; i < 2 * KW; ++i) sum[i / 2][i % 2] = load(to + i * L);
          each_pair(q, [&](const std::uint16_t* one, const std::uint16_t* two, bf16_pairs g) STRATA_INLINE {
            STRATA_UNROLL
            for (int t = 0; t < KW; ++t) add_pair<B>(sum[t], one + (row * KW + t) * pixel, two + (row * KW + t) * pixel, g);
          });
          STRATA_UNROLL
          for (int i = 0; i < 2 * KW; ++i) store(to + i * L, sum[i / 2][i % 2]);
        }
    }
  }
}

/// Converts each group of 2 * lanes elements from the order of B::place to the natural one, or back.
template <class B, bool Back>
[[gnu::noinline]] void order_groups(float* p, int n) {
  constexpr int L = lanes<float>;
  constexpr auto from = [](int i) {
    if (Back) return B::place(i);
    int k = 0;
    while (B::place(k) != i) ++k;
    return k;
  };
  for (int i = 0; i < n; i += 2 * L, p += 2 * L) {
    const vec<float> low = load(p), high = load(p + L);
    [&]<int... I>(std::integer_sequence<int, I...>) STRATA_INLINE {
      store(p, shuffled<vec<float>>(low, high, std::integer_sequence<int, from(I)...>{}));
      store(p + L, shuffled<vec<float>>(low, high, std::integer_sequence<int, from(L + I)...>{}));
    }(std::make_integer_sequence<int, L>{});
  }
}

/// The weights of mixed_pooled_input: [2 * lanes channels][filter][tap][2 * lanes], with zeros after the last channel. `rows`: 2
/// * lanes * F elements of scratch.
template <class B>
[[gnu::noinline]] void mixed_pooled_input_weights(const float* w, int taps, int C, int F, std::uint16_t* to, float* rows) {
  constexpr int width = 2 * lanes<float>;
  for (int c = 0; c < C; c += width, to += std::ptrdiff_t(F) * taps * width)
    for (int t = 0; t < taps; ++t) {
      transpose(w + (std::ptrdiff_t(t) * C + c) * F, F, rows, width, std::min(width, C - c), F, true);
      if (C - c <= lanes<float>)
        for (int f = 0; f < F; ++f) store(rows + f * width + lanes<float>, vec<float>{});
      order_groups<B, false>(rows, F * width);
      for (int f = 0; f < F; ++f)
        round_row<B>(rows + f * width, width, reinterpret_cast<bf16_pair*>(to + (std::ptrdiff_t(f) * taps + t) * width));
    }
}

/// Copies the image from a frame of pixels x (2 * lanes) into n channels of dx.
[[gnu::noinline]] inline void take_groups_from_frame(const float* from, const frame& f, float* dx, int channels, int n,
                                                     bool add) {
  constexpr int L = lanes<float>;
  for (int i = 0; i < f.height; ++i) {
    const float* line = from + (std::ptrdiff_t(f.top + i) * f.outer_width + f.left) * 2 * L;
    for (int j = 0; j < f.width; ++j, line += 2 * L, dx += channels)
      for (int k = 0; k < n; k += L) {
        const int some = n - k < L ? n - k : L;
        store_first(dx + k, add ? load_first(dx + k, some) + load(line + k) : load(line + k), some);
      }
  }
}

}  // namespace strata::simd
