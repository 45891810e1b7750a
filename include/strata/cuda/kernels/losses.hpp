// Losses on a GPU: one kernel for all, and joint kernels that compute from the logits before softmax or sigmoid. The loss of a
// leaf is added up by one block, the gradient of a sample is computed by one thread.
// needs: boost_context
#pragma once
#include <strata/base/rounded.hpp>
#include <strata/concepts/loss.hpp>
#include <strata/cuda/kernels/dense.hpp>
#include <strata/cuda/kernels/gradients.hpp>
#include <strata/reference/losses.hpp>

namespace strata {

namespace machine {

/// y of each sample, without a loss.
template <class Loss>
struct predict_rows {
  Loss loss;
  constexpr void operator()(long n) const { loss.predict(n); }
};

/// Stores (sum, count) for each leaf: all of its samples are in this call. Loss: `predict(n)` stores y of a sample, `value(n)` is
/// its loss, weighted.
template <class Loss>
struct loss_sums {
  using T = typename Loss::T;
  using value = double;
  static constexpr int threads = 128;
  Loss loss;
  rows_of_leaves rows;
  double* to;
  long stride;

  constexpr long terms(long leaf) const { return rows.size(leaf); }
  constexpr double term(long leaf, long i) const {
    const long n = rows.begin(leaf) + i;
    const T sum = loss.value(n);  // first: y may be where x is
    loss.predict(n);
    return double(strata::detail::rounded(sum));
  }
  constexpr void store(long leaf, double sum) const {
    to[leaf * stride] = sum;
    to[leaf * stride + 1] = double(rows.size(leaf));
  }
};

template <class Loss>
struct loss_gradient {
  Loss loss;
  gradient_place<typename Loss::T> dx;
  constexpr void operator()(long n) const { loss.gradient(n, dx); }
};

template <class Loss, class T>
void compute_loss(const queue& q, const operands<T>& o, const Loss& loss) {
  const auto rows = rows_of_leaves::of(o);
  if (o.loss)
    for_each_sum(q, rows.leaves, loss_sums<Loss>{loss, rows, o.loss, o.leaves.sums_stride});
  else
    for_each_index(q, o.count, predict_rows<Loss>{loss});
}
template <class Loss, class T>
void compute_loss_gradient(const queue& q, const operands<T>& o, const Loss& loss) {
  const auto dx = gradient_place<T>::of_input(o, 0);
  if (dx.is_wanted()) for_each_index(q, o.count, loss_gradient<Loss>{loss, dx});
}

/// y = x.
template <class L, class V, int N>
struct any_loss {
  using T = V;
  operands<T> o;

  static constexpr std::span<const T> row(const T* rows, long n) { return {rows + n * N, std::size_t(N)}; }
  constexpr void predict(long n) const {
    for (int i = 0; i < N; ++i) o.y[n * N + i] = o.x[0][n * N + i];
  }
  constexpr T value(long n) const {
    return L::value(row(o.x[0], n), strata::detail::truth_of<L>(o, int(n), N)) * strata::detail::weight_of(o, int(n));
  }
  constexpr void gradient(long n, gradient_place<T> dx) const {
    T* const own = o.scratch + n * N;
    L::gradient(row(o.y, n), strata::detail::truth_of<L>(o, int(n), N), std::span<T>(own, std::size_t(N)));
    for (int i = 0; i < N; ++i) dx.store(n * N + i, own[i] * strata::detail::weight_of(o, int(n)));
  }
};

/// y = softmax(x). dx = y * sum(truth) - truth, which stays exact where a probability rounds to 0 or 1, so nothing is clamped.
template <class L, class V, int N>
struct loss_of_softmax {
  using T = V;
  operands<T> o;

  constexpr strata::detail::softmax_sum<T> sum(long n) const {
    return strata::detail::softmax_sum<T>(std::span<const T>(o.x[0] + n * N, std::size_t(N)));
  }
  constexpr auto target(long n) const {
    if constexpr (L::labels == label_kind::sparse)
      return strata::detail::one_hot<T>(o.labels[n]);
    else
      return L::target(strata::detail::truth_of<L>(o, int(n), N));
  }
  constexpr void predict(long n) const {
    const auto s = sum(n);
    for (int i = 0; i < N; ++i) o.y[n * N + i] = s.probability(o.x[0][n * N + i]);
  }
  constexpr T value(long n) const {
    const auto s = sum(n);
    const auto truth = target(n);
    T loss{};
    for (int i = 0; i < N; ++i)
      if (const T t = truth(std::size_t(i)); t != 0) loss += t * s.negative_log_probability(o.x[0][n * N + i]);
    return loss * strata::detail::weight_of(o, int(n));
  }
  constexpr void gradient(long n, gradient_place<T> dx) const {
    const auto truth = target(n);
    T all{};
    for (int i = 0; i < N; ++i) all += truth(std::size_t(i));
    const T weight = strata::detail::weight_of(o, int(n));
    for (int i = 0; i < N; ++i) dx.store(n * N + i, (o.y[n * N + i] * all - truth(std::size_t(i))) * weight);
  }
};

/// y = sigmoid(x). dx = (y - truth) / N for N predictions of a sample.
template <class L, class V, int N>
struct loss_of_sigmoid {
  using T = V;
  operands<T> o;

  constexpr void predict(long n) const {
    for (int i = 0; i < N; ++i) o.y[n * N + i] = L::sigmoid_of(o.x[0][n * N + i]);
  }
  constexpr T value(long n) const {
    T loss{};
    for (int i = 0; i < N; ++i) loss += L::value_of_logit(o.x[0][n * N + i], L::target(o.targets[n * N + i]));
    return loss / T(N) * strata::detail::weight_of(o, int(n));
  }
  constexpr void gradient(long n, gradient_place<T> dx) const {
    for (int i = 0; i < N; ++i)
      dx.store(n * N + i, (o.y[n * N + i] - L::target(o.targets[n * N + i])) * (strata::detail::weight_of(o, int(n)) / T(N)));
  }
};

/// The gradient of the logits for labels, element by element.
template <class T, int N>
struct gradient_before_softmax {
  const T *y, *weights;
  const std::int32_t* labels;
  constexpr T operator[](long i) const {
    const T gradient = y[i] - T(labels[i / N] == std::int32_t(i % N));
    return weights ? gradient * weights[i / N] : gradient;
  }
};

/// A dense layer, softmax and a crossentropy of labels: the gradient of the logits is computed where it is read.
template <dense_settings S, class L, class P, shape In>
struct dense_loss_kernel : kernel_defaults {
  using T = typename P::value_type;
  static constexpr bool reads_output = true;
  static constexpr int K = In[0], N = S.units;

  static void forward(queue q, const operands<T>& o) {
    dense_kernel<S, linear, P, In>::forward(q, o);
    operands<T> logits = o;
    logits.x[0] = o.y;
    compute_loss(q, logits, loss_of_softmax<L, T, N>{logits});
  }
  static void backward(queue q, const operands<T>& o) {
    dense_backward<S, K, P>(q, o, gradient_before_softmax<T, N>{o.y, o.weights, o.labels});
  }
};

template <class Loss, class P>
struct loss_kernel : kernel_defaults {
  using T = typename P::value_type;
  static constexpr bool reads_input = false, reads_output = true;

  static void forward(queue q, const operands<T>& o) { compute_loss(q, o, Loss{o}); }
  static void backward(queue q, const operands<T>& o) { compute_loss_gradient(q, o, Loss{o}); }
};

}  // namespace machine

/// x, y: (count, shape of the predictions). targets: the same shape; labels: (count).
template <loss_function L, class P, shape In>
struct kernel<cuda, L, P, In> : machine::loss_kernel<machine::any_loss<L, typename P::value_type, In.size()>, P> {
  static constexpr int scratch_per_sample = In.size();
};

template <class L, class P, shape In>
  requires detail::takes_softmax<L> && (In.rank() == 1)
struct kernel<cuda, fused<softmax, L>, P, In>
    : machine::loss_kernel<machine::loss_of_softmax<L, typename P::value_type, In.size()>, P> {};

template <dense_settings S, class L, class P, shape In>
  requires detail::takes_softmax<L> && (In.rank() == 1) && (L::labels == label_kind::sparse) && (!machine::goes_to_blas<S, P, In>)
struct kernel<cuda, fused<affine<S>, softmax, L>, P, In> : machine::dense_loss_kernel<S, L, P, In> {};

template <class... Options, class P, shape In>
  requires(!binary_crossentropy<Options...>::settings.from_logits)
struct kernel<cuda, fused<sigmoid, binary_crossentropy<Options...>>, P, In>
    : machine::loss_kernel<machine::loss_of_sigmoid<binary_crossentropy<Options...>, typename P::value_type, In.size()>, P> {};

}  // namespace strata
