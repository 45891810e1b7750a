// Losses on a GPU: one kernel for all, and joint kernels that compute from the logits before softmax or sigmoid. Loss and metrics
// of a leaf are added up by one block, the gradient of a sample is computed by one thread. A small dense layer before softmax and
// a crossentropy is one kernel with them, forward and backward.
// needs: boost_context
#pragma once
#include <strata/base/rounded.hpp>
#include <strata/concepts/loss.hpp>
#include <strata/cuda/kernels/dense.hpp>
#include <strata/cuda/kernels/gradients.hpp>
#include <strata/reference/losses.hpp>
#include <type_traits>

namespace strata {

namespace machine {

/// y of each sample, without a loss.
template <class Loss>
struct predict_rows {
  Loss loss;
  constexpr void operator()(long n) const { loss.predict(n); }
};

/// The metrics that a kernel computes along with a loss: none. cuda/engine/metrics.hpp has those of a program.
struct no_metrics {
  /// How many metrics are means over samples.
  static constexpr int means = 0;
  /// Adds what each of them says of sample n, whose prediction has been stored, to sums[0], sums[1]...
  constexpr void measure(long, double*) const {}
  /// Stores these sums, over `count` samples.
  constexpr void store(long /*leaf*/, long /*count*/, const double*) const {}
  /// Metrics that are no means: one thread adds up the samples [begin, begin + count), and stores the result.
  static constexpr bool has_others = false;
  constexpr void store_others(long /*leaf*/, long /*begin*/, long /*count*/) const {}
};

/// Where (sum, count) of the loss and the metrics of each leaf go: a call has all samples of its leaves.
template <class Metrics>
struct sums_of_leaves {
  using totals = double[1 + Metrics::means];
  double* loss;
  long stride;
  Metrics metrics;

  /// All threads of a block call it, each with its own part of the sums.
  template <int Threads>
  STRATA_DEVICE void store(const lane& l, double (&part)[Threads], long leaf, long begin, long count, totals& mine) const {
    for (double& each : mine) each = sum_of_block(l, part, each);
    if (l.thread() != 0) return;
    loss[leaf * stride] = mine[0];
    loss[leaf * stride + 1] = double(count);
    metrics.store(leaf, count, mine + 1);
    if constexpr (Metrics::has_others) metrics.store_others(leaf, begin, count);
  }
};

/// Loss: `predict(n)` stores y of a sample, `value(n)` is its loss, weighted.
template <class Loss, class Metrics>
struct loss_and_metrics {
  static constexpr int threads = 128;
  struct shared {
    double part[threads];
  };
  Loss loss;
  rows_of_leaves rows;
  sums_of_leaves<Metrics> to;

  STRATA_DEVICE void operator()(const lane& l, shared& memory) const {
    const long leaf = l.block(), begin = rows.begin(leaf), size = rows.size(leaf);
    typename sums_of_leaves<Metrics>::totals sums = {};
    for (long n = begin + l.thread(); n < begin + size; n += threads) {
      const auto value = loss.value(n);  // first: y may be where x is
      loss.predict(n);
      sums[0] += double(strata::detail::rounded(value));
      to.metrics.measure(n, sums + 1);
    }
    to.store(l, memory.part, leaf, begin, size, sums);
  }
};

template <class Loss>
struct loss_gradient {
  Loss loss;
  gradient_place<typename Loss::T> dx;
  constexpr void operator()(long n) const { loss.gradient(n, dx); }
};

template <class Loss, class T, class Metrics>
void compute_loss(const queue& q, const operands<T>& o, const Loss& loss, const Metrics& metrics) {
  const auto rows = rows_of_leaves::of(o);
  if (o.loss)
    machine::launch(q, rows.leaves, loss_and_metrics<Loss, Metrics>{loss, rows, {o.loss, o.leaves.sums_stride, metrics}});
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

/// A small dense layer, softmax and a crossentropy of labels, forward and backward. One block computes a leaf, some samples at a
/// time. It adds up in the order of the terms, as the products of dense_loss_kernel do for small layers.
template <class P, int K, int N, bool Bias, class Metrics>
struct dense_softmax_loss {
  using T = typename P::value_type;
  static constexpr int threads = 256, at_once = 32;
  struct shared {
    T values[at_once * N];  // logits, then their gradient
    double part[threads];
  };
  operands<T> o;
  rows_of_leaves rows;
  sums_of_leaves<Metrics> to;

  static constexpr T product(T a, T b) { return rounded_operand<P>(a) * rounded_operand<P>(b); }
  STRATA_DEVICE void operator()(const lane& l, shared& memory) const {
    const auto dx = gradient_place<T>::of_input(o, 0);
    const long leaf = l.block(), begin = rows.begin(leaf), size = rows.size(leaf);
    typename sums_of_leaves<Metrics>::totals sums = {};
    for (long done = 0; done < size; done += at_once) {
      const long first = begin + done;
      const int count = int(size - done < at_once ? size - done : at_once);
      for (int i = l.thread(); i < count * N; i += threads) {
        const T* const x = o.x[0] + (first + i / N) * K;
        T sum{};
        for (int k = 0; k < K; ++k) sum += product(x[k], o.w[0][k * N + i % N]);
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
          logits[j] = (p - T(o.labels[n] == j)) * weight;
        }
        to.metrics.measure(n, sums + 1);
      }
      l.barrier();
      for (int i = l.thread(); dx.is_wanted() && i < count * K; i += threads) {
        T sum{};
        for (int j = 0; j < N; ++j) sum += product(memory.values[i / K * N + j], o.w[0][i % K * N + j]);
        dx.store(first * K + i, sum);
      }
      l.barrier();
    }
    const gradient_before_softmax<T, N> dz{o.y, o.weights, o.labels};
    for (int i = l.thread(); i < (K + Bias) * N; i += threads) {
      const int k = i / N, j = i % N;
      const auto dw = gradient_place<T>::of_weight(o, k == K);
      if (!dw.is_wanted()) continue;
      T sum{};
      for (long n = begin; n < begin + size; ++n) sum += product(k == K ? T(1) : o.x[0][n * K + k], dz[n * N + j]);
      dw.store(leaf, k == K ? j : i, sum);
    }
    to.store(l, memory.part, leaf, begin, size, sums);
  }
};

/// A dense layer, softmax and a crossentropy of labels: the gradient of the logits is computed where it is read.
template <dense_settings S, class L, class P, shape In>
struct dense_loss_kernel : kernel_defaults {
  using T = typename P::value_type;
  static constexpr bool reads_output = true;
  static constexpr int K = In[0], N = S.units;
  /// Beyond that, and for larger leaves, more blocks are faster.
  static constexpr bool is_small = long{K} * N <= 4096 && N <= 64;
  static constexpr long most_rows = 256;
  template <class Otherwise>
  using tile = std::conditional_t<is_small, product_tile<64, 64>, Otherwise>;

  static void forward(queue q, const operands<T>& o) { forward_with(q, o, no_metrics{}); }
  template <class Metrics>
  static void forward_with(queue q, const operands<T>& o, const Metrics& metrics) {
    using product = dense_forward<linear, P, K, N, tile<tile_of_outputs<N>>>;
    for_each_product(q, 1, product{o.x[0], o.w[0], S.bias ? o.w[1] : nullptr, o.y, o.count});
    operands<T> logits = o;
    logits.x[0] = o.y;
    compute_loss(q, logits, loss_of_softmax<L, T, N>{logits}, metrics);
  }
  static void backward(queue q, const operands<T>& o) {
    dense_backward<S, K, P, tile<product_tile<32, 32>>>(q, o, gradient_before_softmax<T, N>{o.y, o.weights, o.labels});
  }

  static void forward_backward(queue q, const operands<T>& o) { forward_backward_with(q, o, no_metrics{}); }
  template <class Metrics>
  static void forward_backward_with(queue q, const operands<T>& o, const Metrics& metrics) {
    const auto rows = rows_of_leaves::of(o);
    if constexpr (is_small)
      if (rows.capacity <= most_rows)
        return machine::launch(q, rows.leaves,
                               dense_softmax_loss<P, K, N, S.bias, Metrics>{o, rows, {o.loss, o.leaves.sums_stride, metrics}});
    forward_with(q, o, metrics);
    backward(q, o);
  }
};

template <class Loss, class P>
struct loss_kernel : kernel_defaults {
  using T = typename P::value_type;
  static constexpr bool reads_input = false, reads_output = true;

  static void forward(queue q, const operands<T>& o) { forward_with(q, o, no_metrics{}); }
  template <class Metrics>
  static void forward_with(queue q, const operands<T>& o, const Metrics& metrics) {
    compute_loss(q, o, Loss{o}, metrics);
  }
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
