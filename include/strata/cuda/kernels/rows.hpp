// Operations on a GPU over rows along the last axis, one block per row: softmax and layer normalization.
#pragma once
#include <cmath>
#include <cstddef>
#include <span>
#include <strata/cuda/kernels/gradients.hpp>
#include <strata/cuda/kernels/row_threads.hpp>
#include <strata/layers/activations.hpp>
#include <strata/layers/layer_norm.hpp>

namespace strata {

namespace machine {

template <class T, int C>
struct softmax_rows {
  static constexpr int threads = threads_for_row(C);
  using row = row_by_block<T, threads>;
  using shared = typename row::memory;
  const T* x;
  T* y;

  STRATA_DEVICE void operator()(const lane& l, shared& memory) const {
    const row by(l, memory);
    const T* const from = x + l.block() * C;
    T* const to = y + l.block() * C;
    const T largest = by.largest(std::span<const T>(from, std::size_t(C)));
    const T sum = by.template sum<T>(C, [&](int i) { return to[i] = std::exp(from[i] - largest); });
    by.for_each(C, [&](int i) { to[i] /= sum; });
  }
};

template <class T, int C>
struct softmax_gradient_rows {
  static constexpr int threads = threads_for_row(C);
  using row = row_by_block<T, threads>;
  using shared = typename row::memory;
  const T *y, *dy;
  gradient_place<T> dx;

  STRATA_DEVICE void operator()(const lane& l, shared& memory) const {
    const row by(l, memory);
    const long first = l.block() * C;
    const T dot = by.template sum<T>(C, [&](int i) { return y[first + i] * dy[first + i]; });
    by.for_each(C, [&](int i) { dx.store(first + i, y[first + i] * (dy[first + i] - dot)); });
  }
};

/// The moments of a row, kept for backward.
template <class T>
struct row_moments {
  T mean, inverse_deviation;
};

template <layer_norm_settings S, class T, int C>
struct layer_norm_rows {
  static constexpr int threads = threads_for_row(C);
  struct shared {
    T part[threads];
  };
  const T *x, *gamma, *beta;
  T* y;
  row_moments<T>* saved;

  STRATA_DEVICE void operator()(const lane& l, shared& memory) const {
    const T* const from = x + l.block() * C;
    T sum{}, squares{};
    for (int c = l.thread(); c < C; c += threads) sum += from[c] - from[0];
    const T mean = from[0] + sum_of_block(l, memory.part, sum) / C;  // exact where all elements are equal
    for (int c = l.thread(); c < C; c += threads) squares += (from[c] - mean) * (from[c] - mean);
    const T inverse_deviation = 1 / std::sqrt(sum_of_block(l, memory.part, squares) / C + T(S.epsilon.value()));
    for (int c = l.thread(); c < C; c += threads)
      y[l.block() * C + c] = (gamma ? gamma[c] : T(1)) * ((from[c] - mean) * inverse_deviation) + (beta ? beta[c] : T{});
    if (l.thread() == 0) saved[l.block()] = {mean, inverse_deviation};
  }
};

/// With z = (x - mean) / deviation and g = gamma * dy: dx = (g - mean(g) - z * mean(g * z)) / deviation.
template <class T, int C>
struct layer_norm_gradient_rows {
  static constexpr int threads = threads_for_row(C);
  struct shared {
    sum_pair<T> part[threads];
  };
  const T *x, *gamma, *dy;
  const row_moments<T>* saved;
  gradient_place<T> dx;

  STRATA_DEVICE void operator()(const lane& l, shared& memory) const {
    const long first = l.block() * C;
    const row_moments<T> of = saved[l.block()];
    const auto z = [&](int c) { return (x[first + c] - of.mean) * of.inverse_deviation; };
    const auto g = [&](int c) { return (gamma ? gamma[c] : T(1)) * dy[first + c]; };
    sum_pair<T> sums{};
    for (int c = l.thread(); c < C; c += threads) sums += {g(c), g(c) * z(c)};
    sums = sum_of_block(l, memory.part, sums);
    for (int c = l.thread(); c < C; c += threads)
      dx.store(first + c, (g(c) - sums.first / C - z(c) * (sums.second / C)) * of.inverse_deviation);
  }
};

template <class T, int C, int Rows>
struct layer_norm_weight_gradients {
  using value = sum_pair<T>;
  static constexpr int threads = 128, neighbours = neighbours_among(C);
  rows_of_leaves samples;
  const T *x, *dy;
  const row_moments<T>* saved;
  gradient_place<T> dgamma, dbeta;

  constexpr long terms(long sum) const { return samples.size(sum / C) * Rows; }
  constexpr value term(long sum, long i) const {
    const long row = samples.begin(sum / C) * Rows + i, at = row * C + sum % C;
    return {dy[at] * ((x[at] - saved[row].mean) * saved[row].inverse_deviation), dy[at]};
  }
  constexpr void store(long sum, value v) const {
    if (dgamma.is_wanted()) dgamma.store(sum / C, sum % C, v.first);
    if (dbeta.is_wanted()) dbeta.store(sum / C, sum % C, v.second);
  }
};

}  // namespace machine

namespace core {
/// Softmax over the last axis. x, y, dy, dx: (count, ..., C).
template <class P, shape In>
struct kernel<cuda, softmax, P, In> {
  using T = typename P::value_type;
  static constexpr kernel_traits traits{.reads_input = false, .reads_output = true};
  static constexpr int C = In.last(), rows = In.size() / C;

  static void forward(machine::queue q, const operands<T>& o) {
    machine::launch(q, long{o.count} * rows, machine::softmax_rows<T, C>{o.x[0], o.y});
  }
  static void backward(machine::queue q, const operands<T>& o) {
    const auto dx = machine::gradient_place<T>::of_input(o, 0);
    if (dx.is_wanted()) machine::launch(q, long{o.count} * rows, machine::softmax_gradient_rows<T, C>{o.y, o.dy, dx});
  }
};

/// x, y, dy, dx: (count, ..., C); gamma, beta: (C).
template <layer_norm_settings S, class P, shape In>
struct kernel<cuda, layer_normalization<S>, P, In> {
  using T = typename P::value_type;
  static constexpr int C = In.last(), rows = In.size() / C;
  static constexpr kernel_traits traits{.saved = 2 * rows};
  static constexpr int gamma = 0, beta = S.scale;

  static void forward(machine::queue q, const operands<T>& o) {
    machine::launch(q, long{o.count} * rows,
                    machine::layer_norm_rows<S, T, C>{o.x[0], gamma_of(o), S.center ? o.w[beta] : nullptr, o.y, moments(o)});
  }
  static void backward(machine::queue q, const operands<T>& o) {
    using place = machine::gradient_place<T>;
    const place none{nullptr, false, 0}, dgamma = S.scale ? place::of_weight(o, gamma) : none,
                                         dbeta = S.center ? place::of_weight(o, beta) : none, dx = place::of_input(o, 0);
    const auto samples = machine::rows_of_leaves::of(o);
    if (dgamma.is_wanted() || dbeta.is_wanted())
      machine::for_each_sum(q, long{samples.leaves} * C,
                            machine::layer_norm_weight_gradients<T, C, rows>{samples, o.x[0], o.dy, moments(o), dgamma, dbeta});
    if (dx.is_wanted())
      machine::launch(q, long{o.count} * rows,
                      machine::layer_norm_gradient_rows<T, C>{o.x[0], gamma_of(o), o.dy, moments(o), dx});
  }

 private:
  static machine::row_moments<T>* moments(const operands<T>& o) { return reinterpret_cast<machine::row_moments<T>*>(o.saved); }
  static const T* gamma_of(const operands<T>& o) { return S.scale ? o.w[gamma] : nullptr; }
};
}  // namespace core

}  // namespace strata
