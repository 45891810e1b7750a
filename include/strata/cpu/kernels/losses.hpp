// Losses on vectors: functions over elements, alone or with the sigmoid before them, and crossentropies of classes from logits or
// with the softmax before them. Crossentropies of other probabilities use the reference kernel.
#pragma once
#include <concepts>
#include <limits>
#include <strata/cpu/kernels/softmax.hpp>
#include <strata/losses/element_wise.hpp>
#include <strata/losses/huber.hpp>
#include <strata/losses/mean_absolute_error.hpp>
#include <strata/losses/mean_squared_error.hpp>
#include <strata/reference/losses.hpp>

namespace strata {

namespace simd {

template <class T>
STRATA_INLINE inline vec<T> absolute(vec<T> x) {
  return x < T(0) ? -x : x;
}

/// Functions of each element of a vector, for the formulas of losses.
template <class T>
struct vector_math {
  using number = T;
  using value = vec<T>;

  STRATA_INLINE static vec<T> rounded(vec<T> x) { return simd::rounded<T>(x); }
  /// nan for x <= 0.
  STRATA_INLINE static vec<T> log(vec<T> x) {
    return x > T(0) ? simd::log<T>(x) : broadcast(std::numeric_limits<T>::quiet_NaN());
  }
  STRATA_INLINE static vec<T> power(vec<T> x, double exponent) {
    const vec<T> y = simd::exp<T>(T(exponent) * simd::log<T>(x));
    return x > T(0) ? y : broadcast(T(exponent > 0 ? 0 : std::numeric_limits<double>::infinity()));
  }
  STRATA_INLINE static vec<T> tanh(vec<T> x) { return simd::tanh<T>(x); }
  STRATA_INLINE static vec<T> exp_of_negative(vec<T> x) { return simd::exp<T>(x); }
  STRATA_INLINE static vec<T> log1p_of_fraction(vec<T> x) { return simd::log1p_of_fraction<T>(x); }
};

/// A loss that is one function over elements: `value(prediction, truth)` and `slope(prediction, truth)` of one element.
template <class L>
struct element_loss;

template <class L>
  requires std::derived_from<L, strata::detail::any_element_wise>
struct element_loss<L> {
  template <class T>
  STRATA_INLINE static vec<T> value(vec<T> p, vec<T> t) {
    return L::template value_of<vector_math<T>>(p, t);
  }
  template <class T>
  STRATA_INLINE static vec<T> slope(vec<T> p, vec<T> t) {
    return L::template slope_of<vector_math<T>>(p, t);
  }
};

/// The divisor of the sum over n elements.
template <class L, class T>
constexpr T divisor_of(int n) {
  if constexpr (requires { L::template divisor<T>(std::size_t(n)); })
    return L::template divisor<T>(std::size_t(n));
  else
    return T(n);
}

template <>
struct element_loss<mean_squared_error> {
  template <class T>
  STRATA_INLINE static vec<T> value(vec<T> p, vec<T> t) {
    return (p - t) * (p - t);
  }
  template <class T>
  STRATA_INLINE static vec<T> slope(vec<T> p, vec<T> t) {
    return T(2) * (p - t);
  }
};

template <>
struct element_loss<mean_absolute_error> {
  template <class T>
  STRATA_INLINE static vec<T> value(vec<T> p, vec<T> t) {
    return absolute<T>(p - t);
  }
  template <class T>
  STRATA_INLINE static vec<T> slope(vec<T> p, vec<T> t) {
    const vec<T> error = p - t, one = broadcast(T(1)), not_above = error < T(0) ? -one : error;  // zero or nan
    return error > T(0) ? one : not_above;
  }
};

template <decimal Delta>
struct element_loss<huber<Delta>> {
  template <class T>
  STRATA_INLINE static vec<T> value(vec<T> p, vec<T> t) {
    constexpr T d = T(Delta.value());
    const vec<T> error = p - t, size = absolute<T>(error), near = error * error * T(0.5),
                 far = multiply_add(broadcast(d), size, broadcast(-d * d / 2));
    return size <= d ? near : far;
  }
  template <class T>
  STRATA_INLINE static vec<T> slope(vec<T> p, vec<T> t) {
    const vec<T> d = broadcast(T(Delta.value())), error = p - t, not_above = error < -d ? -d : error;
    return error > d ? d : not_above;
  }
};

template <class... Options>
struct element_loss<binary_crossentropy<Options...>> {
  using loss = binary_crossentropy<Options...>;

  template <class T>
  STRATA_INLINE static vec<T> target(vec<T> t) {
    if constexpr (loss::smoothing == 0)
      return t;
    else
      return multiply_add(t, broadcast(T(1 - loss::smoothing)), broadcast(T(loss::smoothing / 2)));
  }
  /// The loss of the logit z, with e = exp(-|z|).
  template <class T>
  STRATA_INLINE static vec<T> value_of_logit(vec<T> z, vec<T> e, vec<T> t) {
    return multiply_add(-z, target<T>(t), z > T(0) ? z : vec<T>{}) + log1p_of_fraction<T>(e);
  }
  template <class T>
  STRATA_INLINE static vec<T> sigmoid_of(vec<T> z, vec<T> e) {
    return (z > T(0) ? broadcast(T(1)) : e) / (T(1) + e);
  }

  template <class T>
  STRATA_INLINE static vec<T> value(vec<T> p, vec<T> t) {
    if constexpr (loss::settings.from_logits) {
      return value_of_logit<T>(p, simd::exp<T>(-absolute<T>(p)), t);
    } else {
      const vec<T> truth = target<T>(t), inside = clamp<T>(p);
      const vec<T> of_ones = rounded<T>(truth * simd::log<T>(inside));
      return -multiply_add(T(1) - truth, simd::log<T>(T(1) - inside), of_ones);
    }
  }
  template <class T>
  STRATA_INLINE static vec<T> slope(vec<T> p, vec<T> t) {
    if constexpr (loss::settings.from_logits) {
      return sigmoid_of<T>(p, simd::exp<T>(-absolute<T>(p))) - target<T>(t);
    } else {
      const vec<T> inside = clamp<T>(p), s = (p - target<T>(t)) / (inside * (T(1) - inside));
      const integers<T> clamped = (inside < p) | (inside > p);
      return clamped ? vec<T>{} : s;
    }
  }

 private:
  template <class T>
  STRATA_INLINE static vec<T> clamp(vec<T> p) {
    using bounds = strata::detail::probability_bounds<T>;
    const vec<T> lowest = broadcast(bounds::lowest), highest = broadcast(bounds::highest), above = p < lowest ? lowest : p;
    return above > highest ? highest : above;
  }
};

/// Copies N predictions. Returns their loss, or 0 if there is no truth.
template <class L, class T>
[[gnu::noinline]] T pass_predictions(const T* x, const T* truth, int N, T* y) {
  return sum_over<T>(N,
                     [&](int i, auto lane) STRATA_INLINE {
                       const vec<T> p = lane.load(x + i);
                       lane.store(y + i, p);
                       return truth ? element_loss<L>::template value<T>(p, lane.load(truth + i)) : broadcast(T(0));
                     }) /
         divisor_of<L, T>(N);
}

template <class L, class T>
[[gnu::noinline]] void element_loss_gradient(const T* y, const T* truth, T weight, int N, T* dx, bool add) {
  const vec<T> share = broadcast(weight / divisor_of<L, T>(N));
  for_vectors<T>(N, [&](std::ptrdiff_t i, auto lane) STRATA_INLINE {
    put<T>(lane, dx + i, element_loss<L>::template slope<T>(lane.load(y + i), lane.load(truth + i)) * share, add);
  });
}

/// y = sigmoid(x). Returns the mean binary crossentropy of y, or 0 if there is no truth.
template <class L, class T>
[[gnu::noinline]] T sigmoid_and_loss(const T* x, const T* truth, int N, T* y) {
  using element = element_loss<L>;
  return sum_over<T>(N,
                     [&](int i, auto lane) STRATA_INLINE {
                       const vec<T> z = lane.load(x + i), e = simd::exp<T>(-absolute<T>(z));
                       lane.store(y + i, element::template sigmoid_of<T>(z, e));
                       return truth ? element::template value_of_logit<T>(z, e, lane.load(truth + i)) : broadcast(T(0));
                     }) /
         T(N);
}

/// dx (+)= weight (y - truth) / N
template <class L, class T>
[[gnu::noinline]] void sigmoid_loss_gradient(const T* y, const T* truth, T weight, int N, T* dx, bool add) {
  const vec<T> share = broadcast(weight / T(N));
  for_vectors<T>(N, [&](std::ptrdiff_t i, auto lane) STRATA_INLINE {
    put<T>(lane, dx + i, (lane.load(y + i) - element_loss<L>::template target<T>(lane.load(truth + i))) * share, add);
  });
}

/// The crossentropy of C classes, from logits.
template <class L>
struct class_loss {
  static constexpr bool sparse = L::labels == label_kind::sparse;

  template <class T>
  STRATA_INLINE static vec<T> target(vec<T> t, int C) {
    if constexpr (requires { L::smoothing; }) {
      if constexpr (L::smoothing != 0) return multiply_add(t, broadcast(T(1 - L::smoothing)), broadcast(T(L::smoothing) / T(C)));
    }
    return t;
  }

  /// -sum of target * log(probability)
  template <class T>
  static T value(const T* x, softmax_sum<T> s, const operands<T>& o, int n, int C) {
    if constexpr (sparse)
      return s.largest - x[o.labels[n]] + std::log(s.sum);
    else
      return dense_value(x, s, o.targets + std::ptrdiff_t(n) * C, C);
  }
  /// dx (+)= weight * (y * factor * sum of targets - target)
  template <class T>
  static void gradient(const T* y, T factor, const operands<T>& o, int n, int C, T* dx) {
    const T weight = strata::detail::weight_of(o, n);
    if constexpr (sparse)
      sparse_gradient(y, factor * weight, o.labels[n], weight, C, dx, o.adds_dx[0]);
    else
      dense_gradient(y, factor, o.targets + std::ptrdiff_t(n) * C, weight, C, dx, o.adds_dx[0]);
  }

 private:
  template <class T>
  [[gnu::noinline]] static T dense_value(const T* x, softmax_sum<T> s, const T* truth, int C) {
    const vec<T> top = broadcast(s.largest), log_sum = broadcast(T(std::log(s.sum)));
    return sum_over<T>(C, [&](int i, auto lane) STRATA_INLINE {
      const vec<T> t = target<T>(lane.load(truth + i), C), loss = t * ((top - lane.load(x + i)) + log_sum);
      return t == T(0) ? broadcast(T(0)) : loss;  // zero times infinity would be nan
    });
  }
  template <class T>
  [[gnu::noinline]] static void sparse_gradient(const T* y, T factor, int label, T weight, int C, T* dx, bool add) {
    for_vectors<T>(C, [&](std::ptrdiff_t i, auto lane) STRATA_INLINE { put<T>(lane, dx + i, lane.load(y + i) * factor, add); });
    dx[label] -= weight;
  }
  template <class T>
  [[gnu::noinline]] static void dense_gradient(const T* y, T factor, const T* truth, T weight, int C, T* dx, bool add) {
    const vec<T> all = broadcast(
                     factor * sum_over<T>(C, [&](int i, auto lane) STRATA_INLINE { return target<T>(lane.load(truth + i), C); })),
                 by = broadcast(weight);
    for_vectors<T>(C, [&](std::ptrdiff_t i, auto lane) STRATA_INLINE {
      const vec<T> slope = multiply_add(lane.load(y + i), all, -target<T>(lane.load(truth + i), C));
      put<T>(lane, dx + i, rounded<T>(slope * by), add);
    });
  }
};

template <class L>
concept added_over_elements = requires { sizeof(element_loss<L>); };

/// True if a crossentropy of classes takes logits.
template <class L>
inline constexpr bool takes_logits = false;
template <>
inline constexpr bool takes_logits<sparse_categorical_crossentropy<from_logits>> = true;
template <class... Options>
inline constexpr bool takes_logits<categorical_crossentropy<Options...>> =
    categorical_crossentropy<Options...>::settings.from_logits;

template <class P, shape In>
struct loss_kernel {
  using T = typename P::value_type;
  static constexpr int N = In.size();
  static constexpr kernel_traits traits{.reads_input = false, .reads_output = true};

  static const T* x(const operands<T>& o, int n) { return o.x[0] + std::ptrdiff_t(n) * N; }
  static T* y(const operands<T>& o, int n) { return o.y + std::ptrdiff_t(n) * N; }
  static T* dx(const operands<T>& o, int n) { return o.dx[0] + std::ptrdiff_t(n) * N; }
  /// Null in prediction, which needs no loss.
  static const T* truth(const operands<T>& o, int n) { return o.loss ? o.targets + std::ptrdiff_t(n) * N : nullptr; }
};

}  // namespace simd

namespace core {
/// A function over elements. x, y: (count, shape of the predictions); y = x.
template <loss_function L, class P, shape In>
  requires simd::added_over_elements<L>
struct kernel<cpu, L, P, In> : simd::loss_kernel<P, In> {
  using base = simd::loss_kernel<P, In>;
  using typename base::T;

  static void forward(const operands<T>& o) {
    for (int n = 0; n < o.count; ++n) {
      const T loss = simd::pass_predictions<L>(base::x(o, n), base::truth(o, n), base::N, base::y(o, n));
      if (o.loss) detail::add_loss(o, n, loss);
    }
  }
  static void backward(const operands<T>& o) {
    for (int n = 0; o.dx[0] && n < o.count; ++n)
      simd::element_loss_gradient<L>(base::y(o, n), o.targets + std::ptrdiff_t(n) * base::N, detail::weight_of(o, n), base::N,
                                     base::dx(o, n), o.adds_dx[0]);
  }
};

/// x: logits (count, shape of the predictions); y = sigmoid(x).
template <class... Options, class P, shape In>
  requires(!binary_crossentropy<Options...>::settings.from_logits)
struct kernel<cpu, fused<sigmoid, binary_crossentropy<Options...>>, P, In> : simd::loss_kernel<P, In> {
  using base = simd::loss_kernel<P, In>;
  using typename base::T;
  using L = binary_crossentropy<Options...>;

  static void forward(const operands<T>& o) {
    for (int n = 0; n < o.count; ++n) {
      const T loss = simd::sigmoid_and_loss<L>(base::x(o, n), base::truth(o, n), base::N, base::y(o, n));
      if (o.loss) detail::add_loss(o, n, loss);
    }
  }
  static void backward(const operands<T>& o) {
    for (int n = 0; o.dx[0] && n < o.count; ++n)
      simd::sigmoid_loss_gradient<L>(base::y(o, n), o.targets + std::ptrdiff_t(n) * base::N, detail::weight_of(o, n), base::N,
                                     base::dx(o, n), o.adds_dx[0]);
  }
};

/// x: logits (count, C); y = softmax(x).
template <class L, class P, shape In>
  requires detail::takes_softmax<L> && (In.rank() == 1)
struct kernel<cpu, fused<softmax, L>, P, In> : simd::loss_kernel<P, In> {
  using base = simd::loss_kernel<P, In>;
  using typename base::T;

  static void forward(const operands<T>& o) {
    for (int n = 0; n < o.count; ++n) {
      const auto s = simd::softmax_of(base::x(o, n), base::N, base::y(o, n));
      if (o.loss) detail::add_loss(o, n, simd::class_loss<L>::value(base::x(o, n), s, o, n, base::N));
    }
  }
  static void backward(const operands<T>& o) {
    for (int n = 0; o.dx[0] && n < o.count; ++n)
      simd::class_loss<L>::gradient(base::y(o, n), T(1), o, n, base::N, base::dx(o, n));
  }
};

/// x: logits (count, C); y = x. scratch: the exponentials of a row of logits.
template <class L, class P, shape In>
  requires simd::takes_logits<L> && (In.rank() == 1)
struct kernel<cpu, L, P, In> : simd::loss_kernel<P, In> {
  using base = simd::loss_kernel<P, In>;
  using typename base::T;
  static constexpr kernel_traits traits{.scratch = simd::aligned_size<T>(base::N), .reads_input = false, .reads_output = true};

  static void forward(const operands<T>& o) {
    simd::copy_rows(o.x[0], base::N, o.y, base::N, o.count, base::N);
    for (int n = 0; o.loss && n < o.count; ++n) {
      const auto s = simd::softmax_sum_of(base::x(o, n), base::N, static_cast<T*>(nullptr));
      detail::add_loss(o, n, simd::class_loss<L>::value(base::x(o, n), s, o, n, base::N));
    }
  }
  static void backward(const operands<T>& o) {
    for (int n = 0; o.dx[0] && n < o.count; ++n) {
      const auto s = simd::softmax_sum_of(base::y(o, n), base::N, o.scratch);
      simd::class_loss<L>::gradient(o.scratch, T(1) / s.sum, o, n, base::N, base::dx(o, n));
    }
  }
};
}  // namespace core

}  // namespace strata
