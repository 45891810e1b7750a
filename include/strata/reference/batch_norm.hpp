// Batch normalization in plain loops. A step calls collect | forward | update_state | collect_backward | backward. At each bar,
// the engine adds the statistics of all leaves.
#pragma once
#include <cmath>
#include <strata/layers/batch_norm.hpp>
#include <strata/reference/backend.hpp>
#include <strata/reference/gradients.hpp>

namespace strata::core {

/// x, y, dy, dx: (count, ..., C); gamma, beta, moving mean and moving variance: (C).
template <batch_norm_settings S, class P, shape In>
struct kernel<reference, batch_normalization<S>, P, In> {
  using T = typename P::value_type;
  static constexpr int C = In.last(), size = In.size();
  /// Forward: the sums of x and of x^2 per channel. After them, backward: the sums of dy and of dy * x.
  static constexpr kernel_traits traits{.statistics = 2 * C};
  static constexpr double epsilon = S.epsilon.value(), momentum = S.momentum.value();
  static constexpr int gamma = 0, beta = S.scale, moving_mean = S.scale + S.center, moving_variance = moving_mean + 1;

  static constexpr void collect(const operands<T>& o) {
    for (int i = 0; i < o.count * size; ++i) {
      const double x = o.x[0][i];
      o.statistics[i % C] += x;
      o.statistics[C + i % C] += x * x;
    }
  }

  static constexpr double elements(const operands<T>& o) { return o.total * (size / C); }
  static constexpr double mean(const operands<T>& o, int c) { return o.statistics[c] / elements(o); }
  /// The biased variance, as in Keras. Rounding must not make it negative.
  static constexpr double variance(const operands<T>& o, int c) {
    const double v = o.statistics[C + c] / elements(o) - mean(o, c) * mean(o, c);
    return v > 0 ? v : 0;
  }
  static double inverse_deviation(const operands<T>& o, int c) { return 1 / std::sqrt(variance(o, c) + epsilon); }

  static void apply(const operands<T>& o, int c, T mean, T inverse_deviation) {
    const T scale = S.scale ? o.w[gamma][c] : T(1), shift = S.center ? o.w[beta][c] : T{};
    for (int i = c; i < o.count * size; i += C) o.y[i] = (o.x[0][i] - mean) * inverse_deviation * scale + shift;
  }
  static void forward(const operands<T>& o) {
    for (int c = 0; c < C; ++c) apply(o, c, T(mean(o, c)), T(inverse_deviation(o, c)));
  }
  static void infer(const operands<T>& o) {
    for (int c = 0; c < C; ++c) apply(o, c, o.w[moving_mean][c], T(1 / std::sqrt(double(o.w[moving_variance][c]) + epsilon)));
  }

  /// Called once per step, with the traits.statistics of the whole batch.
  static constexpr void update_state(const operands<T>& o, T* const* w) {
    for (int c = 0; c < C; ++c) {
      w[moving_mean][c] = T(momentum * w[moving_mean][c] + (1 - momentum) * mean(o, c));
      w[moving_variance][c] = T(momentum * w[moving_variance][c] + (1 - momentum) * variance(o, c));
    }
  }

  /// Sums dy * x, not dy * z: the mean of the batch is not available here, because the forward half holds the sums of this leaf.
  static constexpr void collect_backward(const operands<T>& o) {
    for (int i = 0; i < o.count * size; ++i) {
      const double dy = o.dy[i];
      o.statistics[2 * C + i % C] += dy;
      o.statistics[3 * C + i % C] += dy * double(o.x[0][i]);
    }
  }

  /// With z = (x - mean) / deviation over N elements: dx = gamma / deviation * (dy - sum(dy) / N - z * sum(dy * z) / N).
  static void backward(const operands<T>& o) {
    T* const dx = detail::begin_input_gradient(o, 0, size);
    T* const dgamma = S.scale ? detail::begin_weight_gradient(o, gamma, C) : nullptr;
    T* const dbeta = S.center ? detail::begin_weight_gradient(o, beta, C) : nullptr;
    for (int c = 0; c < C; ++c) {
      const double m = mean(o, c), inverse = inverse_deviation(o, c);
      const double sum = o.statistics[2 * C + c], sum_z = (o.statistics[3 * C + c] - m * sum) * inverse;
      const T scale = T((S.scale ? double(o.w[gamma][c]) : 1) * inverse);
      const T mean_dy = T(sum / elements(o)), mean_dy_z = T(sum_z / elements(o));
      for (int i = c; i < o.count * size; i += C) {
        const T z = (o.x[0][i] - T(m)) * T(inverse);
        if (dgamma) dgamma[c] += o.dy[i] * z;
        if (dbeta) dbeta[c] += o.dy[i];
        if (dx) dx[i] += scale * (o.dy[i] - mean_dy - z * mean_dy_z);
      }
    }
  }
};

/// The kernel of a frozen layer.
template <batch_norm_settings S, class P, shape In>
  requires(S.frozen)
struct kernel<reference, batch_normalization<S>, P, In> {
  using T = typename P::value_type;
  static constexpr int C = In.last(), size = In.size();
  static constexpr int gamma = 0, beta = S.scale, moving_mean = S.scale + S.center, moving_variance = moving_mean + 1;
  static constexpr kernel_traits traits{.reads_input = false};

  static T inverse_deviation(const operands<T>& o, int c) {
    return T(1 / std::sqrt(double(o.w[moving_variance][c]) + S.epsilon.value()));
  }
  static void forward(const operands<T>& o) {
    for (int i = 0; i < o.count * size; ++i) {
      const int c = i % C;
      const T z = (o.x[0][i] - o.w[moving_mean][c]) * inverse_deviation(o, c);
      o.y[i] = z * (S.scale ? o.w[gamma][c] : T(1)) + (S.center ? o.w[beta][c] : T{});
    }
  }
  static void backward(const operands<T>& o) {
    T* const dx = detail::begin_input_gradient(o, 0, size);
    for (int i = 0; dx && i < o.count * size; ++i)
      dx[i] += o.dy[i] * (S.scale ? o.w[gamma][i % C] : T(1)) * inverse_deviation(o, i % C);
  }
};

}  // namespace strata::core
