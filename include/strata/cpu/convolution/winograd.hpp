// Winograd's F(MxM, 3x3): computes an MxM tile of the outputs of a 3x3 convolution with (M + 2)^2 instead of 9 M^2
// multiplications per channel.  Lavin and Gray, "Fast algorithms for convolutional neural networks", 2016.
#pragma once
#include <algorithm>
#include <array>
#include <strata/cpu/products/image_product.hpp>

namespace strata::simd {

/// Columns in panels of `each` vectors, the last one of `rest`. The products of a panel stay in registers.
struct winograd_panels {
  static constexpr int most = registers == 32 ? 4 : 2;
  int vectors, count, each, rest;

  template <class T>
  static constexpr winograd_panels of(int columns) {
    const int vectors = padded<T>(columns) / lanes<T>, count = (vectors + most - 1) / most, each = (vectors + count - 1) / count;
    return {vectors, count, each, vectors - each * (count - 1)};
  }
  constexpr int width(int panel) const { return panel + 1 < count ? each : rest; }

  /// The widths of panels that there are, as bits: others need no code.
  static constexpr unsigned all_widths = ~0u;
  template <class T>
  static constexpr unsigned widths_of(int columns) {
    const auto cut = of<T>(columns);
    return (cut.count > 1 ? 1u << cut.each : 0) | 1u << cut.rest;
  }
};

/// Calls f(integral_constant number of vectors), for 1 ... most, as far as they are among Widths.
template <unsigned Widths = winograd_panels::all_widths, class F>
void with_vectors(int vectors, F&& f) {
  const auto call_for = [&](auto V) {
    if constexpr (V <= winograd_panels::most && (Widths >> V & 1) != 0)
      if (vectors == V) f(V);
  };
  call_for(std::integral_constant<int, 4>{}), call_for(std::integral_constant<int, 3>{});
  call_for(std::integral_constant<int, 2>{}), call_for(std::integral_constant<int, 1>{});
}

/// The transforms of F(MxM, 3x3) along one axis. Data, kernel and outputs are coefficients of polynomials, which are multiplied
/// point by point: at 0 (for even M), at pairs +-a, and at infinity, in this order. Points are powers of two, whose products are
/// exact (except near denormal numbers), so it does not matter whether a compiler fuses them. Products with other coefficients,
/// such as 5/4, are fused with their sum. docs/decisions/cpu/winograd_tile_from_the_shape.md has the errors.
template <int M>
struct winograd_points {
  static constexpr int count = M + 2, pairs = (count - 1) / 2, zero = (count - 1) % 2, elements = count * count;
  static_assert(pairs >= 1 && pairs <= 3);

  static constexpr double at(int pair) { return pair == 0 ? 1 : pair == 1 ? 0.5 : 2; }
  static constexpr double power(double a, int n) { return n == 0 ? 1 : a * power(a, n - 1); }
  /// The coefficients of the product of (y - a^2) over all pairs but one: a polynomial in x^2 that is zero at all other points.
  static constexpr std::array<double, pairs + 1> vanishing(int without) {
    std::array<double, pairs + 1> c{1};
    for (int p = 0; p < pairs; ++p) {
      if (p == without) continue;
      for (std::size_t i = pairs; i > 0; --i) c[i] = c[i - 1] - at(p) * at(p) * c[i];
      c[0] *= -at(p) * at(p);
    }
    return c;
  }
  template <int Without>
  static constexpr std::array<double, pairs + 1> polynomial = vanishing(Without);
  /// The sum of every other vector from d[First] on times the coefficients of a polynomial.
  template <int Without, int First, class T>
  STRATA_INLINE static vec<T> times_polynomial(const vec<T> (&d)[count]) {
    constexpr int terms = Without < 0 ? pairs : pairs - 1;
    vec<T> s = d[First + 2 * terms];
    STRATA_UNROLL
    for (int i = terms - 1; i >= 0; --i) {
      // The sign goes to the vector, so that c and -c share a register. g++ does not see through a fused operation by itself.
      const T c = T(polynomial<Without>[std::size_t(i)]), size = c < 0 ? -c : c;
      const vec<T> signed_d = c < 0 ? -d[First + 2 * i] : d[First + 2 * i];
      s = size == 1 ? signed_d + s : multiply_add(broadcast(size), signed_d, s);
    }
    return s;
  }
  /// powers[pair][n] = at(pair)^n.
  static constexpr auto powers = [] {
    std::array<std::array<double, count>, pairs> a{};
    for (int p = 0; p < pairs; ++p)
      for (int n = 0; n < count; ++n) a[std::size_t(p)][std::size_t(n)] = power(at(p), n);
    return a;
  }();
  /// The divisor of the product at a point.
  static constexpr double divisor(int point) {
    if (point == count - 1) return 1;
    if (point < zero) return vanishing(-1)[0];
    const int pair = (point - zero) / 2;
    const double a = (point - zero) % 2 == 0 ? at(pair) : -at(pair);
    double value = 0;
    for (int i = 0; i < pairs; ++i) value += vanishing(pair)[std::size_t(i)] * power(a, 2 * i);
    return value * 2 * a * (zero == 1 ? a : 1);
  }
  /// 1 / divisor at a point, and for element (i, j) of a tile.
  static constexpr auto scale = [] {
    std::array<double, count> s{};
    for (int i = 0; i < count; ++i) s[std::size_t(i)] = 1 / divisor(i);
    return s;
  }();
  static constexpr auto scale_of_tile = [] {
    std::array<double, elements> s{};
    for (int i = 0; i < elements; ++i) s[std::size_t(i)] = 1 / (divisor(i / count) * divisor(i % count));
    return s;
  }();

  /// B^T d of `count` vectors of data.
  template <class T>
  STRATA_INLINE static void data(vec<T> (&d)[count]) {
    vec<T> out[count];
    if constexpr (zero == 1) out[0] = times_polynomial<-1, 0, T>(d);
    unroll<pairs>([&](auto p) STRATA_INLINE {
      constexpr T a = T(at(p));
      const vec<T> low = times_polynomial<p, zero, T>(d), high = times_polynomial<p, zero + 1, T>(d);
      out[zero + 2 * p] = a * low + high, out[zero + 2 * p + 1] = high - a * low;
    });
    out[count - 1] = times_polynomial<-1, zero, T>(d);
    STRATA_UNROLL
    for (int i = 0; i < count; ++i) d[i] = out[i];
  }

  /// The values of a polynomial with N coefficients at all points. Multiplied by the scales, this is G c.
  template <int N, class T>
  STRATA_INLINE static void values(const vec<T> (&c)[N], vec<T> (&out)[count]) {
    if constexpr (zero == 1) out[0] = c[0];
    STRATA_UNROLL
    for (int p = 0; p < pairs; ++p) {
      const auto& a = powers[std::size_t(p)];
      vec<T> even = c[0], odd = T(a[1]) * c[1];
      STRATA_UNROLL
      for (int i = 2; i < N; ++i) {
        if (i % 2 == 0)
          even = T(a[std::size_t(i)]) * c[i] + even;
        else
          odd = T(a[std::size_t(i)]) * c[i] + odd;
      }
      out[zero + 2 * p] = even + odd, out[zero + 2 * p + 1] = even - odd;
    }
    out[count - 1] = c[N - 1];
  }

  /// The transpose of `values`, A^T m: N sums of the products at all points.
  template <int N, class T>
  STRATA_INLINE static void sums(const vec<T> (&m)[count], vec<T> (&out)[N]) {
    vec<T> both[pairs], apart[pairs];
    STRATA_UNROLL
    for (int p = 0; p < pairs; ++p)
      both[p] = m[zero + 2 * p] + m[zero + 2 * p + 1], apart[p] = m[zero + 2 * p] - m[zero + 2 * p + 1];
    STRATA_UNROLL
    for (int n = 0; n < N; ++n) {
      vec<T> s = n % 2 == 0 ? both[0] : apart[0];
      STRATA_UNROLL
      for (int p = 1; p < pairs; ++p) s = T(powers[std::size_t(p)][std::size_t(n)]) * (n % 2 == 0 ? both[p] : apart[p]) + s;
      if (n == 0 && zero == 1) s = s + m[0];
      if (n == N - 1) s = s + m[count - 1];
      out[n] = s;
    }
  }
};

namespace detail {
/// The M up to `largest` with the least total cost: elements of a tile times the cost of an element over all tiles.
constexpr int cheapest_tile(int H, int W, int largest, auto cost) {
  const auto of_all = [&](int M) { return (M + 2) * (M + 2) * cost(((H + M - 1) / M) * ((W + M - 1) / M)); };
  int best = 2;
  for (const int M : {4, 5})
    if (M <= largest && of_all(M) < of_all(best)) best = M;
  return best;
}
}  // namespace detail

/// The M with the least work for H x W outputs. Larger tiles need fewer products per output, but compute more outputs beyond the
/// edge and have more weights to transform and to read. The weights count as two more tiles, because those of 512 channels exceed
/// the caches. M is 5 only up to 256 channels, where errors stay below 5e-6.
constexpr int winograd_tile(int C, int F, int H, int W) {
  const double products = double(C) * F;
  const auto cost = [&](double tiles) { return tiles * (products + 5. * (C + F)) + 2 * products; };  // 5: transforms, measured
  return detail::cheapest_tile(H, W, C <= 256 ? 5 : 4, cost);
}

/// The M for the weight gradient. Its sums are transformed back once for each image, which costs as much as six tiles.
constexpr int winograd_gradient_tile(int H, int W) {
  return detail::cheapest_tile(H, W, 5, [](double tiles) { return tiles + 6; });
}

namespace detail {
/// u = G g G^T of one vector of kernels. Element t of g lies at g + t * tap.
template <int M, class T>
STRATA_INLINE inline void winograd_kernel(const T* g, std::ptrdiff_t tap, int n, T* u, std::ptrdiff_t element) {
  using points = winograd_points<M>;
  constexpr int N = points::count;
  vec<T> along[3][N];
  STRATA_UNROLL
  for (int j = 0; j < 3; ++j) {
    vec<T> column[3];
    STRATA_UNROLL
    for (int i = 0; i < 3; ++i) column[i] = load_first(g + (i * 3 + j) * tap, n);
    points::template values<3, T>(column, along[j]);
  }
  STRATA_UNROLL
  for (int i = 0; i < N; ++i) {
    const vec<T> row[3] = {along[0][i], along[1][i], along[2][i]};
    vec<T> out[N];
    points::template values<3, T>(row, out);
    STRATA_UNROLL
    for (int j = 0; j < N; ++j) store(u + (i * N + j) * element, T(points::scale_of_tile[std::size_t(i * N + j)]) * out[j]);
  }
}
}  // namespace detail

/// The distance between two elements of the transformed weights. It is not a power of two, so that they do not share a few sets
/// of the cache.
template <class T>
constexpr int winograd_weights_element(int C, int F) {
  return C * padded<T>(F) + lanes<T>;
}

/// u[element] = G g G^T of the kernels g[3][3][C][F], each element in panels of [C][panel width], with zeros after the last
/// filter.
template <int M, class T>
[[gnu::noinline]] void winograd_panel_weights(const T* w, int C, int F, T* u) {
  constexpr int L = lanes<T>;
  const auto cut = winograd_panels::of<T>(F);
  const std::ptrdiff_t tap = std::ptrdiff_t(C) * F, element = winograd_weights_element<T>(C, F);
  for (int f = 0; f < F; f += L) {
    const int panel = f / L / cut.each, width = cut.width(panel) * L;
    T* to = u + std::ptrdiff_t(C) * panel * cut.each * L + (f - panel * cut.each * L);
    for (int c = 0; c < C; ++c, to += width)
      detail::winograd_kernel<M>(w + std::ptrdiff_t(c) * F + f, tap, std::min(L, F - f), to, element);
  }
}

/// The weights for the input gradient: inputs and filters are exchanged and the kernel is rotated by 180 degrees.
template <int M, class T>
[[gnu::noinline]] void winograd_turned_weights(const T* w, int C, int F, T* u) {
  constexpr int L = lanes<T>;
  const auto cut = winograd_panels::of<T>(C);
  const std::ptrdiff_t element = winograd_weights_element<T>(F, C);
  alignas(64) T block[9 * L * L];
  for (int c = 0; c < C; c += L) {
    const int panel = c / L / cut.each, width = cut.width(panel) * L;
    T* to = u + std::ptrdiff_t(F) * panel * cut.each * L + (c - panel * cut.each * L);
    for (int f = 0; f < F; f += L) {
      const int filters = std::min(L, F - f);
      for (int t = 0; t < 9; ++t)
        transpose(w + (std::ptrdiff_t(t) * C + c) * F + f, F, block + (8 - t) * L * L, L, std::min(L, C - c), filters, true);
      for (int i = 0; i < filters; ++i, to += width) detail::winograd_kernel<M>(block + i * L, L * L, L, to, element);
    }
  }
}

/// The image that tiles are cut from. The first tile begins `top` lines above and `left` pixels to the left of it. Pixels outside
/// are 0.
struct tiled_image {
  int height, width, top, left;
};

namespace detail {
/// One vector of channels of `count` neighbouring tiles, the first with its corner at (row, column): transforms all columns, then
/// the rows of each tile.
template <int M, bool Whole, class T>
STRATA_INLINE inline void winograd_strip(const T* x, const tiled_image& image, int row, int column, std::ptrdiff_t C, int n,
                                         int count, T* v, std::ptrdiff_t v_row, std::ptrdiff_t element, vec<T>* strip) {
  using points = winograd_points<M>;
  constexpr int N = points::count;
  const bool inside = row >= 0 && row + N <= image.height;
  const std::ptrdiff_t line = image.width * C;
  for (int k = 0; k < count * M + 2; ++k, ++column) {
    vec<T> d[N];
    STRATA_UNROLL
    for (int i = 0; i < N; ++i) d[i] = vec<T>{};
    if (column >= 0 && column < image.width) {
      const std::ptrdiff_t at = row * line + column * C;
      if (inside) {
        STRATA_UNROLL
        for (int i = 0; i < N; ++i) d[i] = load_lanes<Whole>(x + at + i * line, n);
      } else {
        STRATA_UNROLL
        for (int i = 0; i < N; ++i)
          if (row + i >= 0 && row + i < image.height) d[i] = load_lanes<Whole>(x + at + i * line, n);
      }
    }
    // Otherwise compilers move products into the branches, which takes more registers.
    STRATA_UNROLL
    for (int i = 0; i < N; ++i) keep(d[i]);
    points::template data<T>(d);
    STRATA_UNROLL
    for (int i = 0; i < N; ++i) strip[k * N + i] = d[i];
  }
  for (int t = 0; t < count; ++t, strip += M * N, v += v_row) {
    T* to = v;
    for (int i = 0; i < N; ++i) {
      vec<T> d[N];
      STRATA_UNROLL
      for (int j = 0; j < N; ++j) d[j] = strip[j * N + i];
      points::template data<T>(d);
      STRATA_UNROLL
      for (int j = 0; j < N; ++j) store(to, d[j]), to += element;
    }
  }
}
}  // namespace detail

/// v[element][tile][v_row] = B^T d B of `count` tiles d of (M + 2)^2 pixels, each M pixels to the right of the one before. `row`
/// and `column` count tiles. Whole: C is a multiple of a vector.
template <int M, bool Whole, class T>
[[gnu::noinline]] void winograd_inputs(const T* x, const tiled_image& image, int row, int column, std::ptrdiff_t C, int count,
                                       T* v, std::ptrdiff_t v_row, std::ptrdiff_t element) {
  constexpr int L = lanes<T>, most = 4;  // tiles whose columns stay in the first-level cache
  vec<T> strip[(most * M + 2) * (M + 2)];
  for (int t = 0; t < count; t += most, v += most * v_row) {
    const int some = std::min(most, count - t), top = row * M - image.top, left = (column + t) * M - image.left;
    std::ptrdiff_t c = 0;
    for (; c + L <= C; c += L) detail::winograd_strip<M, true>(x + c, image, top, left, C, L, some, v + c, v_row, element, strip);
    if constexpr (!Whole)
      if (c < C) detail::winograd_strip<M, false>(x + c, image, top, left, C, int(C - c), some, v + c, v_row, element, strip);
  }
}

/// The rows of a register block of V vectors.
constexpr int winograd_rows(int vectors) {
  return vectors == 1 ? 8 : vectors == 2 ? (registers == 32 ? 12 : 6) : vectors == 3 ? 8 : 6;
}

/// m[element][rows][V vectors] = v[element][rows][v_row] u[element][C][V vectors]. Rows come in whole register blocks.
template <class T, int V>
[[gnu::noinline]] void winograd_panel_products(int elements, const T* v, std::ptrdiff_t v_row, std::ptrdiff_t v_element, int rows,
                                               const T* u, std::ptrdiff_t u_element, int C, T* m, std::ptrdiff_t m_element) {
  constexpr int L = lanes<T>, R = winograd_rows(V);
  for (int q = 0; q < elements; ++q, v += v_element, u += u_element, m += m_element)
    for (int row = 0; row < rows; row += R) {
      const T* a[R];
      STRATA_UNROLL
      for (int r = 0; r < R; ++r) a[r] = v + (row + r) * v_row;
      vec<T> sum[R][V];
      STRATA_UNROLL
      for (int i = 0; i < R * V; ++i) {
        sum[i / V][i % V] = vec<T>{};
      }
      const T* b = u;
      std::ptrdiff_t k = 0;
      if constexpr (V == 1)
        for (; k + 4 <= C; k += 4, b += 4 * L) {
          STRATA_UNROLL
          for (int i = 0; i < 4; ++i) detail::accumulate_row<R, V, true>(sum, a, k + i, b + i * L, L);
        }
      for (; k < C; ++k, b += V * L) detail::accumulate_row<R, V, true>(sum, a, k, b, L);
      T* to = m + row * (V * L);
      STRATA_UNROLL
      for (int i = 0; i < R * V; ++i) store(to + i * L, sum[i / V][i % V]);
    }
}

/// Calls f(row, M outputs A^T m A, without bias) for the rows of one tile and a vector of filters at `m`.
template <int M, class T, class F>
STRATA_INLINE inline void winograd_outputs(const T* m, std::ptrdiff_t element, F&& f) {
  using points = winograd_points<M>;
  constexpr int N = points::count;
  vec<T> along[M][N];
  for (int j = 0; j < N; ++j, m += element) {
    vec<T> d[N], out[M];
    const T* from = m;
    STRATA_UNROLL
    for (int i = 0; i < N; ++i) d[i] = load(from), from += N * element;
    points::template sums<M, T>(d, out);
    STRATA_UNROLL
    for (int i = 0; i < M; ++i) along[i][j] = out[i];
  }
  for (int i = 0; i < M; ++i) {
    vec<T> out[M];
    points::template sums<M, T>(along[i], out);
    f(i, out);
  }
}

}  // namespace strata::simd
