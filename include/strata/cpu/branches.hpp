// Joins of branches on vectors: the sum, alone or with the activation behind it, and channels side by side.
#pragma once
#include <algorithm>
#include <strata/cpu/backends.hpp>
#include <strata/cpu/elementwise.hpp>
#include <strata/kernel/kernel.hpp>
#include <strata/layers/branches.hpp>

namespace strata {

namespace simd {

/// y = f(x[0] + x[1] + ...) for n numbers.
template <class T, int Branches, class Activation>
[[gnu::noinline]] void sum_arrays(const T* const* x, std::ptrdiff_t n, T* y) {
  const T* from[Branches];
  std::copy_n(x, Branches, from);
  for_vectors_unrolled<T, 2>(n, [&](std::ptrdiff_t i, auto lane) STRATA_INLINE {
    vec<T> sum = lane.load(from[0] + i);
    unroll<Branches - 1>([&](auto k) STRATA_INLINE { sum += lane.load(from[k + 1] + i); });
    lane.store(y + i, vector_activation<Activation>::template value<T>(sum));
  });
}

/// dx[k] (+)= dy * slope(y) for every k that is wanted. Some may be the same array, in which case the later ones add.
template <class T, int Branches, class Activation>
[[gnu::noinline]] void spread_gradient(const T* dy, const T* y, std::ptrdiff_t n, T* const* dx, const bool* adds) {
  T* to[Branches];
  bool add[Branches];
  std::copy_n(dx, Branches, to), std::copy_n(adds, Branches, add);
  for_vectors<T>(n, [&](std::ptrdiff_t i, auto lane) STRATA_INLINE {
    const vec<T> g = lane.load(dy + i) * slope_at<Activation>(lane, y + i);
    unroll<Branches>([&](auto k) STRATA_INLINE {
      if (to[k]) put<T>(lane, to[k] + i, g, add[k]);
    });
  });
}

template <class Activation, class P, shape In, int Branches>
struct sum_kernel : kernel_defaults {
  using T = typename P::value_type;
  static constexpr bool reads_input = false, reads_output = !std::is_same_v<Activation, linear>;

  static void forward(const operands<T>& o) {
    sum_arrays<T, Branches, Activation>(o.x, std::ptrdiff_t(o.count) * In.size(), o.y);
  }
  static void backward(const operands<T>& o) {
    spread_gradient<T, Branches, Activation>(o.dy, o.y, std::ptrdiff_t(o.count) * In.size(), o.dx, o.adds_dx);
  }
};

}  // namespace simd

template <class P, shape First, shape... Rest>
struct kernel<cpu, sum_of_branches, P, First, Rest...> : simd::sum_kernel<linear, P, First, 1 + int(sizeof...(Rest))> {};

template <class Activation, class P, shape First, shape... Rest>
  requires simd::follows_in_registers<Activation>
struct kernel<cpu, fused<sum_of_branches, Activation>, P, First, Rest...>
    : simd::sum_kernel<Activation, P, First, 1 + int(sizeof...(Rest))> {};

template <class P, shape First, shape... Rest>
struct kernel<cpu, stack_of_branches, P, First, Rest...> : kernel_defaults {
  using T = typename P::value_type;
  static constexpr bool reads_input = false;
  static constexpr int branches = 1 + sizeof...(Rest), pixels = First.size() / First.last();
  static constexpr int channels[branches] = {First.last(), Rest.last()...}, all = (First.last() + ... + Rest.last());
  /// Pixels whose numbers stay in the first-level cache until all branches have been there.
  static constexpr std::ptrdiff_t some = std::max(1, 4096 / all);

  /// f(branch, first pixel, pixels, first channel in y)
  static void for_blocks(const operands<T>& o, auto&& f) {
    const std::ptrdiff_t last = std::ptrdiff_t(o.count) * pixels;
    for (std::ptrdiff_t p = 0; p < last; p += some)
      for (int k = 0, at = 0; k < branches; at += channels[k++]) f(k, p, std::min(some, last - p), at);
  }
  static void forward(const operands<T>& o) {
    for_blocks(o, [&](int k, std::ptrdiff_t p, std::ptrdiff_t rows, int at) {
      simd::copy_rows(o.x[k] + p * channels[k], channels[k], o.y + p * all + at, all, rows, channels[k]);
    });
  }
  static void backward(const operands<T>& o) {
    for_blocks(o, [&](int k, std::ptrdiff_t p, std::ptrdiff_t rows, int at) {
      if (o.dx[k])
        simd::copy_rows(o.dy + p * all + at, all, o.dx[k] + p * channels[k], channels[k], rows, channels[k], o.adds_dx[k]);
    });
  }
};

}  // namespace strata
