// Convolutions whose output channels read few input channels: depthwise ones, and groups of a few channels. The lanes of a vector
// are independent channels.
#pragma once
#include <algorithm>
#include <strata/cpu/convolution/frame.hpp>
#include <strata/cpu/products/image_product.hpp>

namespace strata::simd {

/// Output channel c is a sum over kernel rows ("runs"), `depth` elements per tap, and the taps of a row:
///   y[pixel][c] = f(bias[c] + sum of x[pixel + run_at[i] + kw * x_column + d * x_depth + c]
///                                 * w[i * w_run + kw * w_tap + d * w_depth + c])
template <class T>
struct lanewise {
  int lines, columns;  // of outputs
  const T* x;
  std::ptrdiff_t x_column, x_line;  // between neighbouring columns of x, and between the lines of two outputs
  const int* run_at;
  int runs, depth;
  std::ptrdiff_t x_depth;
  T* w;  // the gradient writes here
  std::ptrdiff_t w_run, w_tap, w_depth;
  T* y;  // the gradient of the weights reads here
  std::ptrdiff_t y_column, y_line;
  const T* bias = nullptr;
  bool add = false;
};

/// Calls f(integral_constant count, first) until n are done: at most Most at a time, in powers of two.
template <int Most, class F>
STRATA_INLINE inline void in_blocks(int n, F&& f) {
  int at = 0;
  for (; at + Most <= n; at += Most) f(std::integral_constant<int, Most>{}, at);
  if constexpr (Most > 1) {
    if constexpr (Most > 4)
      if (at + 4 <= n) f(std::integral_constant<int, 4>{}, at), at += 4;
    if constexpr (Most > 2)
      if (at + 2 <= n) f(std::integral_constant<int, 2>{}, at), at += 2;
    if (at < n) f(std::integral_constant<int, 1>{}, at);
  }
}

/// Calls f(i, vector) for those vectors at p, p + step, ... that `used` names.
template <int N, bool Whole, class T, class Used, class F>
STRATA_INLINE inline void each_column(const T* p, std::ptrdiff_t step, int n, Used, F&& f) {
  STRATA_UNROLL
  for (int i = 0; i < N; ++i) {
    if (Used::of(i)) f(i, detail::load_lanes<Whole>(p, n));
    if (i + 1 < N) {
      p += step;
      asm("" : "+r"(p));  // one address, not N
    }
  }
}

/// The columns of x that some output of a block reads.
template <int KW, int Stride>
struct columns_used {
  static constexpr bool of(int i) { return i % Stride < KW; }
};

/// Kernels KW wide: R neighbouring outputs share the columns of x. `n`: the lanes of the last vector, if it is not Whole.
template <class T, int KW, int Stride, class Activation, bool Whole>
[[gnu::noinline]] void lanewise_forward(const lanewise<T>& p, int vectors, int n) {
  constexpr int L = lanes<T>, most = registers == 32 || KW <= 3 ? 8 : 4;
  for (int line = 0; line < p.lines; ++line)
    for (int v = 0; v < vectors; ++v) {
      const T *const x_line = p.x + line * p.x_line + v * L, *const weights = p.w + v * L;
      T* const y_line = p.y + line * p.y_line + v * L;
      const vec<T> bias = p.bias ? detail::load_lanes<Whole>(p.bias + v * L, n) : vec<T>{};
      in_blocks<most>(p.columns, [&](auto block, int at) STRATA_INLINE {
        constexpr int R = block;
        T* const y = y_line + at * p.y_column;
        vec<T> sum[R];
        STRATA_UNROLL
        for (int r = 0; r < R; ++r) sum[r] = p.add ? detail::load_lanes<Whole>(y + r * p.y_column, n) : bias;
        for (int run = 0; run < p.runs; ++run) {
          const T* x = x_line + at * Stride * p.x_column + p.run_at[run];
          const T* w = weights + run * p.w_run;
          for (int d = 0; d < p.depth; ++d, x += p.x_depth, w += p.w_depth) {
            vec<T> tap[KW];
            STRATA_UNROLL
            for (int k = 0; k < KW; ++k) {
              tap[k] = detail::load_lanes<Whole>(w + k * p.w_tap, n);
              keep(tap[k]);
            }
            each_column<(R - 1) * Stride + KW, Whole>(x, p.x_column, n, columns_used<KW, Stride>{},
                                                      [&](int i, vec<T> value) STRATA_INLINE {
                                                        if constexpr (KW > 1) keep(value);
                                                        STRATA_UNROLL
                                                        for (int k = 0; k < KW; ++k) {
                                                          const int r = (i - k) / Stride;
                                                          if (i >= k && (i - k) % Stride == 0 && r < R)
                                                            sum[r] = multiply_add(value, tap[k], sum[r]);
                                                        }
                                                      });
          }
        }
        STRATA_UNROLL
        for (int r = 0; r < R; ++r)
          detail::store_lanes<Whole>(y + r * p.y_column, vector_activation<Activation>::template value<T>(sum[r]), n);
      });
    }
}

/// w (+)= the sum over pixels of x[pixel + tap] * y[pixel], for several kernel rows at a time.
template <class T, int KW, int Stride, bool Whole>
[[gnu::noinline]] void lanewise_weights(const lanewise<T>& p, int vectors, int n) {
  constexpr int L = lanes<T>, rows = KW == 1 ? 8 : KW == 2 ? 4 : KW == 3 ? 3 : registers == 32 ? 2 : 1;
  for (int v = 0; v < vectors; ++v)
    for (int d = 0; d < p.depth; ++d)
      for (int first = 0; first < p.runs; first += rows) {
        T* w[rows];
        const T* x[rows];
        STRATA_UNROLL
        for (int i = 0; i < rows; ++i) {  // after the end the last row repeats, with the same result
          const int run = first + i < p.runs ? first + i : p.runs - 1;
          w[i] = p.w + run * p.w_run + d * p.w_depth + v * L, x[i] = p.x + p.run_at[run] + d * p.x_depth + v * L;
        }
        vec<T> sum[rows * KW];
        STRATA_UNROLL
        for (int i = 0; i < rows * KW; ++i) {
          sum[i] = p.add ? detail::load_lanes<Whole>(w[i / KW] + i % KW * p.w_tap, n) : vec<T>{};
        }
        for (int line = 0; line < p.lines; ++line) {
          const T* const y_line = p.y + line * p.y_line + v * L;
          in_blocks<4>(p.columns, [&](auto block, int at) STRATA_INLINE {
            constexpr int R = block;
            vec<T> y[R];
            STRATA_UNROLL
            for (int r = 0; r < R; ++r) {
              y[r] = detail::load_lanes<Whole>(y_line + (at + r) * p.y_column, n);
              keep(y[r]);
            }
            STRATA_UNROLL
            for (int row = 0; row < rows; ++row) {
              each_column<(R - 1) * Stride + KW, Whole>(x[row] + line * p.x_line + at * Stride * p.x_column, p.x_column, n,
                                                        columns_used<KW, Stride>{}, [&](int i, vec<T> value) STRATA_INLINE {
                                                          if constexpr (KW > 1) keep(value);
                                                          STRATA_UNROLL
                                                          for (int k = 0; k < KW; ++k) {
                                                            const int r = (i - k) / Stride;
                                                            if (i >= k && (i - k) % Stride == 0 && r < R)
                                                              sum[row * KW + k] = multiply_add(value, y[r], sum[row * KW + k]);
                                                          }
                                                        });
            }
          });
        }
        STRATA_UNROLL
        for (int i = 0; i < rows * KW; ++i) detail::store_lanes<Whole>(w[i / KW] + i % KW * p.w_tap, sum[i], n);
      }
}

/// Any number of channels: whole vectors, then the rest.
template <int KW, int Stride, class Activation, class T>
void lanewise_forward(lanewise<T> p, int channels) {
  constexpr int L = lanes<T>;
  if (const int whole = channels / L; whole > 0) {
    lanewise_forward<T, KW, Stride, Activation, true>(p, whole, L);
    p.x += whole * L, p.w += whole * L, p.y += whole * L, p.bias += p.bias ? whole * L : 0;
  }
  if (channels % L != 0) lanewise_forward<T, KW, Stride, Activation, false>(p, 1, channels % L);
}
template <int KW, int Stride, class T>
void lanewise_weights(lanewise<T> p, int channels) {
  constexpr int L = lanes<T>;
  if (const int whole = channels / L; whole > 0) {
    lanewise_weights<T, KW, Stride, true>(p, whole, L);
    p.x += whole * L, p.w += whole * L, p.y += whole * L;
  }
  if (channels % L != 0) lanewise_weights<T, KW, Stride, false>(p, 1, channels % L);
}

/// v[lane] = p[index[lane]]. Reads at most `reach` elements, if they all fit into one vector.
template <class T, bool OneVector>
STRATA_INLINE inline vec<T> pick(const T* p, integers<T> index, [[maybe_unused]] int reach) {
  if constexpr (OneVector) {
    [[maybe_unused]] const vec<T> from = load_first(p, reach);
#if defined(STRATA_AVX512)
    if constexpr (sizeof(T) == 4)
      return (vec<T>)_mm512_maskz_permutexvar_ps(__mmask16(0xffff), (__m512i)index, (__m512)from);
    else
      return (vec<T>)_mm512_maskz_permutexvar_pd(__mmask8(0xff), (__m512i)index, (__m512d)from);
#elif defined(__AVX2__)
    if constexpr (sizeof(T) == 4) return (vec<T>)_mm256_permutevar8x32_ps((__m256)from, (__m256i)index);
#endif
  }
  vec<T> v{};
  for (int i = 0; i < lanes<T>; ++i) v[i] = p[index[i]];
  return v;
}

/// Spreads the channels of an image for `lanewise`, in a frame: to[pixel][depth][lane] = image[pixel][(first + lane) / many *
/// depth + d]. These are the inputs of the output channels first, first + 1, ...; `many` neighbours read the same ones.
template <class T, bool OneVector>
[[gnu::noinline]] void spread_lanes(const T* image, const frame& f, int channels, int base, int reach, const integers<T>& index,
                                    int depth, T* to) {
  constexpr int L = lanes<T>;
  const std::ptrdiff_t pixel = std::ptrdiff_t(depth) * L;
  const auto zeros = [&](std::ptrdiff_t pixels) {
    std::memset(to, 0, sizeof(T) * static_cast<std::size_t>(pixels * pixel));
    to += pixels * pixel;
  };
  const int right = f.outer_width - f.left - f.width;
  zeros(std::ptrdiff_t(f.top) * f.outer_width + f.left);
  image += base;
  for (int i = 0; i < f.height; ++i) {
    for (int j = 0; j < f.width; ++j, image += channels)
      for (int d = 0; d < depth; ++d, to += L) store(to, pick<T, OneVector>(image + d, index, reach));
    if (i + 1 < f.height) zeros(right + f.left);
  }
  zeros(right + std::ptrdiff_t(f.outer_height - f.top - f.height) * f.outer_width);
}
template <class T>
void spread(const T* image, const frame& f, int channels, int first, int lanes_used, int many, int depth, T* to) {
  const int base = first / many * depth, reach = (first + lanes_used - 1) / many * depth - base + 1;
  integers<T> index{};
  for (int i = 0; i < lanes_used; ++i) index[i] = (first + i) / many * depth - base;
  if (reach <= lanes<T>)
    spread_lanes<T, true>(image, f, channels, base, reach, index, depth, to);
  else
    spread_lanes<T, false>(image, f, channels, base, reach, index, depth, to);
}

}  // namespace strata::simd
