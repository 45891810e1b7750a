// Batch normalization on a GPU. As in every backend, the engine adds up the statistics of all leaves between collect and forward,
// and between collect_backward and backward.
// needs: boost_context
#pragma once
#include <cmath>
#include <strata/cuda/kernels/gradients.hpp>
#include <strata/layers/batch_norm.hpp>

namespace strata {

namespace machine {

/// Stores sums over the pixels of a leaf, channel by channel: of (x, x^2), or of (dy, dy * x).
template <class T, int C, int Size>
struct collect_sums {
  using value = sum_pair<double>;
  static constexpr int threads = 128, neighbours = neighbours_among(C);
  rows_of_leaves rows;
  const T *first, *second;
  double* statistics;
  long stride;

  constexpr long terms(long sum) const { return rows.size(sum / C) * (Size / C); }
  constexpr value term(long sum, long i) const {
    const long at = rows.begin(sum / C) * Size + i * C + sum % C;
    const double v = first[at];
    return {v, v * double(second[at])};
  }
  constexpr void store(long sum, value v) const {
    double* const to = statistics + sum / C * stride + sum % C;
    to[0] = v.first, to[C] = v.second;
  }
};

/// What all pixels of a channel have in common.
template <class T>
struct channel_terms {
  T mean, inverse_deviation;
  T scale, mean_dy, mean_dy_z;  // backward only
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
/// With the moving statistics.
template <batch_norm_settings S, class T>
struct prepare_inference {
  const T *mean, *variance;
  channel_terms<T>* to;
  constexpr void operator()(long c) const {
    to[c] = {mean[c], T(1 / std::sqrt(double(variance[c]) + S.epsilon.value())), T{}, T{}, T{}};
  }
};
template <batch_norm_settings S, class T, int C>
struct prepare_backward {
  moments_of_batch<S, T, C> of;
  const T* gamma;
  channel_terms<T>* to;
  constexpr void operator()(long c) const {
    const double m = of.mean(int(c)), inverse = of.inverse_deviation(int(c));
    const double sum = of.statistics[2 * C + c], sum_z = (of.statistics[3 * C + c] - m * sum) * inverse;
    to[c] = {T(m), T(inverse), T((gamma ? double(gamma[c]) : 1) * inverse), T(sum / of.elements), T(sum_z / of.elements)};
  }
};

template <class T, int C>
struct apply_normalization {
  const T *x, *gamma, *beta;
  const channel_terms<T>* of;
  T* y;
  constexpr void operator()(long i) const {
    const int c = int(i % C);
    const T z = (x[i] - of[c].mean) * of[c].inverse_deviation;
    y[i] = (gamma ? z * gamma[c] : z) + (beta ? beta[c] : T{});
  }
};

template <class T, int C>
struct normalization_gradient {
  const T *x, *dy;
  const channel_terms<T>* of;
  gradient_place<T> dx;
  constexpr void operator()(long i) const {
    const channel_terms<T>& t = of[i % C];
    const T z = (x[i] - t.mean) * t.inverse_deviation;
    dx.store(i, t.scale * (dy[i] - t.mean_dy - z * t.mean_dy_z));
  }
};
template <class T, int C>
struct frozen_gradient {
  const T *gamma, *dy;
  const channel_terms<T>* of;
  gradient_place<T> dx;
  constexpr void operator()(long i) const {
    const int c = int(i % C);
    dx.store(i, dy[i] * (gamma ? gamma[c] : T(1)) * of[c].inverse_deviation);
  }
};

/// The gradients of gamma and beta.
template <class T, int C, int Size>
struct scale_and_shift_gradients {
  using value = sum_pair<T>;
  static constexpr int threads = 128, neighbours = neighbours_among(C);
  rows_of_leaves rows;
  const T *x, *dy;
  const channel_terms<T>* of;
  gradient_place<T> dgamma, dbeta;

  constexpr long terms(long sum) const { return rows.size(sum / C) * (Size / C); }
  constexpr value term(long sum, long i) const {
    const long at = rows.begin(sum / C) * Size + i * C + sum % C;
    const channel_terms<T>& t = of[sum % C];
    return {dy[at] * ((x[at] - t.mean) * t.inverse_deviation), dy[at]};
  }
  constexpr void store(long sum, value v) const {
    if (dgamma.is_wanted()) dgamma.store(sum / C, sum % C, v.first);
    if (dbeta.is_wanted()) dbeta.store(sum / C, sum % C, v.second);
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

/// What training and frozen layers share.
template <batch_norm_settings S, class P, shape In>
struct batch_norm_kernel : kernel_defaults {
  using T = typename P::value_type;
  static constexpr int C = In.last(), size = In.size();
  static constexpr int gamma = 0, beta = S.scale, moving_mean = S.scale + S.center, moving_variance = moving_mean + 1;
  static constexpr int scratch = int(sizeof(channel_terms<T>) / sizeof(T)) * C;

  static channel_terms<T>* terms(const operands<T>& o) { return reinterpret_cast<channel_terms<T>*>(o.scratch); }
  static const T* gamma_of(const operands<T>& o) { return S.scale ? o.w[gamma] : nullptr; }
  static void apply(const queue& q, const operands<T>& o) {
    for_each_index(q, long{o.count} * size,
                   apply_normalization<T, C>{o.x[0], gamma_of(o), S.center ? o.w[beta] : nullptr, terms(o), o.y});
  }
  static void prepare_to_infer(const queue& q, const operands<T>& o) {
    for_each_index(q, C, prepare_inference<S, T>{o.w[moving_mean], o.w[moving_variance], terms(o)});
  }
  static void infer(queue q, const operands<T>& o) {
    prepare_to_infer(q, o);
    apply(q, o);
  }
};

}  // namespace machine

/// x, y, dy, dx: (count, ..., C); gamma, beta, moving mean and moving variance: (C).
template <batch_norm_settings S, class P, shape In>
struct kernel<cuda, batch_normalization<S>, P, In> : machine::batch_norm_kernel<S, P, In> {
  using base = machine::batch_norm_kernel<S, P, In>;
  using T = typename P::value_type;
  using base::C, base::size;
  static constexpr int statistics = 2 * C;

  static void collect(machine::queue q, const operands<T>& o) { add_sums(q, o, o.x[0], o.x[0], 0); }
  /// Sums dy * x, not dy * z: the mean of the batch is not known here.
  static void collect_backward(machine::queue q, const operands<T>& o) { add_sums(q, o, o.dy, o.x[0], 2 * C); }
  static void forward(machine::queue q, const operands<T>& o) {
    machine::for_each_index(q, C, machine::prepare_forward<S, T, C>{moments(o), base::terms(o)});
    base::apply(q, o);
  }
  /// Called once per step, with the statistics of the whole batch.
  static void update_state(machine::queue q, const operands<T>& o, T* const* w) {
    machine::for_each_index(q, C, machine::move_statistics<S, T, C>{moments(o), w[base::moving_mean], w[base::moving_variance]});
  }
  static void backward(machine::queue q, const operands<T>& o) {
    using place = machine::gradient_place<T>;
    const place none{nullptr, false, 0}, dgamma = S.scale ? place::of_weight(o, base::gamma) : none,
                                         dbeta = S.center ? place::of_weight(o, base::beta) : none, dx = place::of_input(o, 0);
    const auto rows = machine::rows_of_leaves::of(o);
    machine::for_each_index(q, C, machine::prepare_backward<S, T, C>{moments(o), base::gamma_of(o), base::terms(o)});
    if (dgamma.is_wanted() || dbeta.is_wanted())
      machine::for_each_sum(q, long{rows.leaves} * C,
                            machine::scale_and_shift_gradients<T, C, size>{rows, o.x[0], o.dy, base::terms(o), dgamma, dbeta});
    if (dx.is_wanted())
      machine::for_each_index(q, long{o.count} * size, machine::normalization_gradient<T, C>{o.x[0], o.dy, base::terms(o), dx});
  }

 private:
  static machine::moments_of_batch<S, T, C> moments(const operands<T>& o) { return {o.statistics, o.total * (size / C)}; }
  static void add_sums(const machine::queue& q, const operands<T>& o, const T* first, const T* second, int at) {
    const auto rows = machine::rows_of_leaves::of(o);
    machine::for_each_sum(q, long{rows.leaves} * C,
                          machine::collect_sums<T, C, size>{rows, first, second, o.statistics + at, o.leaves.sums_stride});
  }
};

/// The same of a frozen layer.
template <batch_norm_settings S, class P, shape In>
  requires(S.frozen)
struct kernel<cuda, batch_normalization<S>, P, In> : machine::batch_norm_kernel<S, P, In> {
  using base = machine::batch_norm_kernel<S, P, In>;
  using T = typename P::value_type;
  static constexpr bool reads_input = false;

  static void forward(machine::queue q, const operands<T>& o) { base::infer(q, o); }
  static void backward(machine::queue q, const operands<T>& o) {
    const auto dx = machine::gradient_place<T>::of_input(o, 0);
    if (!dx.is_wanted()) return;
    base::prepare_to_infer(q, o);
    machine::for_each_index(q, long{o.count} * base::size,
                            machine::frozen_gradient<T, base::C>{base::gamma_of(o), o.dy, base::terms(o), dx});
  }
};

}  // namespace strata
