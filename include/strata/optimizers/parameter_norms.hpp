// What a rule with norms knows about a whole parameter.
#pragma once

namespace strata {

/// Euclidean norms of one parameter, before the last pass of a parameterwise_rule or a factored_rule.
template <class Number>
struct norms_of_parameter {
  Number weights;    // after weight decay
  Number direction;  // of what propose() returned
  long elements = 1;
};
using parameter_norms = norms_of_parameter<double>;

namespace detail {
/// In what a rule for numbers T computes with norms: double, unless T records what is done with it.
template <class T>
struct number_of_norms {
  using type = double;
};
template <class T>
using norm_number = typename number_of_norms<T>::type;
}  // namespace detail

}  // namespace strata
