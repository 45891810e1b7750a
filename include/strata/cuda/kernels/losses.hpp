// Losses on a GPU: one kernel for all, and joint kernels that compute from the logits before softmax or sigmoid. A small dense
// layer before softmax and a crossentropy is one kernel with them, forward and backward.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <strata/base/rounded.hpp>
#include <strata/concepts/loss.hpp>
#include <strata/cuda/kernels/dense.hpp>
#include <strata/cuda/kernels/gradients.hpp>
#include <strata/cuda/kernels/loss_rows.hpp>
#include <strata/losses/element_wise.hpp>
#include <strata/reference/losses.hpp>
#include <type_traits>

namespace strata {

namespace machine {

/// True if a loss is a crossentropy of classes that applies softmax to its predictions.
template <class L>
inline constexpr bool is_crossentropy_of_logits = false;
template <class... Options>
inline constexpr bool is_crossentropy_of_logits<sparse_categorical_crossentropy<Options...>> =
    sparse_categorical_crossentropy<Options...>::settings.from_logits;
template <class... Options>
inline constexpr bool is_crossentropy_of_logits<categorical_crossentropy<Options...>> =
    categorical_crossentropy<Options...>::settings.from_logits;

/// True if the loss of a sample is a sum or a mean over its elements. Then each element is computed by itself, like a sample of
/// one element.
template <class L>
inline constexpr bool is_loss_of_elements = loss_function<L> && requires {
  requires L::labels == label_kind::dense;
} && (std::is_base_of_v<strata::detail::any_element_wise, L> || traits_of<L>.is_mean_of_elements);

/// The divisor of the sum over the elements.
template <class L, class T>
constexpr T divisor_of_elements(int count) {
  if constexpr (std::is_base_of_v<strata::detail::any_element_wise, L>)
    return L::template divisor<T>(std::size_t(count));
  else
    return T(count);
}

/// The value of such a loss for a sample of N elements.
template <class L, int N, class T, class Row>
STRATA_DEVICE T value_of_elements(const Row& row, const T* prediction, const T* truth) {
  const T sum = row.template sum<T>(
      N, [&](int i) { return L::value(std::span<const T>(prediction + i, 1), std::span<const T>(truth + i, 1)); });
  return sum / divisor_of_elements<L, T>(N);
}

/// y = x.
template <class L, class V, int N>
struct any_loss {
  using T = V;
  static constexpr int row_size = N;
  operands<T> o;

  static constexpr std::span<const T> row_of(const T* rows, long n) { return {rows + n * N, std::size_t(N)}; }
  static constexpr std::span<const T> only(const T& element) { return {&element, 1}; }

  template <class Row>
  STRATA_DEVICE T forward(const Row& row, long n) const {
    const T* const x = o.x[0] + n * N;
    T value{};
    if (o.loss) {
      if constexpr (is_loss_of_elements<L>)
        value = value_of_elements<L, N>(row, x, o.targets + n * N);
      else if (row.is_first())
        value = L::value(row_of(o.x[0], n), strata::detail::truth_of<L>(o, int(n), N));
      value *= strata::detail::weight_of(o, int(n));
    }
    row.for_each(N, [&](int i) { o.y[n * N + i] = x[i]; });
    return value;
  }
  template <class Row>
  STRATA_DEVICE void gradient(const Row& row, long n, gradient_place<T> dx) const {
    const T weight = strata::detail::weight_of(o, int(n));
    if constexpr (is_loss_of_elements<L>) {
      row.for_each(N, [&](int i) {
        T slope;
        L::gradient(only(o.y[n * N + i]), only(o.targets[n * N + i]), std::span<T>(&slope, 1));
        dx.store(n * N + i, slope / divisor_of_elements<L, T>(N) * weight);
      });
    } else {
      T* const own = o.scratch + n * N;
      if (row.is_first())
        L::gradient(row_of(o.y, n), strata::detail::truth_of<L>(o, int(n), N), std::span<T>(own, std::size_t(N)));
      row.wait_for_all();
      row.for_each(N, [&](int i) { dx.store(n * N + i, own[i] * weight); });
    }
  }
};

/// A crossentropy of classes of p = softmax(x). y = p or, where the network ends with logits, y = x. dx = p * sum(truth) - truth,
/// which stays exact where a probability rounds to 0 or 1, so nothing is clamped.
template <class L, class V, int N, bool KeepsLogits = false>
struct loss_of_softmax {
  using T = V;
  static constexpr int row_size = N;
  static constexpr bool is_sparse = L::labels == label_kind::sparse;
  operands<T> o;

  template <class Row>
  static STRATA_DEVICE strata::detail::softmax_sum<T> softmax_of(const Row& row, const T* logits) {
    const T largest = row.largest(std::span<const T>(logits, std::size_t(N)));
    return {largest, row.template sum<T>(N, [&](int i) { return std::exp(logits[i] - largest); })};
  }
  constexpr auto target(long n) const {
    if constexpr (is_sparse)
      return strata::detail::one_hot<T>(o.labels[n]);
    else
      return L::target(strata::detail::truth_of<L>(o, int(n), N));
  }

  template <class Row>
  STRATA_DEVICE T forward(const Row& row, long n) const {
    const T* const x = o.x[0] + n * N;
    T* const y = o.y + n * N;
    T loss{};
    if (o.loss || !KeepsLogits) {
      const T logit = is_sparse && o.loss ? x[o.labels[n]] : T{};  // before y, which may be where x is
      const auto softmax = softmax_of(row, x);
      if constexpr (is_sparse) {
        if (o.loss) loss = softmax.negative_log_probability(logit);
      } else if (o.loss) {
        const auto truth = target(n);
        loss = row.template sum<T>(N, [&](int i) {
          const T t = truth(std::size_t(i));
          return t != 0 ? t * softmax.negative_log_probability(x[i]) : T{};
        });
      }
      if constexpr (!KeepsLogits) row.for_each(N, [&](int i) { y[i] = softmax.probability(x[i]); });
    }
    if constexpr (KeepsLogits) row.for_each(N, [&](int i) { y[i] = x[i]; });
    return o.loss ? loss * strata::detail::weight_of(o, int(n)) : loss;
  }
  template <class Row>
  STRATA_DEVICE void gradient(const Row& row, long n, gradient_place<T> dx) const {
    const T* const y = o.y + n * N;
    const auto truth = target(n);
    const T weight = strata::detail::weight_of(o, int(n));
    const T all = is_sparse ? T(1) : row.template sum<T>(N, [&](int i) { return truth(std::size_t(i)); });
    const auto store = [&](const auto& probability) {
      row.for_each(N, [&](int i) { dx.store(n * N + i, (probability(i) * all - truth(std::size_t(i))) * weight); });
    };
    if constexpr (KeepsLogits) {
      const auto softmax = softmax_of(row, y);
      store([&](int i) { return softmax.probability(y[i]); });
    } else {
      store([&](int i) { return y[i]; });
    }
  }
};

/// y = sigmoid(x). dx = (y - truth) / N for N predictions of a sample.
template <class L, class V, int N>
struct loss_of_sigmoid {
  using T = V;
  static constexpr int row_size = N;
  operands<T> o;

  template <class Row>
  STRATA_DEVICE T forward(const Row& row, long n) const {
    const T* const x = o.x[0] + n * N;
    T loss{};
    if (o.loss)
      loss = row.template sum<T>(N, [&](int i) { return L::value_of_logit(x[i], L::target(o.targets[n * N + i])); }) / T(N) *
             strata::detail::weight_of(o, int(n));
    row.for_each(N, [&](int i) { o.y[n * N + i] = L::sigmoid_of(x[i]); });
    return loss;
  }
  template <class Row>
  STRATA_DEVICE void gradient(const Row& row, long n, gradient_place<T> dx) const {
    const T weight = strata::detail::weight_of(o, int(n)) / T(N);
    row.for_each(N, [&](int i) { dx.store(n * N + i, (o.y[n * N + i] - L::target(o.targets[n * N + i])) * weight); });
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
  /// Of a row: i and N are multiples of 4.
  STRATA_DEVICE four<T> four_at(long i) const {
    const T weight = weights ? weights[i / N] : T(1);
    const std::int32_t label = labels[i / N] - std::int32_t(i % N);
    four<T> all = load_four(y, i);
    for (int j = 0; j < 4; ++j) all.at[j] = (all.at[j] - T(label == j)) * weight;
    return all;
  }
};

/// A small dense layer, softmax and a crossentropy of labels, forward and backward. One block computes a leaf, some samples at a
/// time. It adds up in the order of the terms, as the products of dense_loss_kernel do for small layers.
template <class P, int K, int N, bool Bias, class X, class Metrics>
struct dense_softmax_loss {
  using T = typename P::value_type;
  static constexpr int threads = 256, at_once = 32;
  /// The weights, with the biases as their last row, and how many of them a thread has.
  static constexpr int weights = (K + Bias) * N, of_thread = (weights + threads - 1) / threads;
  struct shared {
    T values[at_once * N];  // logits, then their gradient, rounded as an operand
    double part[threads];
  };
  operands<T> o;
  rows_of_leaves rows;
  sums_of_leaves<Metrics> to;

  static constexpr T rounded(T x) { return rounded_operand<P>(x); }
  STRATA_DEVICE void operator()(const lane& l, shared& memory) const {
    const auto dx = gradient_place<T, X>::of_input(o, 0);
    const X* const all_x = input_of<X>(o);
    const long leaf = l.block(), begin = rows.begin(leaf), size = rows.size(leaf);
    typename sums_of_leaves<Metrics>::totals sums = {};
    T gradients[of_thread] = {};
    for (long done = 0; done < size; done += at_once) {
      const long first = begin + done;
      const int count = int(size - done < at_once ? size - done : at_once);
      for (int i = l.thread(); i < count * N; i += threads) {
        const X* const x = all_x + (first + i / N) * K;
        T sum{};
        for (int k = 0; k < K; ++k) sum += rounded(T(x[k])) * rounded(o.w[0][k * N + i % N]);
        memory.values[i] = Bias ? o.w[1][i % N] + sum : sum;
      }
      l.barrier();
      for (int r = l.thread(); r < count; r += threads) {
        T* const logits = memory.values + r * N;
        const long n = first + r;
        const strata::detail::softmax_sum<T> s(std::span<const T>(logits, std::size_t(N)));
        const T weight = strata::detail::weight_of(o, int(n));
        sums[0] += double(strata::detail::rounded(s.negative_log_probability(logits[o.labels[n]]) * weight));
        for (int j = 0; j < N; ++j) {
          const T p = s.probability(logits[j]);
          o.y[n * N + j] = p;
          logits[j] = rounded((p - T(o.labels[n] == j)) * weight);
        }
        to.metrics.measure(row_by_thread{}, n, sums + 1);
      }
      l.barrier();
      for (int i = l.thread(); dx.is_wanted() && i < count * K; i += threads) {
        T sum{};
        for (int j = 0; j < N; ++j) sum += memory.values[i / K * N + j] * rounded(o.w[0][i % K * N + j]);
        dx.store(first * K + i, sum);
      }
      for (int u = 0; u < of_thread; ++u)
        if (const int i = l.thread() + u * threads, k = i / N; i < weights)
          for (int r = 0; r < count; ++r)
            gradients[u] += rounded(k == K ? T(1) : T(all_x[(first + r) * K + k])) * memory.values[r * N + i % N];
      l.barrier();
    }
    for (int u = 0; u < of_thread; ++u)
      if (const int i = l.thread() + u * threads; i < weights)
        if (const auto dw = gradient_place<T>::of_weight(o, i / N == K); dw.is_wanted())
          dw.store(leaf, i / N == K ? i % N : i, gradients[u]);
    to.store(l, memory.part, leaf, begin, size, sums);
  }
};

/// A dense layer, softmax and a crossentropy of labels: the gradient of the logits is computed where it is read.
template <dense_settings S, class L, class P, shape In, class X = typename P::value_type>
struct dense_loss_kernel {
  using T = typename P::value_type;
  template <bool NarrowInput, bool>
  using with_narrow = dense_loss_kernel<S, L, P, In, element_of_array<T, NarrowInput>>;
  static constexpr int K = In[0], N = S.units;
  /// Beyond that, and for larger leaves, more blocks are faster.
  static constexpr bool is_small = long{K} * N <= 4096 && N <= 64;
  static constexpr long most_rows = 256;
  template <class Otherwise>
  using tile = std::conditional_t<is_small, product_tile<64, 64>, Otherwise>;
  using products = tiled_dense<S, K, P, X, !is_small && dense_on_tensor_cores<P, K, N>, tile<tile_of_outputs<K, N>>,
                               tile<product_tile<32, 32>>>;
  static constexpr kernel_traits traits{.scratch_per_sample = std::max(scratch_of_row<T>(N), products::scratch_per_sample),
                                        .reads_output = true,
                                        .input_end = reads_operands<P>};

  static void forward(queue q, const operands<T>& o) { forward_with(q, o, no_metrics{}); }
  template <class Metrics>
  static void forward_with(queue q, const operands<T>& o, const Metrics& metrics) {
    products::template forward<linear, T>(q, o);
    operands<T> logits = o;
    logits.x[0] = o.y;
    compute_loss(q, logits, loss_of_softmax<L, T, N>{logits}, metrics);
  }
  static void backward(queue q, const operands<T>& o) {
    products::backward(q, o, gradient_before_softmax<T, N>{o.y, o.weights, o.labels});
  }

  static void forward_backward(queue q, const operands<T>& o) { forward_backward_with(q, o, no_metrics{}); }
  template <class Metrics>
  static void forward_backward_with(queue q, const operands<T>& o, const Metrics& metrics) {
    const auto rows = rows_of_leaves::of(o);
    if constexpr (is_small)
      if (rows.capacity <= most_rows)
        return machine::launch(q, rows.leaves,
                               dense_softmax_loss<P, K, N, S.bias, X, Metrics>{o, rows, {o.loss, o.leaves.sums_stride, metrics}});
    forward_with(q, o, metrics);
    backward(q, o);
  }
};

template <class Loss, class P>
struct loss_kernel {
  using T = typename P::value_type;
  static constexpr kernel_traits traits{
      .scratch_per_sample = scratch_of_row<T>(Loss::row_size), .reads_input = false, .reads_output = true};

  static void forward(queue q, const operands<T>& o) { forward_with(q, o, no_metrics{}); }
  template <class Metrics>
  static void forward_with(queue q, const operands<T>& o, const Metrics& metrics) {
    compute_loss(q, o, Loss{o}, metrics);
  }
  static void backward(queue q, const operands<T>& o) { compute_loss_gradient(q, o, Loss{o}); }
};

}  // namespace machine

namespace core {
/// x, y: (count, shape of the predictions). targets: the same shape; labels: (count).
template <loss_function L, class P, shape In>
struct kernel<cuda, L, P, In> : machine::loss_kernel<machine::any_loss<L, typename P::value_type, In.size()>, P> {
  static constexpr kernel_traits traits{
      .scratch_per_sample =
          std::max(machine::is_loss_of_elements<L> ? 0 : In.size(), machine::scratch_of_row<typename P::value_type>(In.size())),
      .reads_input = false,
      .reads_output = true};
};

template <loss_function L, class P, shape In>
  requires machine::is_crossentropy_of_logits<L>
struct kernel<cuda, L, P, In> : machine::loss_kernel<machine::loss_of_softmax<L, typename P::value_type, In.size(), true>, P> {};

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
}  // namespace core

}  // namespace strata
