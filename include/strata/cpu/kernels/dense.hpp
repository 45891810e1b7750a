// Dense layers, alone or with the activation that follows: y = f(x W + b).
#pragma once
#include <algorithm>
#include <strata/cpu/backend.hpp>
#include <strata/cpu/products/packed_product.hpp>
#include <strata/cpu/products/skipped_zeros.hpp>
#include <strata/kernel/gradient_sink.hpp>
#include <strata/kernel/kernel.hpp>
#include <strata/layers/dense.hpp>

namespace strata {

namespace simd {

/// dx (+)= dz W^T for few samples: squares of W are transposed in registers and used at once.
template <class T>
struct few_samples {
  static constexpr int L = lanes<T>, most = registers == 32 ? 8 : 4;

  static void input_gradient(const T* dz, int count, const T* w, int K, int N, T* dx, bool add) {
    for (; count > 0; count -= most, dz += most * std::ptrdiff_t(N), dx += most * std::ptrdiff_t(K))
      if (count == 1)
        some<1>(dz, 1, w, K, N, dx, add);
      else
        some<most>(dz, std::min(most, count), w, K, N, dx, add);
  }

 private:
  /// With fewer than M samples, and with fewer than L rows of W, the last one repeats; the extra results are not stored.
  template <int M>
  [[gnu::noinline]] STRATA_ONE_COPY static void some(const T* dz, int count, const T* w, int K, int N, T* dx, bool add) {
    const int whole = N / L * L;
    const T* d[M];
    alignas(64) T ends[M][L] = {};  // the columns of dz that do not fill a square
    for (int m = 0; m < M; ++m) {
      d[m] = dz + std::min(m, count - 1) * std::ptrdiff_t(N);
      std::copy_n(d[m] + whole, N - whole, ends[m]);
    }
    for (int k = 0; k < K; k += L, w += L * std::ptrdiff_t(N)) {
      const int rows = K - k < L ? K - k : L;
      T* const to = dx + k;
      vec<T> sum[M];
      STRATA_UNROLL
      for (int m = 0; m < M; ++m)
        sum[m] = add ? load_first(to + (m < count ? m : count - 1) * std::ptrdiff_t(K), rows) : vec<T>{};
      for (int n = 0; n < N; n += L) {
        const T* from[M];
        STRATA_UNROLL
        for (int m = 0; m < M; ++m) from[m] = n < whole ? d[m] + n : ends[m];
        vec<T> r[L];
        if (rows == L && n < whole) {
          STRATA_UNROLL
          for (int i = 0; i < L; ++i) r[i] = load(w + n + i * std::ptrdiff_t(N));
        } else {
          const int columns = N - n < L ? N - n : L;
          STRATA_UNROLL
          for (int i = 0; i < L; ++i) r[i] = load_first(w + n + (i < rows ? i : rows - 1) * std::ptrdiff_t(N), columns);
        }
        transpose<T>(r);
        STRATA_UNROLL
        for (int j = 0; j < L; ++j) {
          STRATA_UNROLL
          for (int m = 0; m < M; ++m) sum[m] = simd::multiply_add(broadcast(from[m][j]), r[j], sum[m]);
        }
      }
      STRATA_UNROLL
      for (int m = 0; m < M; ++m)
        if (m < count) store_first(to + m * std::ptrdiff_t(K), sum[m], rows);
    }
  }
};

/// dx (+)= dz W^T for W: (K, N), without a transposed copy of W: the lanes of a vector are samples. dz is transposed, and so are
/// tiles of dx^T before they are stored.
template <class T, int N>
struct samples_as_vectors {
  static constexpr int L = lanes<T>, most = most_vectors * L, tile_rows = 48, piece = 8 * 1024 / int(sizeof(T)) / most_vectors;
  static constexpr int scratch = (N + tile_rows) * most;

  /// For at most `vectors` vectors of samples at a time: less code where the caller has no more.
  template <int vectors = most_vectors>
  [[gnu::noinline]] static void input_gradient(const T* dz, int count, const T* w, int K, T* dx, bool add, T* buffer) {
    T* const tile = buffer + N * most;
    for (int first = 0; first < count; first += most, dz += most * N, dx += most * std::ptrdiff_t(K)) {
      const int samples = std::min(most, count - first), width = padded<T>(samples);
      transpose(dz, N, buffer, width, samples, N, true);
      for (int k = 0; k < K; k += tile_rows) {
        const int rows = std::min(tile_rows, K - k);
        const T* const from = w + std::ptrdiff_t(k) * N;
        if (add) transpose(dx + k, K, tile, width, samples, rows, true);
        switch (width / L) {
          case 1:
            one_vector(from, rows, buffer, tile, add);
            break;
          case 2:
            some_vectors<std::min(2, vectors)>(from, rows, buffer, tile, add);
            break;
          case 3:
            some_vectors<std::min(3, vectors)>(from, rows, buffer, tile, add);
            break;
          default:
            some_vectors<vectors>(from, rows, buffer, tile, add);
        }
        transpose(tile, width, dx + k, K, rows, samples);
      }
    }
  }

 private:
  /// tile (+)= rows [0, rows) of W times dz^T, whose rows have V vectors.
  template <int V>
  [[gnu::noinline]] static void some_vectors(const T* w, int rows, const T* dz, T* tile, bool add) {
    constexpr int width = V * L;
    if constexpr (V == 1) {
      one_vector(w, rows, dz, tile, add);
    } else {
      for (int n = 0; n < N; n += piece) {
        const product<T> p{.rows = rows,
                           .a = w + n,
                           .a_rows = {N},
                           .length = std::min(piece, N - n),
                           .b = dz + n * width,
                           .b_stride = width,
                           .c = tile,
                           .c_rows = {width},
                           .add = add || n > 0};
        detail::panel<T, block_of(tile_rows, V).rows, V, L, linear>(p, 0);
      }
    }
  }
  /// some_vectors for rows of dz^T of one vector: takes more rows of W at a time, for enough work per load.
  static void one_vector(const T* w, int rows, const T* dz, T* tile, bool add) {
    constexpr int R = registers / 2;
    for (; rows >= R; rows -= R, w += R * N, tile += R * L) columns<R>(w, dz, tile, add);
    for (; rows > 0; --rows, w += N, tile += L) columns<1>(w, dz, tile, add);
  }
  template <int Rows>
  [[gnu::noinline]] static void columns(const T* w, const T* dz, T* tile, bool add) {
    vec<T> sum[Rows] = {};
    if (add) {
      STRATA_UNROLL
      for (int r = 0; r < Rows; ++r) sum[r] = load(tile + r * L);
    }
    for (int j = 0; j < N; ++j, dz += L) {
      vec<T> d = load(dz);
      keep(d);
      STRATA_UNROLL
      for (int r = 0; r < Rows; ++r) sum[r] = simd::multiply_add(broadcast(w[r * N + j]), d, sum[r]);
    }
    STRATA_UNROLL
    for (int r = 0; r < Rows; ++r) store(tile + r * L, sum[r]);
  }
};

/// The three products of a dense layer with K inputs and N outputs. The choice between algorithms was measured on Zen 5. All of
/// them give the same bits for finite values. If many elements of x are zero, these are skipped: then weights and gradients that
/// are inf or nan are not even multiplied by them.
template <class T, int K, int N>
struct dense_products {
  static constexpr int L = lanes<T>;
  /// Rows of a piece of the weight gradient. Pieces begin at multiples of 64 bytes.
  static constexpr int piece_rows = 48, piece_columns = 8 * 1024 / int(sizeof(T)) / 16;
  /// The layer is large enough for skipping zeros to pay.
  static constexpr bool looks_for_zeros = K >= 64 && N >= 32;
  static constexpr int scratch =
      aligned_size<T>(std::max({packed_numbers<T>, samples_as_vectors<T, N>::scratch, piece_rows* std::min(N, piece_columns),
                                looks_for_zeros ? std::max(skipping_scratch<T>, skipping_gradient_scratch<T, N>) : 0}));
  /// The most vectors of samples with which dz and dx are smaller than W.
  static constexpr int few_vectors = int(long(K) * N / ((long(K) + N) * L));
  /// W is larger than any second-level cache.
  static constexpr bool large = double(K) * N * sizeof(T) > 4 * 1024 * 1024;
  /// The widest panel: narrow where a wide one would use too few sets of the cache.
  static constexpr int most = detail::spread_over_few_sets<T>(N) ? std::min(2, most_vectors) : most_vectors;

  template <class Activation>
  static void forward(const T* x, const T* w, const T* bias, T* y, int count, T* buffer) {
    using epilogue = std::conditional_t<looks_for_zeros, of_unsigned_zeros<Activation>, Activation>;
    const product<T> p{
        .rows = count, .a = x, .a_rows = {K}, .length = K, .b = w, .b_stride = N, .c = y, .c_rows = {N}, .bias = bias};
    if constexpr (looks_for_zeros)
      if (skips(x, count)) return multiply_skipping<N, epilogue>(p, buffer);
    if constexpr (large)
      if (count >= 32) return multiply_packed<N, 0, epilogue>(p, storage::plain, buffer);
    if (most < most_vectors && count >= 8) return multiply<N, 0, epilogue, most>(p);
    multiply<N, 0, epilogue>(p);
  }

  static void weight_gradient(const T* x, const T* dz, T* dw, int count, bool add, T* buffer) {
    gradient_of_rows<K>(x, K, dz, count, dw, add, skips(x, count), buffer);
  }

  /// Hands over the two factors, or pieces that are still in the first-level cache, or, if rows are too long for such pieces, the
  /// whole gradient.
  static void weight_gradient_into(const T* x, const T* dz, int count, T* dw, T* buffer, const gradient_sink<T>& take) {
    if (take.wants_product(count, N)) return take.take_product(take.context, 0, x, dz, count, K, N);
    if constexpr (N > piece_columns) {
      weight_gradient(x, dz, dw, count, false, buffer);
      take.take(take.context, 0, 0, long(K) * N, dw);
    } else {
      static_assert(skipping_gradient_scratch<T, N> == 0);
      T* const piece = buffer;
      const bool skipping = skips(x, count);
      for (int k = 0; k < K; k += piece_rows) {
        const int rows = std::min(piece_rows, K - k), size = rows * N;
        gradient_of_rows<piece_rows>(x + k, rows, dz, count, piece, false, skipping, nullptr);
        std::fill(piece + size, piece + aligned_size<T>(size), T{});
        take.take(take.context, 0, long(k) * N, size, piece);
      }
    }
  }

  static void input_gradient(const T* dz, const T* w, T* dx, int count, bool add, T* buffer) {
    if (count <= L / 2) return few_samples<T>::input_gradient(dz, count, w, K, N, dx, add);
    // Transposes the smaller one: dz and dx, or W.
    if constexpr (few_vectors > 0)
      if (padded<T>(count) <= few_vectors * L)
        return samples_as_vectors<T, N>::template input_gradient<std::min(few_vectors, most_vectors)>(dz, count, w, K, dx, add,
                                                                                                      buffer);
    const product<T> p{
        .rows = count, .a = dz, .a_rows = {N}, .length = N, .b = w, .b_stride = N, .c = dx, .c_rows = {K}, .add = add};
    multiply_packed<K, 0>(p, storage::transposed, buffer);
  }

 private:
  static bool skips(const T* x, int count) { return looks_for_zeros && many_zeros(x, count * std::ptrdiff_t(K), N); }

  /// Rows: as in multiply.
  template <int Rows>
  static void gradient_of_rows(const T* x, int rows, const T* dz, int count, T* dw, bool add, bool skipping, T* buffer) {
    if constexpr (looks_for_zeros)
      if (skipping) return weight_gradient_skipping<N>(x, K, rows, dz, count, dw, add, buffer);
    using epilogue = of_unsigned_zeros<linear>;  // as in apply_rule_to_product
    multiply<N, Rows, epilogue>(product<T>{.rows = rows,
                                           .a = x,
                                           .a_rows = {1},
                                           .length = count,
                                           .step = K,
                                           .b = dz,
                                           .b_stride = N,
                                           .c = dw,
                                           .c_rows = {N},
                                           .add = add});
  }
};

/// A dense layer, then an activation; `linear` for none. x, dx: (count, K); W: (K, N); b: (N); y, dy: (count, N).
template <dense_settings S, class Activation, class P, shape In>
struct dense_kernel {
  using T = typename P::value_type;
  static constexpr int K = In[0], N = S.units;
  using products = dense_products<T, K, N>;
  static constexpr bool activated = !std::is_same_v<Activation, linear>;
  static constexpr kernel_traits traits{
      .scratch = products::scratch, .scratch_per_sample = activated ? N : 0, .reads_output = activated};

  static void forward(const operands<T>& o) {
    products::template forward<Activation>(o.x[0], o.w[0], S.bias ? o.w[1] : nullptr, o.y, o.count, o.scratch);
  }

  static void backward(const operands<T>& o) { gradients(o, gradient_of_sums(o)); }

  /// Backward without stored weight gradients: passes them on in pieces as soon as they are computed.
  static void backward_into(const operands<T>& o, const gradient_sink<T>& take) { gradients_into(o, gradient_of_sums(o), take); }

  /// The gradients of x, W and b from dz, the gradient of x W + b: (count, N). Losses that compute dz themselves call this.
  static void gradients(const operands<T>& o, const T* dz) {
    if (S.bias && o.dw[1]) column_sums(dz, o.count, N, o.dw[1], o.adds_dw);
    if (o.dw[0]) products::weight_gradient(o.x[0], dz, o.dw[0], o.count, o.adds_dw, o.scratch);
    if (o.dx[0]) products::input_gradient(dz, o.w[0], o.dx[0], o.count, o.adds_dx[0], o.scratch);
  }
  static void gradients_into(const operands<T>& o, const T* dz, const gradient_sink<T>& take) {
    if (o.dx[0]) products::input_gradient(dz, o.w[0], o.dx[0], o.count, o.adds_dx[0], o.scratch);
    if (S.bias && o.dw[1]) {
      column_sums(dz, o.count, N, o.scratch, false);
      std::fill(o.scratch + N, o.scratch + aligned_size<T>(N), T{});
      take.take(take.context, 1, 0, N, o.scratch);
    }
    if (o.dw[0]) products::weight_gradient_into(o.x[0], dz, o.count, o.dw[0], o.scratch, take);
  }

 private:
  static const T* gradient_of_sums(const operands<T>& o) {
    if constexpr (!activated) return o.dy;
    through_activation<Activation>(o.dy, o.y, o.scratch + traits.scratch, o.count * N);
    return o.scratch + traits.scratch;
  }
};

}  // namespace simd

namespace core {
template <dense_settings S, class P, shape In>
struct kernel<cpu, affine<S>, P, In> : simd::dense_kernel<S, linear, P, In> {};

template <dense_settings S, class Activation, class P, shape In>
  requires simd::follows_in_registers<Activation>
struct kernel<cpu, fused<affine<S>, Activation>, P, In> : simd::dense_kernel<S, Activation, P, In> {};
}  // namespace core

}  // namespace strata
