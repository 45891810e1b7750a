// Softmax on vectors of classes.
#pragma once
#include <cmath>
#include <strata/cpu/backend.hpp>
#include <strata/cpu/simd/reductions.hpp>
#include <strata/kernel/kernel.hpp>

namespace strata {

namespace simd {

/// The largest logit, and the sum of exp(logit - largest), which cannot overflow.
template <class T>
struct softmax_sum {
  T largest, sum;
};

/// The sum of exp(logit - largest) over C logits. If y is not null, it receives these exponentials.
template <class T>
STRATA_INLINE inline T sum_of_exponentials(const T* x, T largest, int C, T* y) {
  const vec<T> top = broadcast(largest);
  return sum_over<T>(C, [&](int i, auto lane) STRATA_INLINE {
    const vec<T> e = simd::exp<T>(lane.load(x + i) - top);
    if (y) lane.store(y + i, e);
    return e;
  });
}

/// The softmax_sum of C logits. If y is not null, it receives exp(logit - largest).
template <class T>
[[gnu::noinline]] softmax_sum<T> softmax_sum_of(const T* x, int C, T* y) {
  const T largest = largest_of(x, C);
  return {largest, sum_of_exponentials(x, largest, C, y)};
}

/// y = softmax(x)
template <class T>
[[gnu::noinline]] softmax_sum<T> softmax_of(const T* x, int C, T* y) {
  if (C < lanes<T>) {  // y stays in a register: a load that follows a partial store waits for it
    const part_of_vector<T> lane{C};
    const T largest = largest_of(x, C);
    const vec<T> e = lane.select(simd::exp<T>(lane.load(x) - broadcast(largest)), vec<T>{});
    const T sum = fold_lanes<T>(e, [](vec<T> a, vec<T> b) STRATA_INLINE { return a + b; });
    lane.store(y, e * (T(1) / sum));
    return {largest, sum};
  }
  const softmax_sum<T> s = softmax_sum_of(x, C, y);
  const T factor = T(1) / s.sum;
  for_vectors<T>(C, [&](std::ptrdiff_t i, auto lane) STRATA_INLINE { lane.store(y + i, lane.load(y + i) * factor); });
  return s;
}

/// dx (+)= y * (dy - sum of y * dy)
template <class T>
[[gnu::noinline]] void softmax_gradient(const T* y, const T* dy, int C, T* dx, bool add) {
  const vec<T> dot =
      broadcast(sum_over<T>(C, [&](int i, auto lane) STRATA_INLINE { return lane.load(y + i) * lane.load(dy + i); }));
  for_vectors<T>(C, [&](std::ptrdiff_t i, auto lane)
                        STRATA_INLINE { put<T>(lane, dx + i, lane.load(y + i) * (lane.load(dy + i) - dot), add); });
}

}  // namespace simd

namespace core {
/// Softmax over the last axis. x, y, dy, dx: (count, ..., C).
template <class P, shape In>
struct kernel<cpu, softmax, P, In> {
  using T = typename P::value_type;
  static constexpr kernel_traits traits{.reads_input = false, .reads_output = true};
  static constexpr int C = In.last(), rows = In.size() / C;

  static void forward(const operands<T>& o) {
    for (std::ptrdiff_t n = 0; n < std::ptrdiff_t(o.count) * rows; ++n) simd::softmax_of(o.x[0] + n * C, C, o.y + n * C);
  }
  static void backward(const operands<T>& o) {
    for (std::ptrdiff_t n = 0; o.dx[0] && n < std::ptrdiff_t(o.count) * rows; ++n)
      simd::softmax_gradient(o.y + n * C, o.dy + n * C, C, o.dx[0] + n * C, o.adds_dx[0]);
  }
};
}  // namespace core

}  // namespace strata
