// Losses that are one function of prediction and truth, added up over the elements of a sample.
#pragma once
#include <span>
#include <strata/base/shape.hpp>
#include <strata/concepts/batch_source.hpp>
#include <strata/losses/measured.hpp>
#include <strata/losses/number_math.hpp>

namespace strata::detail {

struct any_element_wise {};

/// Base of such losses. `Loss` has `value_of<M>(p, t)` and its derivative by p, `slope_of<M>(p, t)`, both of one M::value: a
/// number or a vector of numbers, whose functions are those of M. The loss of a sample is the mean over its elements or, if Loss
/// has a member `adds_elements`, their sum.
template <class Loss>
struct element_wise : any_element_wise, measured<Loss> {
  static constexpr label_kind labels = label_kind::dense;
  static constexpr expected_shape output_shape(shape in) { return in; }

  template <class T, class L = Loss>
  static constexpr T divisor(std::size_t elements) {
    if constexpr (requires { L::adds_elements; })
      return T(1);
    else
      return T(elements);
  }

  template <class T, class L = Loss>
  static constexpr T value(std::span<const T> prediction, std::span<const T> truth) {
    T sum{};
    for (std::size_t i = 0; i < prediction.size(); ++i)
      sum += rounded(L::template value_of<number_math<T>>(prediction[i], truth[i]));
    return sum / divisor<T>(prediction.size());
  }
  template <class T, class L = Loss>
  static constexpr void gradient(std::span<const T> prediction, std::span<const T> truth, std::span<T> dx) {
    for (std::size_t i = 0; i < prediction.size(); ++i)
      dx[i] = L::template slope_of<number_math<T>>(prediction[i], truth[i]) / divisor<T>(prediction.size());
  }
};

}  // namespace strata::detail
