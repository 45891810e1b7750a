// Convolution + relu + max pooling of 2x2 windows as one kernel: only outputs that a window reads are computed, and backward
// follows the winners that relu left alive.
#pragma once
#include <algorithm>
#include <bit>
#include <cstring>
#include <strata/cpu/convolution.hpp>
#include <strata/cpu/pooled_masks.hpp>
#include <strata/cpu/winograd.hpp>
#include <strata/layers/max_pool2d.hpp>

namespace strata {

namespace simd {

/// relu(max of the window) and the winner, for n filters. The first of equal ones wins.
template <class T, bool Whole = true>
STRATA_INLINE inline void store_window(const vec<T> (&pixel)[4], T* y, std::int8_t* winner, int n = lanes<T>) {
  vec<T> top = pixel[0];
  integers<T> id{};
  unroll<3>([&](auto q) STRATA_INLINE {
    const integers<T> larger = (pixel[q + 1] > top) | (pixel[q + 1] != pixel[q + 1]);  // nan wins: no layer hides it
    top = larger ? pixel[q + 1] : top, id = larger ? broadcast_integer<T>(q + 1) : id;
  });
  top = top < vec<T>{} ? vec<T>{} : top;
  id = top > vec<T>{} ? id : broadcast_integer<T>(dead);
  if constexpr (Whole) {
    store(y, top);
    store_bytes<T>(winner, id);
  } else {
    store_first(y, top, n);
    const auto bytes = __builtin_convertvector(id, typename detail::vector_of<T>::bytes);
    std::memcpy(winner, &bytes, static_cast<std::size_t>(n));
  }
}

/// What the kernels below know of a sample: windows in rows of `across`, filters, the row strides of x and of a pixel.
struct pooled_image {
  int windows, across, filters, channels;
  std::ptrdiff_t x_row;

  constexpr row_grid window_grid() const { return {2 * channels, across, 2 * x_row}; }
};

/// Direct forward of a column panel: each row of `product` is a window, its four pixels are rows of the register block.
template <class T, int Windows, int V, int Last>
[[gnu::noinline]] void pooled_panel(const product<T>& p, const pooled_image& image, std::int8_t* winner, int column) {
  constexpr int L = lanes<T>, R = 4 * Windows;
  const std::ptrdiff_t right = image.channels, down = image.x_row;
  const T* const bias = p.bias ? p.bias + column : detail::zeros<T>;
  detail::row_walk walk{p.a_rows};
  for (int window = 0; window < p.rows; window += Windows) {
    const T* corner[Windows];
    const T* a[R];
    detail::next_rows(corner, p.a, walk, p.rows - window);
    unroll<R>([&](auto r) STRATA_INLINE { a[r] = corner[r / 4] + (r % 4 / 2 == 1 ? down : 0) + (r % 2 == 1 ? right : 0); });
    vec<T> sum[R][V];
    unroll<R * V>([&](auto i) STRATA_INLINE { sum[i / V][i % V] = load<i % V + 1 == V ? Last : L>(bias + i % V * L); });
    detail::accumulate<R, V, Last>(sum, a, p, p.b + column);
    unroll<Windows * V>([&](auto i) STRATA_INLINE {
      constexpr int w = i / V, v = i % V;
      if (window + w < p.rows) {
        const std::ptrdiff_t to = std::ptrdiff_t(window + w) * image.filters + column + v * L;
        const vec<T> pixel[4] = {sum[4 * w][v], sum[4 * w + 1][v], sum[4 * w + 2][v], sum[4 * w + 3][v]};
        store_window<T, (v + 1 < V || Last == L)>(pixel, p.c + to, winner + to, Last);
      }
    });
  }
}
constexpr int windows_of(int vectors) { return std::max(1, std::min(2, ((registers - 1) / vectors - 1) / 4)); }

template <int F, class T>
void pooled_product(const product<T>& p, const pooled_image& image, std::int8_t* winner) {
  using cut = panels<T, F>;
  constexpr int L = lanes<T>, each = cut::each, rest = cut::rest;
  for (int i = 0; i + 1 < cut::count; ++i) pooled_panel<T, windows_of(each), each, L>(p, image, winner, i * each * L);
  pooled_panel<T, windows_of(rest), rest, cut::last_lanes>(p, image, winner, (cut::count - 1) * each * L);
}

/// One input channel: the weights stay in registers, and each pixel of the (KH + 1) x (KW + 1) patch under a window is
/// broadcast once for all the (pixel, tap) pairs it belongs to.
template <class T, int KH, int KW, int V, int Last>
[[gnu::noinline]] void one_channel_forward(const T* x, const T* w, const T* bias, T* y, std::int8_t* winner,
                                           const pooled_image& image) {
  constexpr int L = lanes<T>, taps = KH * KW, width = KW + 1;
  constexpr bool resident = taps * V + 4 * V + 1 <= registers;
  const auto weight = [&](int t, auto v) STRATA_INLINE { return load<v + 1 == V ? Last : L>(w + t * image.filters + v * L); };
  vec<T> held[resident ? taps : 1][V], b[V];
  if constexpr (resident)
    unroll<taps>([&](auto t) STRATA_INLINE {
      unroll<V>([&](auto v) STRATA_INLINE {
        held[t][v] = weight(t, v);
        keep(held[t][v]);
      });
    });
  unroll<V>([&](auto v) STRATA_INLINE { b[v] = bias ? load<v + 1 == V ? Last : L>(bias + v * L) : vec<T>{}; });
  for (int top = 0, window = 0; window < image.windows; ++top)
    for (int column = 0; column < image.across; ++column, ++window) {
      const T* const corner = x + 2 * top * image.x_row + 2 * column;
      const T* line[KH + 1];
      unroll<KH + 1>([&](auto i) STRATA_INLINE { line[i] = corner + i * image.x_row; });
      vec<T> sum[V][4];
      unroll<4 * V>([&](auto i) STRATA_INLINE { sum[i / 4][i % 4] = b[i / 4]; });
      // Taps outermost, so that each sum has the order of all other kernels.
      unroll<(KH + 1) * width>([&](auto i) STRATA_INLINE {
        vec<T> pixel = broadcast(line[i / width][i % width]);
        keep(pixel);
        unroll<4>([&](auto q) STRATA_INLINE {
          constexpr int kh = i / width - q / 2, kw = i % width - q % 2;
          if constexpr (kh >= 0 && kh < KH && kw >= 0 && kw < KW)
            unroll<V>([&](auto v) STRATA_INLINE {
              if constexpr (resident)
                sum[v][q] = pixel * held[kh * KW + kw][v] + sum[v][q];
              else
                sum[v][q] = pixel * weight(kh * KW + kw, v) + sum[v][q];
            });
        });
      });
      unroll<V>([&](auto v) STRATA_INLINE {
        const std::ptrdiff_t to = std::ptrdiff_t(window) * image.filters + v * L;
        store_window<T, (v + 1 < V || Last == L)>(sum[v], y + to, winner + to, Last);
      });
    }
}

/// Its weight and bias gradients (db: or null) for one vector of filters: every lane follows its own winner.
template <class T, int KH, int KW, int Lanes>
[[gnu::noinline]] void one_channel_weights(const T* x, const T* dy, const std::int8_t* winner, T* dw, T* db, bool add,
                                           const pooled_image& image) {
  constexpr int taps = KH * KW, width = KW + 1;
  vec<T> sum[taps], bias_sum = db && add ? load<Lanes>(db) : vec<T>{};
  unroll<taps>([&](auto t) STRATA_INLINE { sum[t] = add ? load<Lanes>(dw + t * image.filters) : vec<T>{}; });
  for (int top = 0, window = 0; window < image.windows; ++top)
    for (int column = 0; column < image.across; ++column, ++window) {
      const T* const corner = x + 2 * top * image.x_row + 2 * column;
      const std::ptrdiff_t at = std::ptrdiff_t(window) * image.filters;
      const vec<T> g = load<Lanes>(dy + at);
      integers<T> id = load_bytes<T, Lanes>(winner + at);
      const vec<T> alive = id < broadcast_integer<T>(dead) ? g : vec<T>{};
      bias_sum += alive;
#if defined(STRATA_AVX512)
      if constexpr (KH == 3 && KW == 3 && sizeof(T) == 4) {  // the patch is one vector, from which every lane picks its pixel
        __m512 patch = _mm512_castps128_ps512(_mm_loadu_ps(corner));
        patch = _mm512_mask_broadcast_f32x4(patch, 0x00f0, _mm_loadu_ps(corner + image.x_row));
        patch = _mm512_mask_broadcast_f32x4(patch, 0x0f00, _mm_loadu_ps(corner + 2 * image.x_row));
        patch = _mm512_mask_broadcast_f32x4(patch, 0xf000, _mm_loadu_ps(corner + 3 * image.x_row));
        id = id + (id & broadcast_integer<T>(2));  // 0 ... 3 -> 0, 1, 4, 5
        unroll<9>([&](auto t) STRATA_INLINE {
          const __m512i lane = (__m512i)(id + broadcast_integer<T>(t / 3 * 4 + t % 3));
          sum[t] = (vec<T>)_mm512_maskz_permutexvar_ps(__mmask16(0xffff), lane, patch) * alive + sum[t];
        });
        continue;
      }
#endif
      vec<T> part[4];
      unroll<4>([&](auto q) STRATA_INLINE { part[q] = id == broadcast_integer<T>(q) ? g : vec<T>{}; });
      unroll<(KH + 1) * width>([&](auto i) STRATA_INLINE {
        vec<T> pixel = broadcast(corner[i / width * image.x_row + i % width]);
        keep(pixel);
        unroll<4>([&](auto q) STRATA_INLINE {
          constexpr int kh = i / width - q / 2, kw = i % width - q % 2;
          if constexpr (kh >= 0 && kh < KH && kw >= 0 && kw < KW) sum[kh * KW + kw] = pixel * part[q] + sum[kh * KW + kw];
        });
      });
    }
  unroll<taps>([&](auto t) STRATA_INLINE { store<Lanes>(dw + t * image.filters, sum[t]); });
  if (db) store<Lanes>(db, bias_sum);
}

/// db[f] (+)= dy of the windows where f is alive, for one vector of filters.
template <class T, int Lanes>
[[gnu::noinline]] void pooled_bias(const T* dy, const std::int8_t* winner, int windows, int filters, T* db, bool add) {
  vec<T> sum = add ? load<Lanes>(db) : vec<T>{};
  for (int i = 0; i < windows; ++i, dy += filters, winner += filters)
    sum += load_bytes<T, Lanes>(winner) < broadcast_integer<T>(dead) ? load<Lanes>(dy) : vec<T>{};
  store<Lanes>(db, sum);
}

/// Sparse weight gradient of one sample: for each filter, the Rows x V vectors of a block of its kernel stay in registers
/// while its living windows pass. `block` points at the block of filter 0, in a layout [filter][kernel row][row_size].
template <class T, int Rows, int V, int Last>
[[gnu::noinline]] void pooled_weights(const T* x, const T* dy, const std::int8_t* winner, const std::uint32_t* alive,
                                      const int* corner, T* block, int row_size, int filter_size, const pooled_image& image) {
  constexpr int L = lanes<T>;
  const std::ptrdiff_t x_row = image.x_row, pixel[4] = {0, image.channels, x_row, x_row + image.channels};
  const int words = (image.windows + 31) / 32;
  for (int f = 0; f < image.filters; ++f, block += filter_size) {
    vec<T> sum[Rows * V];
    unroll<Rows * V>([&](auto i) STRATA_INLINE {
      sum[i] = load(block + i / V * row_size + i % V * L);
      __builtin_prefetch(block + filter_size + i / V * row_size + i % V * L, 1);  // hides L2 behind this filter
    });
    for (int word = 0; word < words; ++word)
      for (std::uint32_t bits = alive[word * image.filters + f]; bits != 0; bits &= bits - 1) {
        const int window = word * 32 + std::countr_zero(bits), at = window * image.filters + f;
        vec<T> g = broadcast(dy[at]);
        const T* from = x + corner[window] + pixel[int(winner[at])];
        unroll<Rows * V>([&](auto i) STRATA_INLINE {
          sum[i] = load<i % V + 1 == V ? Last : L>(from + i / V * x_row + i % V * L) * g + sum[i];
        });
      }
    unroll<Rows * V>([&](auto i) STRATA_INLINE { store(block + i / V * row_size + i % V * L, sum[i]); });
  }
}

/// Sparse input gradient of one vector of channels, added to a frame of pixels x lanes. Weights: [filter][tap][lanes].
template <class T, int KH, int KW>
[[gnu::noinline]] void pooled_input(const T* w, const T* dy, const std::uint64_t* alive, T* dx, int dx_width,
                                    const pooled_image& image) {
  constexpr int L = lanes<T>, taps = KH * KW, width = KW + 1;
  constexpr bool patch = (KH + 1) * width + 2 <= registers;  // all pixels under a window stay in registers
  constexpr int rows = taps + 2 <= registers ? KH : 1;       // or those under one kernel position, or under one of its rows
  const int words = filter_words(image.filters);
  const auto each_filter = [&](const std::uint64_t* bits, auto&& f) STRATA_INLINE {
    for (int word = 0; word < words; ++word)
      for (std::uint64_t b = bits[word]; b != 0; b &= b - 1) f(word * 64 + std::countr_zero(b));
  };
  for (int window = 0; window < image.windows; ++window, dy += image.filters, alive += 4 * words) {
    T* const corner = dx + std::ptrdiff_t(window / image.across * 2 * dx_width + window % image.across * 2) * L;
    if constexpr (patch) {
      vec<T> sum[(KH + 1) * width];
      unroll<(KH + 1) * width>([&](auto i) STRATA_INLINE { sum[i] = load(corner + (i / width * dx_width + i % width) * L); });
      unroll<4>([&](auto q) STRATA_INLINE {
        each_filter(alive + q * words, [&](int f) STRATA_INLINE {
          const T* from = w + std::ptrdiff_t(f) * taps * L;
          vec<T> g = broadcast(dy[f]);
          unroll<taps>([&](auto t) STRATA_INLINE {
            constexpr int i = (t / KW + q / 2) * width + t % KW + q % 2;
            sum[i] = load(from + t * L) * g + sum[i];
          });
        });
      });
      unroll<(KH + 1) * width>([&](auto i) STRATA_INLINE { store(corner + (i / width * dx_width + i % width) * L, sum[i]); });
    } else {
      for (int q = 0; q < 4; ++q)
        for (int row = 0; row < KH; row += rows) {
          T* const to = corner + std::ptrdiff_t((q / 2 + row) * dx_width + q % 2) * L;
          vec<T> sum[rows * KW];
          unroll<rows * KW>([&](auto t) STRATA_INLINE { sum[t] = load(to + (t / KW * dx_width + t % KW) * L); });
          each_filter(alive + q * words, [&](int f) STRATA_INLINE {
            const T* from = w + (std::ptrdiff_t(f) * taps + row * KW) * L;
            vec<T> g = broadcast(dy[f]);
            unroll<rows * KW>([&](auto t) STRATA_INLINE { sum[t] = load(from + t * L) * g + sum[t]; });
          });
          unroll<rows * KW>([&](auto t) STRATA_INLINE { store(to + (t / KW * dx_width + t % KW) * L, sum[t]); });
        }
    }
  }
}

/// Takes the image out of a frame of pixels x lanes, into n channels of dx.
template <class T>
[[gnu::noinline]] void take_from_frame(const T* from, const frame& f, T* dx, int channels, int n, bool add) {
  constexpr int L = lanes<T>;
  for (int i = 0; i < f.height; ++i) {
    const T* line = from + (std::ptrdiff_t(f.top + i) * f.outer_width + f.left) * L;
    for (int j = 0; j < f.width; ++j, line += L, dx += channels) {
      if (n == L)
        store(dx, add ? load(dx) + load(line) : load(line));
      else
        store_first(dx, add ? load_first(dx, n) + load(line) : load(line), n);
    }
  }
}

/// The weights for pooled_input: [vector of channels][filter][tap][lanes], zeros behind the last channel.
template <class T>
[[gnu::noinline]] void pooled_input_weights(const T* w, int taps, int C, int F, T* to) {
  constexpr int L = lanes<T>;
  for (int c = 0; c < C; c += L, to += std::ptrdiff_t(F) * taps * L)
    for (int t = 0; t < taps; ++t)
      transpose(w + (std::ptrdiff_t(t) * C + c) * F, F, to + t * L, std::ptrdiff_t(taps) * L, std::min(L, C - c), F, true);
}

}  // namespace simd

/// The fusion takes what nearly all such networks have: no strides, dilation or groups, and pooling in steps of 2x2.
template <conv_settings S, pool_settings Pool>
concept pools_in_registers = S.stride_height == 1 && S.stride_width == 1 && S.dilation_height == 1 && S.dilation_width == 1 &&
                             S.groups == 1 && S.kernel_height <= 11 && S.kernel_width <= 11 && Pool.window_height == 2 &&
                             Pool.window_width == 2 && (Pool.stride_height == 0 || Pool.stride_height == 2) &&
                             (Pool.stride_width == 0 || Pool.stride_width == 2) && !Pool.same;

/// saved: the winner of each window as one byte.
template <conv_settings S, pool_settings Pool, class P, shape In>
  requires pools_in_registers<S, Pool>
struct kernel<cpu, fused<convolution<S>, relu, max_pooling<Pool>>, P, In> : kernel_defaults {
  using T = typename P::value_type;
  using at = simd::convolution_geometry<S, In>;
  static constexpr int L = simd::lanes<T>, C = at::C, F = at::F, KH = at::KH, KW = at::KW, taps = at::taps;
  static constexpr int windows_down = at::OH / 2, windows_across = at::OW / 2, windows = windows_down * windows_across,
                       out_size = windows * F;
  static constexpr simd::pooled_image image{windows, windows_across, F, C, at::x_row};

  static constexpr int numbers(int bytes) { return simd::aligned_size<T>((bytes + int(sizeof(T)) - 1) / int(sizeof(T))); }
  static constexpr int saved = (out_size + int(sizeof(T)) - 1) / int(sizeof(T));

  // Decided by the shape alone, so that every target computes the same bits.
  static constexpr bool one_channel = C == 1 && KH <= 5 && KW <= 5;
  static constexpr bool winograd = KH == 3 && KW == 3 && C >= 16 && F >= 16;
  static constexpr bool lanes_follow_winners = C == 1 && taps + 7 <= simd::registers;

  // Winograd works on as many windows at a time as the register block has rows.
  using cut = simd::panels<T, simd::padded<T>(F)>;
  static constexpr int tiles = std::min(8, simd::block_of(windows, cut::each).rows), v_row = simd::padded<T>(C),
                       m_row = simd::padded<T>(F);
  // The transposed weight gradient, [filter][kernel row][row_size], where windows are sparse.
  static constexpr int row = KW * C, row_size = simd::padded<T>(row), filter_size = KH * row_size;

  static constexpr int for_x = at::x.needed() ? simd::aligned_size<T>(at::x.pixels() * C) : 0;
  static constexpr int for_forward = winograd ? 16 * tiles * (v_row + m_row) : 0;
  static constexpr int for_weights =
      lanes_follow_winners ? 0 : simd::aligned_size<T>(F * filter_size) + numbers((windows + 31) / 32 * F * 4);
  static constexpr int for_input = at::x.pixels() * L;
  static constexpr int scratch = for_x + std::max(for_forward, std::max(for_weights, simd::aligned_size<T>(for_input)));
  static constexpr int scratch_per_sample = numbers(windows * 4 * simd::filter_words(F) * 8);
  static constexpr int input_weights = v_row * F * taps, derived = input_weights + (winograd ? 16 * C * m_row : 0);

  static void derive(const T* const* w, T* derived) {
    simd::pooled_input_weights(w[0], taps, C, F, derived);
    if constexpr (winograd) simd::winograd_weights(w[0], C, F, derived + input_weights);
  }

  static std::int8_t* winners(const operands<T>& o, int n) {
    return reinterpret_cast<std::int8_t*>(o.saved + std::ptrdiff_t(n) * saved);
  }
  static const T* framed(const operands<T>& o, int n) {
    const T* x = o.x[0] + std::ptrdiff_t(n) * at::in_size;
    if constexpr (!at::x.needed()) return x;
    simd::put_into_frame(x, at::x, C, o.scratch);
    return o.scratch;
  }

  static void forward(const operands<T>& o) {
    const T* const bias = S.bias ? o.w[1] : nullptr;
    for (int n = 0; n < o.count; ++n) {
      const T* x = framed(o, n);
      T* y = o.y + std::ptrdiff_t(n) * out_size;
      if constexpr (winograd)
        forward_winograd(x, o.derived + input_weights, bias, y, winners(o, n), o.scratch + for_x);
      else if constexpr (one_channel)
        forward_one_channel(x, o.w[0], bias, y, winners(o, n));
      else
        simd::pooled_product<F>(
            simd::product<T>{
                windows, x, image.window_grid(), at::run_at.begin(), at::run_count, at::run_length, 1, o.w[0], F, y, {F}, bias},
            image, winners(o, n));
    }
  }

  static void forward_one_channel(const T* x, const T* w, const T* bias, T* y, std::int8_t* winner) {
    constexpr int V = simd::registers == 32 ? 2 : 1, last = (F - 1) % (V * L) + 1;
    for (int f = 0; f + V * L < F; f += V * L)
      simd::one_channel_forward<T, KH, KW, V, L>(x, w + f, bias ? bias + f : nullptr, y + f, winner + f, image);
    constexpr int f = F - last;
    simd::one_channel_forward<T, KH, KW, (last + L - 1) / L, (last - 1) % L + 1>(x, w + f, bias ? bias + f : nullptr, y + f,
                                                                                 winner + f, image);
  }

  static void forward_winograd(const T* x, const T* u, const T* bias, T* y, std::int8_t* winner, T* scratch) {
    T *const v = scratch, *const m = scratch + 16 * tiles * v_row;
    for (int first = 0; first < windows; first += tiles) {
      for (int t = 0; t < tiles; ++t) {
        const int window = std::min(first + t, windows - 1);
        simd::winograd_input(x + (window / windows_across * at::x_row + window % windows_across * C) * 2, at::x_row, C,
                             v + t * v_row, tiles * v_row);
      }
      constexpr int whole = (cut::count - 1) * cut::each * L;
      if constexpr (cut::each == cut::rest) {
        simd::winograd_products<T, tiles, cut::each>(v, v_row, u, C, m, m_row, 0, m_row);
      } else {
        simd::winograd_products<T, tiles, cut::each>(v, v_row, u, C, m, m_row, 0, whole);
        simd::winograd_products<T, tiles, cut::rest>(v, v_row, u, C, m, m_row, whole, m_row);
      }
      for (int t = 0; t < tiles && first + t < windows; ++t)
        winograd_windows(m + t * m_row, bias, y + (first + t) * F, winner + (first + t) * F);
    }
  }
  [[gnu::noinline]] static void winograd_windows(const T* m, const T* bias, T* y, std::int8_t* winner) {
    const auto some = [&](int f, auto whole, int n) STRATA_INLINE {
      simd::vec<T> pixel[4];
      simd::winograd_output<T>(m + f, tiles * m_row, pixel);
      const simd::vec<T> b = bias ? simd::load_first(bias + f, n) : simd::vec<T>{};
      simd::unroll<4>([&](auto q) STRATA_INLINE { pixel[q] = pixel[q] + b; });
      simd::store_window<T, whole>(pixel, y + f, winner + f, n);
    };
    for (int f = 0; f + L <= F; f += L) some(f, std::true_type{}, L);
    if constexpr (F % L != 0) some(F - F % L, std::false_type{}, F % L);
  }

  static void each_vector_of_filters(auto&& f) {
    for (int i = 0; i + L <= F; i += L) f(std::integral_constant<int, L>{}, i);
    if constexpr (F % L != 0) f(std::integral_constant<int, F % L>{}, F - F % L);
  }

  static void backward(const operands<T>& o) {
    const bool bias_apart = !lanes_follow_winners || !o.dw[0];
    if (S.bias && o.dw[1] && bias_apart)
      for (int n = 0; n < o.count; ++n)
        each_vector_of_filters([&](auto width, int f) {
          simd::pooled_bias<T, width>(o.dy + std::ptrdiff_t(n) * out_size + f, winners(o, n) + f, windows, F, o.dw[1] + f,
                                      o.adds_dw || n > 0);
        });
    if (o.dw[0]) {
      if constexpr (lanes_follow_winners)
        weight_gradient_one_channel(o);
      else
        weight_gradient(o);
    }
    if (o.dx[0]) input_gradient(o);
  }

  static void weight_gradient_one_channel(const operands<T>& o) {
    for (int n = 0; n < o.count; ++n) {
      const T *x = framed(o, n), *dy = o.dy + std::ptrdiff_t(n) * out_size;
      const bool add = o.adds_dw || n > 0;
      each_vector_of_filters([&](auto width, int f) {
        T* const db = S.bias && o.dw[1] ? o.dw[1] + f : nullptr;
        simd::one_channel_weights<T, KH, KW, width>(x, dy + f, winners(o, n) + f, o.dw[0] + f, db, add, image);
      });
    }
  }

  // The register block of the sparse weight gradient: as many kernel rows as fit, or a part of one.
  static constexpr int row_vectors = row_size / L;
  static constexpr int block_rows() {
    for (int r = KH; r > 1; --r)
      if (KH % r == 0 && r * row_vectors + 2 <= simd::registers) return r;
    return 1;
  }
  static constexpr int row_parts = (row_vectors + simd::registers - 4) / (simd::registers - 3),
                       part = (row_vectors + row_parts - 1) / row_parts;
  static constexpr auto corners = [] {
    typename at::template offsets<windows> c{};
    for (int p = 0; p < windows; ++p) c.at[p] = (p / windows_across * at::x_row + p % windows_across * C) * 2;
    return c;
  }();

  static void weight_gradient(const operands<T>& o) {
    T* const transposed = o.scratch + for_x;
    auto* const alive = reinterpret_cast<std::uint32_t*>(transposed + simd::aligned_size<T>(F * filter_size));
    if (o.adds_dw)
      for (int k = 0; k < KH; ++k) simd::transpose(o.dw[0] + k * row * F, F, transposed + k * row_size, filter_size, row, F);
    else
      std::fill_n(transposed, F * filter_size, T{});
    for (int n = 0; n < o.count; ++n) {
      const T *x = framed(o, n), *dy = o.dy + std::ptrdiff_t(n) * out_size;
      simd::alive_windows(winners(o, n), windows, F, alive);
      const auto block = [&](auto vectors, auto last, int k, int v) {
        simd::pooled_weights<T, block_rows(), vectors, last>(x + k * at::x_row + v * L, dy, winners(o, n), alive, corners.begin(),
                                                            transposed + k * row_size + v * L, row_size, filter_size, image);
      };
      for (int k = 0; k < KH; k += block_rows()) {
        int v = 0;
        for (; v + part < row_vectors; v += part)
          block(std::integral_constant<int, part>{}, std::integral_constant<int, L>{}, k, v);
        block(std::integral_constant<int, row_vectors - (row_parts - 1) * part>{},
              std::integral_constant<int, (row - 1) % L + 1>{}, k, v);
      }
    }
    for (int k = 0; k < KH; ++k) simd::transpose(transposed + k * row_size, filter_size, o.dw[0] + k * row * F, F, F, row);
  }

  /// One vector of channels at a time, for all samples: its weights stay in L1.
  static void input_gradient(const operands<T>& o) {
    T* const dx = o.scratch + for_x;
    const auto alive = [&](int n) {
      return reinterpret_cast<std::uint64_t*>(o.scratch + scratch + std::ptrdiff_t(n) * scratch_per_sample);
    };
    for (int n = 0; n < o.count; ++n) simd::alive_filters(winners(o, n), windows, F, alive(n));
    for (int c = 0; c < C; c += L)
      for (int n = 0; n < o.count; ++n) {
        std::fill_n(dx, for_input, T{});
        simd::pooled_input<T, KH, KW>(o.derived + std::ptrdiff_t(c) * F * taps, o.dy + std::ptrdiff_t(n) * out_size, alive(n), dx,
                                      at::x.outer_width, image);
        simd::take_from_frame(dx, at::x, o.dx[0] + std::ptrdiff_t(n) * at::in_size + c, C, std::min(L, C - c), o.adds_dx[0]);
      }
  }
};

}  // namespace strata
