// Convolutions with few output channels: the lanes of a vector are pixels. An image becomes planes, one for each channel, in
// which a tap is an offset. The ends of lines are computed, too, and dropped when lines are stored.
#pragma once
#include <algorithm>
#include <cstring>
#include <strata/cpu/convolution/frame.hpp>
#include <strata/cpu/products/image_product.hpp>

namespace strata::simd {

/// The planes of one image in a frame: a plane of height x width for each residue of lines and columns (modulo the strides) and
/// each channel.
struct planar_layout {
  frame image;
  int channels, stride_height, stride_width, height, width, plane;

  template <class T>
  static constexpr planar_layout of(const frame& f, int channels, int stride_height, int stride_width) {
    const int height = (f.outer_height + stride_height - 1) / stride_height,
              width = (f.outer_width + stride_width - 1) / stride_width;
    constexpr int line = 64 / int(sizeof(T));
    return {f,
            channels,
            stride_height,
            stride_width,
            height,
            width,
            (height * width / line | 1) * line + 2 * line};  // an odd number of lines
  }
  constexpr int planes() const { return stride_height * stride_width * channels; }
  /// Space after the last plane that register blocks may read.
  constexpr int size() const { return planes() * plane + 8 * 16; }
  /// The offset that a tap adds to the position of an output, for channel 0.
  constexpr int tap(int line, int column) const {
    return (line % stride_height * stride_width + column % stride_width) * channels * plane + line / stride_height * width +
           column / stride_width;
  }
};

/// to[plane][line][column] of one image.
template <class T>
[[gnu::noinline]] void to_planes(const T* x, const planar_layout& p, T* to) {
  const frame& f = p.image;
  const int C = p.channels, SW = p.stride_width;
  std::memset(to, 0, sizeof(T) * static_cast<std::size_t>(p.size()));
  for (int i = 0; i < f.height; ++i, x += std::ptrdiff_t(f.width) * C)
    for (int residue = 0; residue < SW; ++residue) {
      const int first = ((residue - f.left) % SW + SW) % SW, columns = (f.width - first + SW - 1) / SW;
      T* const line = to + p.tap(f.top + i, f.left + first);
      if (C > 1)
        transpose(x + first * C, SW * C, line, p.plane, columns, C);
      else if (SW == 1)
        std::memcpy(line, x, sizeof(T) * static_cast<std::size_t>(f.width));
      else
        for (int j = 0; j < columns; ++j) line[j] = x[first + j * SW];
    }
}

/// Converts `lines` lines of planes to lines of pixels: y[line][column][channel] (+)= from[channel][line][column].
template <class T>
[[gnu::noinline]] void from_planes(const T* from, std::ptrdiff_t plane, int line, int channels, int lines, int columns, T* y,
                                   std::ptrdiff_t y_column, std::ptrdiff_t y_line, bool add, T* scratch) {
  for (int i = 0; i < lines; ++i, from += line, y += y_line) {
    if (channels == 1) {
      for (int j = 0; j < columns; ++j) y[j * y_column] = add ? y[j * y_column] + from[j] : from[j];
    } else if (!add) {
      transpose(from, plane, y, y_column, channels, columns);
    } else {
      transpose(from, plane, scratch, channels, channels, columns);
      for (int j = 0; j < columns; ++j)
        for (int c = 0; c < channels; ++c) y[j * y_column + c] += scratch[j * channels + c];
    }
  }
}

/// out[r][p] = f(bias[r] + sum over runs and planes of x[run_at[run] + plane + p] * w[k][r]), where k counts all of them.
template <class T>
struct planar_product {
  const T* x;
  const int* run_at;
  int runs, planes;
  std::ptrdiff_t plane;
  const T* w;
  int rows;  // of w and of out
  T* out;
  std::ptrdiff_t out_row;
  int pixels;
  const T* bias = nullptr;
};

/// Vectors of pixels for R output channels.
constexpr int planar_vectors(int R) {
  constexpr int of_32[] = {8, 8, 6, 4}, of_16[] = {8, 4, 3, 2};
  return (registers == 32 ? of_32 : of_16)[std::min(R, 4) - 1];
}

template <class T, int R, class Activation>
[[gnu::noinline]] void planar_rows(const planar_product<T>& p, int row) {
  constexpr int L = lanes<T>, V = planar_vectors(R);
  for (int pixel = 0; pixel < p.pixels; pixel += V * L) {
    vec<T> sum[R][V];
    STRATA_UNROLL
    for (int r = 0; r < R; ++r) {
      const vec<T> bias = broadcast(p.bias ? p.bias[row + r] : T(0));
      STRATA_UNROLL
      for (int v = 0; v < V; ++v) sum[r][v] = bias;
    }
    const T* w = p.w + row;
    for (int run = 0; run < p.runs; ++run) {
      const T* x = p.x + p.run_at[run] + pixel;
      for (int c = 0; c < p.planes; ++c, x += p.plane, w += p.rows) {
        vec<T> value[V];
        STRATA_UNROLL
        for (int v = 0; v < V; ++v) {
          value[v] = load(x + v * L);
          if constexpr (R > 1) keep(value[v]);
        }
        STRATA_UNROLL
        for (int r = 0; r < R; ++r) {
          vec<T> weight = broadcast(w[r]);
          keep(weight);
          STRATA_UNROLL
          for (int v = 0; v < V; ++v) sum[r][v] = multiply_add(weight, value[v], sum[r][v]);
        }
      }
    }
    STRATA_UNROLL
    for (int i = 0; i < R * V; ++i)
      store(p.out + (row + i / V) * p.out_row + pixel + i % V * L,
            vector_activation<Activation>::template value<T>(sum[i / V][i % V]));
  }
}
template <int Rows, class Activation, class T>
void planar_multiply(const planar_product<T>& p) {
  constexpr int blocks = (Rows + 5) / 6, each = (Rows + blocks - 1) / blocks, rest = Rows - each * (blocks - 1);
  for (int i = 0; i + 1 < blocks; ++i) planar_rows<T, each, Activation>(p, i * each);
  planar_rows<T, rest, Activation>(p, (blocks - 1) * each);
}

/// Pixels per group in sums over pixels: the lanes of the widest target, so that all targets add in the same order.
template <class T>
inline constexpr int planar_group = 64 / int(sizeof(T));

/// totals[i] = the sum of part[i][0 ... group - 1], by halving; i < 4 L.
template <class T>
[[gnu::noinline]] void planar_totals(const T* part, int n, T* totals) {
  constexpr int L = lanes<T>, G = planar_group<T>;
  for (int i = 0; i < n; i += L, part += L * G) {
    vec<T> all[G];
    for (int g = 0; g < G; g += L) {
      vec<T> r[L];
      STRATA_UNROLL
      for (int k = 0; k < L; ++k) r[k] = load(part + k * G + g);
      transpose<T>(r);
      for (int k = 0; k < L; ++k) all[g + k] = r[k];
    }
    for (int half = G / 2; half > 0; half /= 2)
      for (int k = 0; k < half; ++k) all[k] += all[k + half];
    store(totals + i, all[0]);
  }
}

/// The weight gradient: w[k][f] (+)= the sum over pixels of x[run_at[run] + plane + pixel] * out[f][pixel] for Q filters from
/// `first` on. out: dz in planes like those of the forward product, with zeros after the ends of lines.
template <class T, int Q>
[[gnu::noinline]] void planar_weights(const planar_product<T>& p, T* w, int first, bool add) {
  constexpr int L = lanes<T>, G = planar_group<T>,
                R = registers == 32 ? (Q <= 2   ? 8
                                       : Q <= 4 ? 5
                                                : 4)
                                    : (Q == 1   ? 6
                                       : Q == 2 ? 4
                                       : Q <= 4 ? 2
                                                : 1);
  constexpr int padded_sums = (R * Q + L - 1) / L * L;
  const int all = p.runs * p.planes;
  alignas(64) T part[padded_sums * G], totals[padded_sums];
  std::fill_n(part, padded_sums * G, T{});
  for (int k = 0; k < all; k += R) {
    const T* x[R];
    STRATA_UNROLL
    for (int r = 0; r < R; ++r) {
      const int mine = k + r < all ? k + r : all - 1;
      x[r] = p.x + p.run_at[mine / p.planes] + mine % p.planes * p.plane;
    }
    for (int lane = 0; lane < G; lane += L) {
      vec<T> sum[R][Q];
      STRATA_UNROLL
      for (int i = 0; i < R * Q; ++i) {
        sum[i / Q][i % Q] = vec<T>{};
      }
      const T* const dz = p.out + first * p.out_row;
      for (std::ptrdiff_t pixel = lane; pixel < p.pixels; pixel += G) {
        vec<T> value[R];
        STRATA_UNROLL
        for (int r = 0; r < R; ++r) {
          value[r] = load(x[r] + pixel);
          if constexpr (Q > 1) keep(value[r]);
        }
        STRATA_UNROLL
        for (int q = 0; q < Q; ++q) {
          vec<T> d = load(dz + q * p.out_row + pixel);
          keep(d);
          STRATA_UNROLL
          for (int r = 0; r < R; ++r) sum[r][q] = multiply_add(value[r], d, sum[r][q]);
        }
      }
      STRATA_UNROLL
      for (int i = 0; i < R * Q; ++i) store(part + i * G + lane, sum[i / Q][i % Q]);
    }
    planar_totals(part, R * Q, totals);
    for (int r = 0; r < R && k + r < all; ++r)
      for (int q = 0; q < Q; ++q) {
        T& to = w[(k + r) * p.rows + first + q];
        to = add ? to + totals[r * Q + q] : totals[r * Q + q];
      }
  }
}
template <int Rows, class T>
void planar_weight_gradient(const planar_product<T>& p, T* w, bool add) {
  constexpr int blocks = (Rows + 5) / 6, each = (Rows + blocks - 1) / blocks, rest = Rows - each * (blocks - 1);
  for (int i = 0; i + 1 < blocks; ++i) planar_weights<T, each>(p, w, i * each, add);
  planar_weights<T, rest>(p, w, (blocks - 1) * each, add);
}

}  // namespace strata::simd
