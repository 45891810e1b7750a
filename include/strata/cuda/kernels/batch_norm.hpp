// Batch normalization on a GPU, alone or with the activation that follows. As in every backend, the engine adds up the statistics
// of all leaves between collect and forward, and between collect_backward and backward.
#pragma once
#include <cmath>
#include <strata/cuda/kernels/gradients.hpp>
#include <strata/layers/batch_norm.hpp>
#include <type_traits>

namespace strata {

namespace machine {

/// Stores sums over the pixels of a leaf, channel by channel: of (x, x^2), or of (g, g * x), where g is the gradient before the
/// activation.
template <class First, class X, int C, int Size>
struct collect_sums {
  using value = sum_pair<double>;
  static constexpr int threads = 128, neighbours = neighbours_among(C);
  rows_of_leaves rows;
  First first;
  const X* second;
  double* statistics;
  long stride;

  constexpr long terms(long sum) const { return rows.size(sum / C) * (Size / C); }
  constexpr value term(long sum, long i) const {
    const long at = rows.begin(sum / C) * Size + i * C + sum % C;
    const auto v = double(first[at]);
    return {v, v * double(second[at])};
  }
  constexpr void store(long sum, value v) const {
    double* const to = statistics + sum / C * stride + sum % C;
    to[0] = v.first, to[C] = v.second;
  }
};

/// The terms that all pixels of a channel have in common.
template <class T>
struct channel_terms {
  T mean, inverse_deviation;
  T scale, mean_g, mean_gz;  // backward only
};

template <batch_norm_settings S, class T, int C>
struct moments_of_batch {
  const double* statistics;
  double elements;

  constexpr double mean(int c) const { return statistics[c] / elements; }
  /// The biased variance, as in Keras. Rounding must not make it negative.
  constexpr double variance(int c) const {
    const double v = statistics[C + c] / elements - mean(c) * mean(c);
    return v > 0 ? v : 0;
  }
  constexpr double inverse_deviation(int c) const { return 1 / std::sqrt(variance(c) + S.epsilon.value()); }
};

template <batch_norm_settings S, class T, int C>
struct prepare_forward {
  moments_of_batch<S, T, C> of;
  channel_terms<T>* to;
  constexpr void operator()(long c) const { to[c] = {T(of.mean(int(c))), T(of.inverse_deviation(int(c))), T{}, T{}, T{}}; }
};
/// The terms for inference, from the moving statistics.
template <batch_norm_settings S, class T>
struct prepare_inference {
  const T *mean, *variance;
  channel_terms<T>* to;
  constexpr void operator()(long c) const {
    to[c] = {mean[c], T(1 / std::sqrt(double(variance[c]) + S.epsilon.value())), T{}, T{}, T{}};
  }
};
/// The terms that backward needs of each channel and, after them, the gradients of gamma and beta, leaf by leaf. These are the
/// sums of g z and of g, where z is the normalized x, computed from the sums that collect_backward has stored.
template <batch_norm_settings S, class T, int C>
struct prepare_backward {
  moments_of_batch<S, T, C> of;
  const T* gamma;
  channel_terms<T>* to;
  const double* of_leaves;
  long stride;  // from leaf to leaf
  gradient_place<T> dgamma, dbeta;

  static constexpr long count(int leaves) { return C * (1L + leaves); }
  constexpr void operator()(long i) const {
    const int c = int(i % C);
    const long leaf = i / C - 1;
    const double m = of.mean(c), inverse = of.inverse_deviation(c);
    const double* const sums = leaf < 0 ? of.statistics : of_leaves + leaf * stride;
    const double sum = sums[2 * C + c], sum_z = (sums[3 * C + c] - m * sum) * inverse;
    if (leaf < 0) {
      to[c] = {T(m), T(inverse), T((gamma ? double(gamma[c]) : 1) * inverse), T(sum / of.elements), T(sum_z / of.elements)};
    } else {
      if (dgamma.is_wanted()) dgamma.store(leaf, c, T(sum_z));
      if (dbeta.is_wanted()) dbeta.store(leaf, c, T(sum));
    }
  }
};

template <class A, class T, class X, class Y, int C>
struct apply_normalization {
  const X* x;
  const T *gamma, *beta;
  const channel_terms<T>* of;
  Y* y;
  constexpr void operator()(long i) const {
    const int c = int(i % C);
    const T z = (x[i] - of[c].mean) * of[c].inverse_deviation;
    y[i] = stored_as<Y>(activated<A>((gamma ? z * gamma[c] : z) + (beta ? beta[c] : T{})));
  }
};

template <class A, class T, class X, class Y, int C>
struct normalization_gradient {
  const X* x;
  gradient_before<A, T, Y> g;
  const channel_terms<T>* of;
  gradient_place<T, X> dx;
  constexpr void operator()(long i) const {
    const channel_terms<T>& t = of[i % C];
    const T z = (x[i] - t.mean) * t.inverse_deviation;
    dx.store(i, t.scale * (g[i] - t.mean_g - z * t.mean_gz));
  }
};
template <class A, class T, class X, class Y, int C>
struct frozen_gradient {
  const T* gamma;
  gradient_before<A, T, Y> g;
  const channel_terms<T>* of;
  gradient_place<T, X> dx;
  constexpr void operator()(long i) const {
    const int c = int(i % C);
    dx.store(i, g[i] * (gamma ? gamma[c] : T(1)) * of[c].inverse_deviation);
  }
};

template <batch_norm_settings S, class T, int C>
struct move_statistics {
  moments_of_batch<S, T, C> of;
  T *mean, *variance;
  constexpr void operator()(long c) const {
    constexpr double momentum = S.momentum.value();
    mean[c] = T(momentum * mean[c] + (1 - momentum) * of.mean(int(c)));
    variance[c] = T(momentum * variance[c] + (1 - momentum) * of.variance(int(c)));
  }
};

/// The common part of training and frozen layers. A: the activation that follows, or linear. X, Y: the type of an element of x,
/// and of y. It does not round by itself, so its arrays are narrow only if another kernel rounds.
template <batch_norm_settings S, class A, class P, shape In, class X, class Y>
struct batch_norm_in_any_use {
  using T = typename P::value_type;
  using gradient = gradient_before<A, T, Y>;
  static constexpr int C = In.last(), size = In.size();
  static constexpr int gamma = 0, beta = S.scale, moving_mean = S.scale + S.center, moving_variance = moving_mean + 1;
  static constexpr kernel_traits traits{.scratch = int(sizeof(channel_terms<T>) / sizeof(T)) * C,
                                        .reads_output = follows_in_a_kernel<A>,
                                        .input_end{rounds_to_bfloat16<P>, false, false},
                                        .output_end{rounds_to_bfloat16<P> && commutes_with_rounding<A>, false, false}};

  static channel_terms<T>* terms(const operands<T>& o) { return reinterpret_cast<channel_terms<T>*>(o.scratch); }
  static const T* gamma_of(const operands<T>& o) { return S.scale ? o.w[gamma] : nullptr; }
  static void apply(const queue& q, const operands<T>& o) {
    for_each_index(q, long{o.count} * size,
                   apply_normalization<A, T, X, Y, C>{input_of<X>(o), gamma_of(o), S.center ? o.w[beta] : nullptr, terms(o),
                                                      output_of<Y>(o)});
  }
  static void prepare_to_infer(const queue& q, const operands<T>& o) {
    for_each_index(q, C, prepare_inference<S, T>{o.w[moving_mean], o.w[moving_variance], terms(o)});
  }
  static void infer(queue q, const operands<T>& o) {
    prepare_to_infer(q, o);
    apply(q, o);
  }
};

/// x, y, dy, dx: (count, ..., C); gamma, beta, moving mean and moving variance: (C).
template <batch_norm_settings S, class A, class P, shape In, class X = typename P::value_type, class Y = X>
struct batch_norm_kernel : batch_norm_in_any_use<S, A, P, In, X, Y> {
  using base = batch_norm_in_any_use<S, A, P, In, X, Y>;
  using T = typename P::value_type;
  template <bool NarrowInput, bool NarrowOutput>
  using with_narrow = batch_norm_kernel<S, A, P, In, element_of_array<T, NarrowInput>, element_of_array<T, NarrowOutput>>;
  using base::C, base::size;
  using typename base::gradient;
  static constexpr kernel_traits traits = [] {
    kernel_traits ours = base::traits;
    ours.statistics = 2 * C;
    return ours;
  }();

  static void collect(queue q, const operands<T>& o) { add_sums(q, o, input_of<X>(o), 0); }
  /// Sums g * x, not g * z: the mean of the batch is not known here.
  static void collect_backward(queue q, const operands<T>& o) { add_sums(q, o, gradient::of(o), 2 * C); }
  static void forward(queue q, const operands<T>& o) {
    for_each_index(q, C, prepare_forward<S, T, C>{moments(o), base::terms(o)});
    base::apply(q, o);
  }
  /// Called once per step, with the statistics of the whole batch.
  static void update_state(queue q, const operands<T>& o, T* const* w) {
    for_each_index(q, C, move_statistics<S, T, C>{moments(o), w[base::moving_mean], w[base::moving_variance]});
  }
  static void backward(queue q, const operands<T>& o) {
    using place = gradient_place<T>;
    using prepares = prepare_backward<S, T, C>;
    const place none{nullptr, false, 0}, dgamma = S.scale ? place::of_weight(o, base::gamma) : none,
                                         dbeta = S.center ? place::of_weight(o, base::beta) : none;
    const auto dx = gradient_place<T, X>::of_input(o, 0);
    for_each_index(
        q, prepares::count(rows_of_leaves::of(o).leaves),
        prepares{moments(o), base::gamma_of(o), base::terms(o), o.statistics_of_leaf, o.leaves.sums_stride, dgamma, dbeta});
    if (dx.is_wanted())
      for_each_index(q, long{o.count} * size,
                     normalization_gradient<A, T, X, Y, C>{input_of<X>(o), gradient::of(o), base::terms(o), dx});
  }

 private:
  static moments_of_batch<S, T, C> moments(const operands<T>& o) { return {o.statistics, o.total * (size / C)}; }
  template <class First>
  static void add_sums(const queue& q, const operands<T>& o, const First& first, int at) {
    const auto rows = rows_of_leaves::of(o);
    for_each_sum(q, long{rows.leaves} * C,
                 collect_sums<First, X, C, size>{rows, first, input_of<X>(o), o.statistics + at, o.leaves.sums_stride});
  }
};

template <batch_norm_settings S, class A, class P, shape In, class X = typename P::value_type, class Y = X>
struct frozen_batch_norm_kernel : batch_norm_in_any_use<S, A, P, In, X, Y> {
  using base = batch_norm_in_any_use<S, A, P, In, X, Y>;
  using T = typename P::value_type;
  template <bool NarrowInput, bool NarrowOutput>
  using with_narrow = frozen_batch_norm_kernel<S, A, P, In, element_of_array<T, NarrowInput>, element_of_array<T, NarrowOutput>>;
  static constexpr kernel_traits traits = [] {
    kernel_traits ours = base::traits;
    ours.reads_input = false;
    return ours;
  }();

  static void forward(queue q, const operands<T>& o) { base::infer(q, o); }
  static void backward(queue q, const operands<T>& o) {
    const auto dx = gradient_place<T, X>::of_input(o, 0);
    if (!dx.is_wanted()) return;
    base::prepare_to_infer(q, o);
    for_each_index(q, long{o.count} * base::size,
                   frozen_gradient<A, T, X, Y, base::C>{base::gamma_of(o), base::gradient::of(o), base::terms(o), dx});
  }
};

template <batch_norm_settings S, class A, class P, shape In>
using any_batch_norm_kernel = std::conditional_t<S.frozen, frozen_batch_norm_kernel<S, A, P, In>, batch_norm_kernel<S, A, P, In>>;

}  // namespace machine

namespace core {
template <batch_norm_settings S, class P, shape In>
struct kernel<cuda, batch_normalization<S>, P, In> : machine::any_batch_norm_kernel<S, linear, P, In> {};
template <batch_norm_settings S, class A, class P, shape In>
  requires machine::follows_in_a_kernel<A>
struct kernel<cuda, fused<batch_normalization<S>, A>, P, In> : machine::any_batch_norm_kernel<S, A, P, In> {};
}  // namespace core

}  // namespace strata
