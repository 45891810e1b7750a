// A layer is what users write; it lowers to operations.
#pragma once
#include <strata/base/meta.hpp>
#include <strata/concepts/operation.hpp>

namespace strata {

/// `operations` lists what the layer computes, in order. An operation is its own layer. Optional members:
///   `name`, `class_name`       as Keras spells them: "conv2d", "Conv2D" (checkpoints, summary)
///   `adjust(parameter&)`       settles initializers and regularizers of the operations' parameters
template <class L>
concept layer = operation<L> || requires {
  typename L::operations;
  { L::name } -> std::convertible_to<const char*>;
};

namespace detail {
template <class L>
struct lowering {
  using type = list<L>;
};
template <class L>
  requires requires { typename L::operations; }
struct lowering<L> {
  using type = typename L::operations;
};
}  // namespace detail

template <layer L>
using operations_of = typename detail::lowering<L>::type;

/// A layer with its type erased.
struct layer_facts {
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

template <layer L>
inline constexpr layer_facts facts_of_layer = {L::name, class_name_of<L>(),
                                               [](parameter& p) {
                                                 if constexpr (requires { L::adjust(p); }) L::adjust(p);
                                               },
                                               requires { requires L::misused_option >= 0; }};

}  // namespace strata
