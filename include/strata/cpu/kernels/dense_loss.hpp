// The last dense layer of a classifier together with its loss. Probabilities and the gradient of the logits are computed while
// the logits are in the cache.
#pragma once
#include <strata/cpu/kernels/dense.hpp>
#include <strata/cpu/kernels/losses.hpp>

namespace strata {

namespace simd {

/// y = softmax(x W + b) and its crossentropy L; or, if L takes logits, y = x W + b. x: (count, K); y: (count, N).
template <dense_settings S, class L, class P, shape In>
struct dense_loss_kernel {
  using dense = dense_kernel<S, linear, P, In>;
  using T = typename P::value_type;
  static constexpr int N = S.units, exponentials = dense::traits.scratch;
  static constexpr bool logits = takes_logits<L>;
  /// After the scratch of the dense layer: a row of exponentials; then the logits in forward, their gradient in backward.
  static constexpr kernel_traits traits{
      .scratch = dense::traits.scratch + aligned_size<T>(N), .scratch_per_sample = N, .reads_output = true};

  static void forward(const operands<T>& o) {
    operands<T> sums = o;
    if constexpr (!logits) sums.y = o.scratch + traits.scratch;
    dense::forward(sums);
    for (int n = 0; n < o.count; ++n) {
      const T* x = sums.y + std::ptrdiff_t(n) * N;
      softmax_sum<T> s{};
      if constexpr (!logits) s = softmax_of(x, N, o.y + std::ptrdiff_t(n) * N);
      if (!o.loss) continue;
      if constexpr (logits) s = softmax_sum_of(x, N, static_cast<T*>(nullptr));
      strata::detail::add_loss(o, n, class_loss<L>::value(x, s, o, n, N));
    }
  }

  static void backward(const operands<T>& o) { dense::gradients(o, gradient_of_logits(o)); }

  static void backward_into(const operands<T>& o, const gradient_sink<T>& take) {
    dense::gradients_into(o, gradient_of_logits(o), take);
  }

 private:
  static const T* gradient_of_logits(const operands<T>& o) {
    operands<T> stores = o;
    stores.adds_dx[0] = false;
    T* const dz = o.scratch + traits.scratch;
    for (int n = 0; n < o.count; ++n) {
      const T* y = o.y + std::ptrdiff_t(n) * N;
      T* const row = o.scratch + exponentials;
      if constexpr (logits)
        class_loss<L>::gradient(row, T(1) / softmax_sum_of(y, N, row).sum, stores, n, N, dz + std::ptrdiff_t(n) * N);
      else
        class_loss<L>::gradient(y, T(1), stores, n, N, dz + std::ptrdiff_t(n) * N);
    }
    return dz;
  }
};

}  // namespace simd

namespace core {
template <dense_settings S, class L, class P, shape In>
  requires detail::takes_softmax<L> && (In.rank() == 1)
struct kernel<cpu, fused<affine<S>, softmax, L>, P, In> : simd::dense_loss_kernel<S, L, P, In> {};

template <dense_settings S, class L, class P, shape In>
  requires simd::takes_logits<L> && (In.rank() == 1)
struct kernel<cpu, fused<affine<S>, L>, P, In> : simd::dense_loss_kernel<S, L, P, In> {};
}  // namespace core

}  // namespace strata
