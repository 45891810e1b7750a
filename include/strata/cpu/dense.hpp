// Dense layers, alone or with their activation: y = f(x W + b).
#pragma once
#include <algorithm>
#include <strata/cpu/backends.hpp>
#include <strata/cpu/gemm.hpp>
#include <strata/kernel/kernel.hpp>
#include <strata/layers/dense.hpp>

namespace strata {

namespace simd {

/// dx (+)= dz W^T for W: K x N without a transposed copy of W: the samples are the vector. dz is transposed, and each tile of
/// dx^T in registers on its way out.
template <class T, int N>
struct samples_as_vectors {
  static constexpr int L = lanes<T>, most = 4 * L, scratch = N * most;

  /// One tile: Rows inputs of L samples.
  template <int Rows>
  STRATA_INLINE static void tile(const T* w, const T* dz, int dz_stride, vec<T>* sum) {
    unroll<Rows>([&](auto r) STRATA_INLINE { sum[r] = vec<T>{}; });
    for (int j = 0; j < N; ++j, dz += dz_stride) {
      vec<T> d = load(dz);
      keep(d);
      unroll<Rows>([&](auto r) STRATA_INLINE { sum[r] = broadcast(w[r * N + j]) * d + sum[r]; });
    }
  }

  [[gnu::noinline]] static void input_gradient(const T* dz, int count, const T* w, int K, T* dx, bool add, T* scratch) {
    const std::ptrdiff_t stride = K;
    for (int first = 0; first < count; first += most, dz += most * N, dx += most * stride) {
      const int samples = std::min(most, count - first), width = padded<T>(samples);
      transpose(dz, N, scratch, width, samples, N, true);
      for (int k = 0; k < K; k += L)
        for (int s = 0; s < samples; s += L) {
          const int rows = std::min(L, K - k), columns = std::min(L, samples - s);
          vec<T> r[L] = {};
          if (rows == L)
            tile<L>(w + std::ptrdiff_t(k) * N, scratch + s, width, r);
          else
            for (int i = 0; i < rows; ++i) tile<1>(w + std::ptrdiff_t(k + i) * N, scratch + s, width, r + i);
          transpose<T>(r);
          T* const to = dx + s * stride + k;
          unroll<L>([&](auto i) STRATA_INLINE {
            if (i < columns) {
              if (rows == L)
                store(to + i * stride, add ? load(to + i * stride) + r[i] : r[i]);
              else
                store_first(to + i * stride, add ? load_first(to + i * stride, rows) + r[i] : r[i], rows);
            }
          });
        }
    }
  }
};

/// The three products of a dense layer: K numbers in, N out.
template <class T, int K, int N>
struct dense_products {
  static constexpr int L = lanes<T>;
  /// Rows of W that are transposed at a time, where that is cheaper than having the samples as vectors.
  static constexpr int chunk = std::min(K, std::max(4 * L, 8192 / N / (4 * L) * (4 * L)));
  static constexpr int scratch = aligned_size<T>(std::max(N * padded<T>(chunk), samples_as_vectors<T, N>::scratch));

  template <class Activation>
  static void forward(const T* x, const T* w, const T* bias, T* y, int count) {
    multiply<N, 0, Activation>(product<T>{count, x, {K}, one_run, 1, K, 1, w, N, y, {N}, bias});
  }

  static void weight_gradient(const T* x, const T* dz, T* dw, int count, bool add) {
    multiply<N, K>(product<T>{K, x, {1}, one_run, 1, count, K, dz, N, dw, {N}, nullptr, add});
  }

  /// dx += dz W^T for inputs k ... k + Columns - 1.
  template <int Columns>
  static void through_transposed(const T* dz, const T* w, T* dx, int count, bool add, T* scratch, int k) {
    transpose(w + k * N, N, scratch, padded<T>(Columns), Columns, N, true);
    multiply<Columns, 0>(product<T>{count, dz, {N}, one_run, 1, N, 1, scratch, padded<T>(Columns), dx + k, {K}, nullptr, add});
  }
  static void input_gradient(const T* dz, const T* w, T* dx, int count, bool add, T* scratch) {
    // Costs in elements moved: transposing takes about half a cycle per element, a vector of products about as long.
    const double whole = padded<T>(count), products = double(K) * N / L;
    if (double(K) * N + products * count > (K + N) * whole + products * 1.1 * whole)
      return samples_as_vectors<T, N>::input_gradient(dz, count, w, K, dx, add, scratch);
    for (int k = 0; k + chunk <= K; k += chunk) through_transposed<chunk>(dz, w, dx, count, add, scratch, k);
    if constexpr (K % chunk != 0) through_transposed<K % chunk>(dz, w, dx, count, add, scratch, K - K % chunk);
  }
};

/// Dense layer with an activation behind it; `linear` for none.
template <dense_settings S, class Activation, class P, shape In>
struct dense_kernel : kernel_defaults {
  using T = typename P::value_type;
  static constexpr int K = In[0], N = S.units;
  using products = dense_products<T, K, N>;
  static constexpr bool activated = !std::is_same_v<Activation, linear>;
  static constexpr bool reads_output = activated;
  static constexpr int scratch = products::scratch, scratch_per_sample = activated ? N : 0;

  static void forward(const operands<T>& o) {
    products::template forward<Activation>(o.x[0], o.w[0], S.bias ? o.w[1] : nullptr, o.y, o.count);
  }

  static void backward(const operands<T>& o) {
    const T* dz = o.dy;
    if constexpr (activated) {
      through_activation<Activation>(o.dy, o.y, o.scratch + scratch, o.count * N);
      dz = o.scratch + scratch;
    }
    gradients(o, dz);
  }

  /// Everything behind the gradient of the sums; for losses that know it.
  static void gradients(const operands<T>& o, const T* dz) {
    if (S.bias && o.dw[1]) column_sums(dz, o.count, N, o.dw[1], o.adds_dw);
    if (o.dw[0]) products::weight_gradient(o.x[0], dz, o.dw[0], o.count, o.adds_dw);
    if (o.dx[0]) products::input_gradient(dz, o.w[0], o.dx[0], o.count, o.adds_dx[0], o.scratch);
  }
};

}  // namespace simd

template <dense_settings S, class P, shape In>
struct kernel<cpu, affine<S>, P, In> : simd::dense_kernel<S, linear, P, In> {};

template <dense_settings S, class Activation, class P, shape In>
  requires simd::follows_in_registers<Activation>
struct kernel<cpu, fused<affine<S>, Activation>, P, In> : simd::dense_kernel<S, Activation, P, In> {};

}  // namespace strata
