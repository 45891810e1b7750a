// prediction: (2 N), N means, then N standard deviations
#pragma once
#include <cmath>
#include <cstddef>
#include <span>
#include <strata/base/rounded.hpp>
#include <strata/base/shape.hpp>
#include <strata/concepts/loss.hpp>

namespace strata {

namespace reasons {
inline constexpr reason kl_of_normal_takes_a_row_of_means_and_as_many_standard_deviations{
    "kl_of_normal takes one row, the means and then as many standard deviations: concat<mean, deviation>"};
}  // namespace reasons

/// The divergence of a normal distribution for each pair of mean m and standard deviation s from the standard normal one, added
/// over all pairs: (m^2 + s^2 - 1) / 2 - log s. A smaller s has the value and the gradient of 1e-7, so that training leads back
/// to deviations above 0: let softplus compute them. The loss of the code of a variational autoencoder (Kingma and Welling 2014),
/// without truth, for an output of a graph.
struct kl_of_normal {
  static constexpr auto name = "kl_of_normal";
  static constexpr label_kind labels = label_kind::none;
  static constexpr core::expected_shape output_shape(shape in) {
    if (in.rank() != 1 || in[0] % 2 != 0) return reasons::kl_of_normal_takes_a_row_of_means_and_as_many_standard_deviations;
    return in;
  }

  template <class T>
  static constexpr T value(std::span<const T> code, core::no_truth) {
    const std::size_t pairs = code.size() / 2;
    T sum{};
    for (std::size_t i = 0; i < pairs; ++i) {
      const T mean = code[i], deviation = bounded(code[pairs + i]);
      sum += (detail::rounded(mean * mean) + detail::rounded(deviation * deviation) - 1) / 2 - std::log(deviation);
    }
    return sum;
  }
  template <class T>
  static constexpr void gradient(std::span<const T> code, core::no_truth, std::span<T> dx) {
    const std::size_t pairs = code.size() / 2;
    for (std::size_t i = 0; i < pairs; ++i) {
      const T deviation = bounded(code[pairs + i]);
      dx[i] = code[i];
      dx[pairs + i] = deviation - 1 / deviation;
    }
  }

 private:
  template <class T>
  static constexpr T bounded(T deviation) {
    return deviation < T(1e-7) ? T(1e-7) : deviation;
  }
};

}  // namespace strata
