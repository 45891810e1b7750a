// A layer is what users write; it lowers to operations.
#pragma once
#include <strata/base/meta.hpp>
#include <strata/concepts/operation.hpp>

namespace strata {

namespace core {
/// `operations` lists what the layer computes, in order. An operation is its own layer. Optional members:
///   `name`, `class_name`       as Keras spells them: "conv2d", "Conv2D" (checkpoints, summary)
///   `adjust(parameter&)`       sets initializers and regularizers of the operations' parameters
template <class L>
concept layer = operation<L> || requires {
  typename L::operations;
  { L::name } -> std::convertible_to<const char*>;
};
}  // namespace core

namespace detail {
template <class L>
struct lowering {
  using type = type_list<L>;
};
template <class L>
  requires requires { typename L::operations; }
struct lowering<L> {
  using type = typename L::operations;
};
}  // namespace detail

namespace core {
template <layer L>
using operations_of = typename detail::lowering<L>::type;

/// A layer with its type erased.
struct layer_info {
  const char *name, *class_name;
  void (*adjust)(parameter&);
  bool misused;  // one of its options is wrong
};

template <class L>
constexpr const char* class_name_of() {
  if constexpr (requires { L::class_name; })
    return L::class_name;
  else
    return L::name;
}
}  // namespace core

namespace detail {
template <class L>
inline constexpr bool is_misused = requires { requires L::misused_option >= 0; };

template <class L>
constexpr void adjust_parameter([[maybe_unused]] parameter& p) {
  if constexpr (requires { L::adjust(p); }) L::adjust(p);
}
}  // namespace detail

namespace core {
template <layer L>
inline constexpr layer_info info_of_layer = {
    .name = L::name,
    .class_name = class_name_of<L>(),
    .adjust = detail::adjust_parameter<L>,
    .misused = detail::is_misused<L>,
};
}  // namespace core

}  // namespace strata
