// Joins that work element by element, on vectors, alone or with the activation that follows.
#pragma once
#include <strata/cpu/backend.hpp>
#include <strata/cpu/simd/elementwise.hpp>
#include <strata/kernel/kernel.hpp>
#include <strata/layers/elementwise_join.hpp>

namespace strata {

namespace simd {

template <class T, int Branches>
STRATA_INLINE inline void copy_pointers(T* const* from, T** to) {
  STRATA_UNROLL
  for (int k = 0; k < Branches; ++k) to[k] = from[k];
}

/// y = activation(join(x[0], x[1], ...)) for n elements.
template <class T, class Join, int Branches, class Activation>
[[gnu::noinline]] void join_arrays(const T* const* x, std::ptrdiff_t n, T* y) {
  const T* from[Branches];
  copy_pointers<const T, Branches>(x, from);
  for_vectors_unrolled<T, 2>(n, [&](std::ptrdiff_t i, auto lane) STRATA_INLINE {
    vec<T> in[Branches];
    STRATA_UNROLL
    for (int k = 0; k < Branches; ++k) in[k] = lane.load(from[k] + i);
    lane.store(y + i, vector_activation<Activation>::template value<T>(Join::template value<T>(in)));
  });
}

/// dx[k] (+)= the gradient of branch k, unless dx[k] is null. Two branches may have the same dx; then the second one adds.
template <class T, class Join, int Branches, class Activation>
[[gnu::noinline]] void join_gradients(const T* const* x, const T* y, const T* dy, std::ptrdiff_t n, T* const* dx,
                                      const bool* adds) {
  const T* from[Branches];
  T* to[Branches];
  bool add[Branches];
  copy_pointers<const T, Branches>(x, from);
  copy_pointers<T, Branches>(dx, to);
  STRATA_UNROLL
  for (int k = 0; k < Branches; ++k) add[k] = adds[k];
  for_vectors<T>(n, [&](std::ptrdiff_t i, auto lane) STRATA_INLINE {
    vec<T> in[Branches], gradient[Branches];
    STRATA_UNROLL
    for (int k = 0; k < Branches; ++k) in[k] = Join::reads_input ? lane.load(from[k] + i) : broadcast(T(0));
    const vec<T> after = lane.load(dy + i) * slope_at<Activation>(lane, y + i);
    Join::template gradients<T>(in, after, gradient);
    STRATA_UNROLL
    for (int k = 0; k < Branches; ++k)
      if (to[k]) put<T>(lane, to[k] + i, gradient[k], add[k]);
  });
}

template <class Join, class Activation, class P, shape In, int Branches>
struct join_kernel {
  using T = typename P::value_type;
  static constexpr kernel_traits traits{.reads_input = Join::reads_input, .reads_output = !std::is_same_v<Activation, linear>};

  static void forward(const operands<T>& o) {
    join_arrays<T, Join, Branches, Activation>(o.x, std::ptrdiff_t(o.count) * In.size(), o.y);
  }
  static void backward(const operands<T>& o) {
    join_gradients<T, Join, Branches, Activation>(o.x, o.y, o.dy, std::ptrdiff_t(o.count) * In.size(), o.dx, o.adds_dx);
  }
};

}  // namespace simd

namespace core {
template <elementwise_join Join, class P, shape First, shape... Rest>
struct kernel<cpu, Join, P, First, Rest...> : simd::join_kernel<Join, linear, P, First, 1 + int(sizeof...(Rest))> {};

template <elementwise_join Join, class Activation, class P, shape First, shape... Rest>
  requires simd::follows_in_registers<Activation>
struct kernel<cpu, fused<Join, Activation>, P, First, Rest...>
    : simd::join_kernel<Join, Activation, P, First, 1 + int(sizeof...(Rest))> {};
}  // namespace core

}  // namespace strata
