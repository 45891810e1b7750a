// activation<relu>: an activation as a layer of its own.
#pragma once
#include <strata/layers/activations.hpp>
#include <strata/layers/options.hpp>
#include <strata/layers/refused.hpp>

namespace strata {

namespace reasons {
inline constexpr reason activation_takes_an_activation{"activation<...> takes an activation, such as relu"};
}  // namespace reasons

/// in: any shape  out: the same shape.  https://keras.io/api/layers/core_layers/activation
template <class A>
struct activation {
  static constexpr auto name = "activation", class_name = "Activation";
  using operations = core::type_list<
      std::conditional_t<core::activation_operation<A>, A, detail::refused<reasons::activation_takes_an_activation>>>;
};

}  // namespace strata
