// Activations that no other kernel fuses, on vectors. One loop for each activation serves all shapes.
#pragma once
#include <strata/cpu/backend.hpp>
#include <strata/cpu/simd/elementwise.hpp>
#include <strata/kernel/kernel.hpp>

namespace strata {

namespace simd {

template <class Activation, class T>
[[gnu::noinline]] void activate(const T* x, std::ptrdiff_t n, T* y) {
  for_vectors<T>(n, [&](std::ptrdiff_t i, auto lane)
                        STRATA_INLINE { lane.store(y + i, vector_activation<Activation>::template value<T>(lane.load(x + i))); });
}

/// dx (+)= dy * slope
template <class Activation, class T>
[[gnu::noinline]] void activation_gradient(const T* dy, const T* x, const T* y, std::ptrdiff_t n, T* dx, bool add) {
  using function = activation_function<Activation>;
  for_vectors<T>(n, [&](std::ptrdiff_t i, auto lane) STRATA_INLINE {
    vec<T> from = broadcast(T(0)), to = from;
    if constexpr (function::uses_input) from = lane.load(x + i);
    if constexpr (function::uses_output) to = lane.load(y + i);
    put<T>(lane, dx + i, lane.load(dy + i) * vector_slope<Activation>::template at<T>(from, to), add);
  });
}

}  // namespace simd

namespace core {
/// x, y, dy, dx: (count, shape of the input).
template <elementwise_activation A, class P, shape In>
  requires simd::has_vector_form<A>
struct kernel<cpu, A, P, In> {
  using T = typename P::value_type;
  using function = activation_function<A>;
  static constexpr kernel_traits traits{.reads_input = function::uses_input, .reads_output = function::uses_output};

  static void forward(const operands<T>& o) { simd::activate<A>(o.x[0], std::ptrdiff_t(o.count) * In.size(), o.y); }
  static void backward(const operands<T>& o) {
    if (o.dx[0]) simd::activation_gradient<A>(o.dy, o.x[0], o.y, std::ptrdiff_t(o.count) * In.size(), o.dx[0], o.adds_dx[0]);
  }
};
}  // namespace core

}  // namespace strata
