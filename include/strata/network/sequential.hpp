// sequential<input<...>, items...>: a network, and the compile error if its layers do not fit.
#pragma once
#include <strata/network/tape.hpp>

namespace strata {

// The words of the compile error. They are never defined, so that the compiler prints their names.
template <int... Path>
struct at_index;
template <class Layer>
struct by_layer;
template <int... Extents>
struct receives;
template <class Where, class Who, class What, class Why>
struct shape_mismatch;
template <class Where, class Who, class Option, class Why>
struct wrong_option;

template <class Items>
inline constexpr tape_failure failure_of = tape_of<Items>.failed;

namespace detail {
template <class Items, bool WellShaped = tape_of<Items>.well_shaped(), bool Misused = failure_of<Items>.misused_option>
struct verdict {
  using type = no_complaint;
};

template <class Items, class Indices = std::make_integer_sequence<int, failure_of<Items>.where.depth>>
struct place_of_failure;
template <class Items, int... P>
struct place_of_failure<Items, std::integer_sequence<int, P...>> {
  using type = at_index<failure_of<Items>.where.index[P]...>;
};
template <class Items>
using layer_that_failed = typename at_t<failure_of<Items>.node, node_types_of<Items>>::layer;

template <class Items>
struct verdict<Items, false, false> {
  template <int... E>
  static auto sentence(std::integer_sequence<int, E...>)
      -> shape_mismatch<typename place_of_failure<Items>::type, by_layer<layer_that_failed<Items>>,
                        receives<failure_of<Items>.received[E]...>, because<*failure_of<Items>.why>>;
  using type = decltype(sentence(std::make_integer_sequence<int, failure_of<Items>.received.rank()>{}));
};
template <class Items>
struct verdict<Items, false, true> {
  using layer = layer_that_failed<Items>;
  using type = wrong_option<typename place_of_failure<Items>::type, by_layer<layer>,
                            at_t<layer::misused_option, typename layer::options>, because<layer::misuse>>;
};

template <class T>
inline constexpr bool is_input = false;
template <int... E>
inline constexpr bool is_input<input<E...>> = true;
}  // namespace detail

/// A network: layers from the input to the predictions. Its shapes are checked where the type is named.
///   sequential<input<28, 28, 1>, conv2d<32, 3, relu>, flatten, dense<10, softmax>>
template <class First, class... Items>
struct sequential {
  static_assert(detail::is_input<First>, "a network starts with input<extents of one sample...>");
  using items = branch<First, Items...>;
  static_assert(sizeof(typename detail::verdict<std::conditional_t<detail::is_input<First>, items, branch<input<1>>>>::type) > 0,
                "the layers do not fit together");

  static constexpr shape input_shape = tape_of<items>.nodes[0].out;
  static constexpr shape output_shape = tape_of<items>.nodes[tape_of<items>.size - 1].out;
};

template <class N>
concept network = requires {
  typename N::items;
  requires tape_of<typename N::items>.well_shaped();
};

/// Whether the items are a network, without a compile error: static_assert(!well_shaped<input<28, 28, 1>, dense<10>>).
template <class... Items>
concept well_shaped = tape_of<branch<Items...>>.well_shaped();

}  // namespace strata
