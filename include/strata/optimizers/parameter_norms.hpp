// The norms of a whole parameter, for rules that need them.
#pragma once
#include <strata/base/namespaces.hpp>

namespace strata {

namespace core {
/// Euclidean norms of one parameter, before the last pass of a parameterwise_rule or a factored_rule.
template <class Number>
struct norms_of_parameter {
  Number weights;    // after weight decay
  Number direction;  // norm of the directions that propose() returned
  long elements = 1;
};
using parameter_norms = norms_of_parameter<double>;
}  // namespace core

namespace detail {
/// The type in which a rule for T computes with norms: double, unless T records operations.
template <class T>
struct number_of_norms {
  using type = double;
};
template <class T>
using norm_number = typename number_of_norms<T>::type;
}  // namespace detail

}  // namespace strata
