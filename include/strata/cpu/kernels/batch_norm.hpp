// Batch normalization on vectors of channels, alone or with the activation that follows. Sums are doubles. What depends on the
// channel only is computed once per call, so that each pass does little but read and write memory.
#pragma once
#include <algorithm>
#include <strata/cpu/backend.hpp>
#include <strata/cpu/simd/doubles.hpp>
#include <strata/cpu/simd/elementwise.hpp>
#include <strata/kernel/kernel.hpp>
#include <strata/layers/batch_norm.hpp>

namespace strata {

namespace simd {

/// Rows whose sums stay in registers. More rows would be too many streams for the prefetcher.
inline constexpr int rows_at_a_time = 4;

/// Replaces the activation in row_sums if the sums are those of x and x^2.
struct of_squares;

/// sums[j] += the sum of g and sums[width + j] += the sum of g * x over the rows, in order and in double, with g = dy * slope(y).
/// x has `size` elements: the last row may be shorter.
template <class T, class Activation>
[[gnu::noinline]] void row_sums(const T* dy, const T* y, const T* x, std::ptrdiff_t size, int width, double* sums) {
  constexpr int D = lanes<double>, parts = double_parts<T>;
  constexpr bool squares = std::is_same_v<Activation, of_squares>;
  const auto some_rows = [&](std::ptrdiff_t from, int rows, int columns) STRATA_INLINE {
    for_vectors<T>(columns, [&](std::ptrdiff_t j, auto lane) STRATA_INLINE {
      const auto inside = [&](int k) STRATA_INLINE { return std::clamp(lane.count - k * D, 0, D); };
      vec<double> sum[parts], product[parts];
      STRATA_UNROLL
      for (int k = 0; k < parts; ++k) {
        sum[k] = load_first(sums + j + k * D, inside(k));
        product[k] = load_first(sums + width + j + k * D, inside(k));
      }
      std::ptrdiff_t at = from + j;
      for (int r = 0; r < rows; ++r, at += width) {
        const vec<T> z = lane.load(x + at);
        [[maybe_unused]] vec<T> g = z;
        if constexpr (!squares) g = lane.load(dy + at) * slope_at<Activation>(lane, y + at);
        unroll<parts>([&](auto k) STRATA_INLINE {
          const vec<double> wide = part_as_doubles<T, k>(z);
          vec<double> gradient = wide;
          if constexpr (!squares) gradient = part_as_doubles<T, k>(g);
          sum[k] += gradient;
          product[k] = multiply_add(gradient, wide, product[k]);
        });
      }
      STRATA_UNROLL
      for (int k = 0; k < parts; ++k) {
        store_first(sums + j + k * D, sum[k], inside(k));
        store_first(sums + width + j + k * D, product[k], inside(k));
      }
    });
  };
  std::ptrdiff_t at = 0;
  for (std::ptrdiff_t rows = size / width; rows > 0; rows -= rows_at_a_time, at += std::ptrdiff_t(rows_at_a_time) * width)
    some_rows(at, int(std::min<std::ptrdiff_t>(rows, rows_at_a_time)), width);
  if (size % width != 0) some_rows(size - size % width, 1, int(size % width));
}

/// y = f(x * scale + shift); scale and shift have `width` elements.
template <class T, class Activation>
[[gnu::noinline]] void scale_rows(const T* x, std::ptrdiff_t size, int width, const T* scale, const T* shift, T* y) {
  for (std::ptrdiff_t at = 0; at < size; at += width)
    for_vectors_unrolled<T, 4>(std::min<std::ptrdiff_t>(width, size - at), [&](std::ptrdiff_t j, auto lane) STRATA_INLINE {
      const vec<T> sum = multiply_add(lane.load(x + at + j), lane.load(scale + j), lane.load(shift + j));
      lane.store(y + at + j, vector_activation<Activation>::template value<T>(sum));
    });
}

/// The values that backward needs of each channel, `stride` elements each. With g = dy * slope(y) and d = x - mean:
///   dx = scale * (g - mean_of_g) + of_d * d,  dgamma = sum_of_gd * inverse_deviation,  dbeta = sum_of_g.
/// If all elements of a channel are equal, d and dgamma are exactly 0. If there is only one element, dx is, too.
struct batch_norm_table {
  enum index { mean, mean_of_g, scale, of_d, inverse_deviation, sum_of_gd, sum_of_g, count };
};

/// Computes dx, unless it is null. Adds the sums of g d and of g over the rows to those of the table.
template <class T, class Activation>
[[gnu::noinline]] void normalized_gradients(const T* dy, const T* y, const T* x, std::ptrdiff_t size, int width, T* table,
                                            std::ptrdiff_t stride, T* dx, bool add) {
  using t = batch_norm_table;
  const auto some_rows = [&](std::ptrdiff_t from, int rows, int columns) STRATA_INLINE {
    for_vectors<T>(columns, [&](std::ptrdiff_t j, auto lane) STRATA_INLINE {
      const auto of = [&](t::index i) STRATA_INLINE { return lane.load(table + i * stride + j); };
      const vec<T> mean = of(t::mean), mean_of_g = of(t::mean_of_g), scale = of(t::scale), of_d = of(t::of_d);
      vec<T> gd = broadcast(T(0)), sum = gd;
      std::ptrdiff_t at = from + j;
      for (int r = 0; r < rows; ++r, at += width) {
        const vec<T> d = lane.load(x + at) - mean, g = rounded<T>(lane.load(dy + at) * slope_at<Activation>(lane, y + at));
        sum += g;
        gd = multiply_add(g, d, gd);
        if (dx) put<T>(lane, dx + at, multiply_add(g - mean_of_g, scale, rounded<T>(d * of_d)), add);
      }
      lane.store(table + t::sum_of_gd * stride + j, of(t::sum_of_gd) + gd);
      lane.store(table + t::sum_of_g * stride + j, of(t::sum_of_g) + sum);
    });
  };
  std::ptrdiff_t at = 0;
  for (std::ptrdiff_t rows = size / width; rows > 0; rows -= rows_at_a_time, at += std::ptrdiff_t(rows_at_a_time) * width)
    some_rows(at, int(std::min<std::ptrdiff_t>(rows, rows_at_a_time)), width);
  if (size % width != 0) some_rows(size - size % width, 1, int(size % width));
  for_vectors<T>(width, [&](std::ptrdiff_t j, auto lane) STRATA_INLINE {
    T* const to = table + t::sum_of_gd * stride + j;
    lane.store(to, lane.load(to) * lane.load(table + t::inverse_deviation * stride + j));
  });
}

/// The mean and variance of up to lanes<double> channels.
struct channel_moments {
  vec<double> mean, variance;

  vec<double> inverse_deviation(double epsilon) const { return 1.0 / sqrt<double>(variance + epsilon); }
};

/// The moments of a batch, from the sums of x and x^2 over `elements` elements. The variance is the biased one; rounding must not
/// make it negative.
inline channel_moments moments_of_batch(const double* sums, int C, double elements, int c, int n) {
  const vec<double> mean = load_first(sums + c, n) / elements;
  const vec<double> variance = load_first(sums + C + c, n) / elements - rounded<double>(mean * mean);
  return {mean, variance > 0.0 ? variance : vec<double>{}};
}

/// Calls f(first channel, number of channels) for a vector of doubles at a time.
template <class F>
STRATA_INLINE inline void for_channels(int C, F&& f) {
  for (int c = 0; c < C; c += lanes<double>) f(c, std::min(C - c, lanes<double>));
}

/// y = x * scale + shift. gamma and beta may be null. of(c, n) returns the moments: those of x itself (of_batch), or others.
template <class T, class Moments>
void channel_scales(int C, double epsilon, const T* gamma, const T* beta, bool of_batch, Moments&& of, T* scale, T* shift) {
  for_channels(C, [&](int c, int n) {
    const channel_moments m = of(c, n);
    vec<double> inverse = m.inverse_deviation(epsilon);
    // All elements equal the mean, so y must be exactly beta.
    if (of_batch) inverse = m.variance > 0.0 ? inverse : broadcast(0.0);
    store_doubles(scale + c, gamma ? load_as_doubles(gamma + c, n) * inverse : inverse, n);
    // From the rounded scale: its rounding error is multiplied by the mean.
    const vec<double> from = rounded<double>(-m.mean * load_as_doubles(scale + c, n));
    store_doubles(shift + c, beta ? load_as_doubles(beta + c, n) + from : from, n);
  });
}
template <class T>
[[gnu::noinline]] void scales_of_batch(const double* sums, int C, double elements, double epsilon, const T* gamma, const T* beta,
                                       T* scale, T* shift) {
  channel_scales(
      C, epsilon, gamma, beta, true, [&](int c, int n) { return moments_of_batch(sums, C, elements, c, n); }, scale, shift);
}
template <class T>
[[gnu::noinline]] void scales_of_state(const T* mean, const T* variance, int C, double epsilon, const T* gamma, const T* beta,
                                       T* scale, T* shift) {
  channel_scales(
      C, epsilon, gamma, beta, false,
      [&](int c, int n) { return channel_moments{load_as_doubles(mean + c, n), load_as_doubles(variance + c, n)}; }, scale,
      shift);
}

/// With z = (x - mean) / deviation over N elements: dx = gamma / deviation * (g - sum(g) / N - z * sum(g z) / N).
template <class T>
[[gnu::noinline]] void tables_of_batch(const double* sums, int C, double elements, double epsilon, const T* gamma, T* table,
                                       std::ptrdiff_t stride) {
  using t = batch_norm_table;
  for_channels(C, [&](int c, int n) {
    const auto store = [&](t::index i, vec<double> v) { store_doubles(table + i * stride + c, v, n); };
    const channel_moments m = moments_of_batch(sums, C, elements, c, n);
    const vec<double> inverse = m.inverse_deviation(epsilon), sum = load_first(sums + 2 * C + c, n);
    const vec<double> sum_z = (load_first(sums + 3 * C + c, n) - rounded<double>(m.mean * sum)) * inverse;
    const vec<double> scale = gamma ? load_as_doubles(gamma + c, n) * inverse : inverse;
    store(t::mean, m.mean), store(t::mean_of_g, sum / elements);
    store(t::scale, scale), store(t::of_d, -scale * inverse * sum_z / elements), store(t::inverse_deviation, inverse);
  });
}

/// moving = momentum * moving + (1 - momentum) * statistic of the batch.
template <class T>
[[gnu::noinline]] void follow_batch(const double* sums, int C, double elements, double momentum, T* mean, T* variance) {
  for_channels(C, [&](int c, int n) {
    const channel_moments m = moments_of_batch(sums, C, elements, c, n);
    const auto follow = [&](T* moving, vec<double> statistic) {
      const vec<double> before = load_as_doubles(moving + c, n);
      store_doubles(moving + c, multiply_add(broadcast(momentum), before - statistic, statistic), n);
    };
    follow(mean, m.mean), follow(variance, m.variance);
  });
}

/// Batch normalization, then an activation; `linear` for none. x, y, dy, dx: (count, ..., C); gamma, beta, moving mean and moving
/// variance: (C).
template <batch_norm_settings S, class Activation, class P, shape In>
struct batch_norm_kernel {
  using T = typename P::value_type;
  static constexpr int C = In.last(), width = row_width(C), repeats = width / C, stride = aligned_size<T>(width);
  /// Forward: the sums of x and x^2 per channel. After them, backward: the sums of g and g x, with g = dy * slope(y).
  static constexpr kernel_traits traits{
      .scratch = batch_norm_table::count * stride, .statistics = 2 * C, .reads_output = !std::is_same_v<Activation, linear>};
  static constexpr double epsilon = S.epsilon.value(), momentum = S.momentum.value();
  static constexpr int gamma = 0, beta = S.scale, moving_mean = S.scale + S.center, moving_variance = moving_mean + 1;

  static std::ptrdiff_t size(const operands<T>& o) { return std::ptrdiff_t(o.count) * In.size(); }
  static double elements(const operands<T>& o) { return o.total * (In.size() / C); }
  static const T* gamma_of(const operands<T>& o) { return S.scale ? o.w[gamma] : nullptr; }
  static const T* beta_of(const operands<T>& o) { return S.center ? o.w[beta] : nullptr; }

  /// Adds the sums over all rows to the 2 C sums at `sums`.
  template <class Of>
  static void add_sums(const operands<T>& o, double* sums) {
    if constexpr (repeats == 1) {
      row_sums<T, Of>(o.dy, o.y, o.x[0], size(o), C, sums);
    } else {
      alignas(64) double of_row[2 * width] = {};
      row_sums<T, Of>(o.dy, o.y, o.x[0], size(o), width, of_row);
      for (int half = 0; half < 2; ++half)
        for (int i = 0; i < width; i += C)
          for (int c = 0; c < C; ++c) sums[half * C + c] += of_row[half * width + i + c];
    }
  }
  static void collect(const operands<T>& o) { add_sums<of_squares>(o, o.statistics); }
  static void collect_backward(const operands<T>& o) { add_sums<Activation>(o, o.statistics + 2 * C); }

  /// Repeats C elements up to the width of a row.
  static void repeat(T* table) {
    for (int i = C; i < width; ++i) table[i] = table[i - C];
  }
  static void apply(const operands<T>& o) {
    repeat(o.scratch), repeat(o.scratch + stride);
    scale_rows<T, Activation>(o.x[0], size(o), width, o.scratch, o.scratch + stride, o.y);
  }
  static void forward(const operands<T>& o) {
    scales_of_batch(o.statistics, C, elements(o), epsilon, gamma_of(o), beta_of(o), o.scratch, o.scratch + stride);
    apply(o);
  }
  /// Computes the scales from the moving statistics.
  static void find_scales(const operands<T>& o) {
    scales_of_state(o.w[moving_mean], o.w[moving_variance], C, epsilon, gamma_of(o), beta_of(o), o.scratch, o.scratch + stride);
  }
  static void infer(const operands<T>& o) {
    find_scales(o);
    apply(o);
  }
  static void update_state(const operands<T>& o, T* const* w) {
    follow_batch(o.statistics, C, elements(o), momentum, w[moving_mean], w[moving_variance]);
  }

  static void backward(const operands<T>& o) {
    using t = batch_norm_table;
    T* const table = o.scratch;
    tables_of_batch(o.statistics, C, elements(o), epsilon, gamma_of(o), table, stride);
    for (int i = 0; i < t::sum_of_gd; ++i) repeat(table + i * stride);
    std::fill_n(table + t::sum_of_gd * stride, 2 * stride, T{});
    normalized_gradients<T, Activation>(o.dy, o.y, o.x[0], size(o), width, table, stride, o.dx[0], o.adds_dx[0]);
    const auto gradient = [&](T* to, const T* sums) {
      for (int i = 0; i < width; i += C)
        for (int c = 0; c < C; ++c) to[c] = (i > 0 || o.adds_dw ? to[c] : T{}) + sums[i + c];
    };
    if (S.scale && o.dw[gamma]) gradient(o.dw[gamma], table + t::sum_of_gd * stride);
    if (S.center && o.dw[beta]) gradient(o.dw[beta], table + t::sum_of_g * stride);
  }
};

/// dx = dy * slope(y) * scale, or adds that; scale has `width` elements.
template <class T, class Activation>
[[gnu::noinline]] void scaled_gradients(const T* dy, const T* y, std::ptrdiff_t size, int width, const T* scale, T* dx,
                                        bool add) {
  for (std::ptrdiff_t at = 0; at < size; at += width)
    for_vectors_unrolled<T, 4>(std::min<std::ptrdiff_t>(width, size - at), [&](std::ptrdiff_t j, auto lane) STRATA_INLINE {
      const vec<T> g = rounded<T>(lane.load(dy + at + j) * slope_at<Activation>(lane, y + at + j));
      put<T>(lane, dx + at + j, rounded<T>(g * lane.load(scale + j)), add);
    });
}

/// The kernel of a frozen layer: uses the moving statistics, which stay as they are; gamma and beta have no gradients.
template <batch_norm_settings S, class Activation, class P, shape In>
struct frozen_batch_norm_kernel {
  using in_training = batch_norm_kernel<S, Activation, P, In>;
  using T = typename P::value_type;
  static constexpr kernel_traits traits{
      .scratch = 2 * in_training::stride, .reads_input = false, .reads_output = in_training::traits.reads_output};

  static void forward(const operands<T>& o) { in_training::infer(o); }
  static void backward(const operands<T>& o) {
    if (!o.dx[0]) return;
    in_training::find_scales(o);
    in_training::repeat(o.scratch);
    scaled_gradients<T, Activation>(o.dy, o.y, in_training::size(o), in_training::width, o.scratch, o.dx[0], o.adds_dx[0]);
  }
};

}  // namespace simd

namespace core {
template <batch_norm_settings S, class P, shape In>
struct kernel<cpu, batch_normalization<S>, P, In>
    : std::conditional_t<S.frozen, simd::frozen_batch_norm_kernel<S, linear, P, In>, simd::batch_norm_kernel<S, linear, P, In>> {
};

template <batch_norm_settings S, class Activation, class P, shape In>
  requires simd::follows_in_registers<Activation>
struct kernel<cpu, fused<batch_normalization<S>, Activation>, P, In>
    : std::conditional_t<S.frozen, simd::frozen_batch_norm_kernel<S, Activation, P, In>,
                         simd::batch_norm_kernel<S, Activation, P, In>> {};
}  // namespace core

}  // namespace strata
