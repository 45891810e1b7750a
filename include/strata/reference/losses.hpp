// Losses in plain loops: one kernel for all, and joint kernels that compute from the logits before softmax or sigmoid.
#pragma once
#include <strata/base/rounded.hpp>
#include <strata/concepts/loss.hpp>
#include <strata/layers/activations.hpp>
#include <strata/losses/binary_crossentropy.hpp>
#include <strata/losses/categorical_crossentropy.hpp>
#include <strata/losses/sparse_categorical_crossentropy.hpp>
#include <strata/reference/backend.hpp>
#include <strata/reference/gradients.hpp>

namespace strata {

namespace detail {
/// The truth of sample n, which has `size` predictions.
template <class Loss, class T>
constexpr auto truth_of([[maybe_unused]] const operands<T>& o, [[maybe_unused]] int n, [[maybe_unused]] int size) {
  if constexpr (Loss::labels == label_kind::sparse)
    return o.labels[n];
  else if constexpr (Loss::labels == label_kind::none)
    return no_truth();
  else
    return std::span<const T>(o.targets + std::ptrdiff_t(n) * size, std::size_t(size));
}

/// The weight of sample n.
template <class T>
constexpr T weight_of(const operands<T>& o, int n) {
  return o.weights ? o.weights[n] : T(1);
}

/// Adds the loss of sample n.
template <class T>
constexpr void add_loss(const operands<T>& o, int n, T value) {
  o.loss[0] += static_cast<double>(rounded(value * weight_of(o, n)));
  o.loss[1] += 1;
}
}  // namespace detail

namespace core {
/// x, y: (count, shape of the predictions); y = x. targets: the same shape; labels: (count).
template <loss_function L, class P, shape In>
struct kernel<reference, L, P, In> {
  using T = typename P::value_type;
  static constexpr int N = In.size();
  static constexpr kernel_traits traits{.scratch = N, .reads_input = false, .reads_output = true};

  static constexpr void forward(const operands<T>& o) {
    for (int i = 0; i < o.count * N; ++i) o.y[i] = o.x[0][i];
    for (int n = 0; o.loss && n < o.count; ++n)
      detail::add_loss(o, n, L::value(std::span<const T>(o.y + n * N, std::size_t(N)), detail::truth_of<L>(o, n, N)));
  }

  static constexpr void backward(const operands<T>& o) {
    T* const dx = detail::begin_input_gradient(o, 0, N);
    for (int n = 0; dx && n < o.count; ++n) {
      L::gradient(std::span<const T>(o.y + n * N, std::size_t(N)), detail::truth_of<L>(o, n, N),
                  std::span<T>(o.scratch, std::size_t(N)));
      const T weight = detail::weight_of(o, n);
      for (int i = 0; i < N; ++i) dx[n * N + i] += o.scratch[i] * weight;
    }
  }
};
}  // namespace core

namespace detail {
/// Whether a loss is computed together with a softmax before it: a crossentropy of classes without from_logits.
template <class L>
inline constexpr bool takes_softmax = false;
template <>
inline constexpr bool takes_softmax<sparse_categorical_crossentropy<>> = true;
template <class... Options>
inline constexpr bool takes_softmax<categorical_crossentropy<Options...>> =
    !categorical_crossentropy<Options...>::settings.from_logits;
}  // namespace detail

namespace core {
/// x: logits (count, C); y = softmax(x). Value: softmax followed by the loss. dx = y * sum(truth) - truth, which stays exact
/// where a probability rounds to 0 or 1, so nothing is clamped.
template <class L, class P, shape In>
  requires detail::takes_softmax<L> && (In.rank() == 1)
struct kernel<reference, fused<softmax, L>, P, In> {
  using T = typename P::value_type;
  static constexpr int N = In.size();
  static constexpr kernel_traits traits{.reads_input = false, .reads_output = true};

  static void forward(const operands<T>& o) {
    for (int n = 0; n < o.count; ++n) {
      const T* x = o.x[0] + n * N;
      const detail::softmax_sum<T> s(std::span<const T>(x, std::size_t(N)));
      if (o.loss) {
        const auto target = target_of(o, n);
        T loss{};
        for (int i = 0; i < N; ++i)
          if (const T t = target(std::size_t(i)); t != 0) loss += t * s.negative_log_probability(x[i]);
        detail::add_loss(o, n, loss);
      }
      for (int i = 0; i < N; ++i) o.y[n * N + i] = s.probability(x[i]);
    }
  }

  static constexpr void backward(const operands<T>& o) {
    T* const dx = detail::begin_input_gradient(o, 0, N);
    for (int n = 0; dx && n < o.count; ++n) {
      const auto target = target_of(o, n);
      T targets{};
      for (int i = 0; i < N; ++i) targets += target(std::size_t(i));
      const T weight = detail::weight_of(o, n);
      for (int i = 0; i < N; ++i) dx[n * N + i] += (o.y[n * N + i] * targets - target(std::size_t(i))) * weight;
    }
  }

 private:
  static constexpr auto target_of(const operands<T>& o, int n) {
    if constexpr (L::labels == label_kind::sparse)
      return detail::one_hot<T>(o.labels[n]);
    else
      return L::target(detail::truth_of<L>(o, n, N));
  }
};

/// x: logits (count, shape of the predictions); y = sigmoid(x). dx = (y - truth) / N for N predictions of a sample.
template <class... Options, class P, shape In>
  requires(!binary_crossentropy<Options...>::settings.from_logits)
struct kernel<reference, fused<sigmoid, binary_crossentropy<Options...>>, P, In> {
  using T = typename P::value_type;
  using L = binary_crossentropy<Options...>;
  static constexpr int N = In.size();
  static constexpr kernel_traits traits{.reads_input = false, .reads_output = true};

  static void forward(const operands<T>& o) {
    for (int n = 0; n < o.count; ++n) {
      const T* x = o.x[0] + n * N;
      if (o.loss) {
        T loss{};
        for (int i = 0; i < N; ++i) loss += L::value_of_logit(x[i], L::target(o.targets[n * N + i]));
        detail::add_loss(o, n, loss / T(N));
      }
      for (int i = 0; i < N; ++i) o.y[n * N + i] = L::sigmoid_of(x[i]);
    }
  }

  static constexpr void backward(const operands<T>& o) {
    T* const dx = detail::begin_input_gradient(o, 0, N);
    for (int i = 0; dx && i < o.count * N; ++i)
      dx[i] += (o.y[i] - L::target(o.targets[i])) * (detail::weight_of(o, i / N) / T(N));
  }
};
}  // namespace core

}  // namespace strata
