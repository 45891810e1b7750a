// sequential<input<...>, items...>: a network, and the compile error if its layers do not fit. Without input: a layer sequence.
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
template <int... Extents>
struct beside;
template <int... Extents>
struct wants;
template <class... Words>
struct shape_mismatch;
template <class Where, class Who, class Option, class Why>
struct wrong_option;

namespace core {
template <class Items>
inline constexpr tape_failure failure_of = tape_of<Items>.failed;
}  // namespace core

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

// (With the sequence as a default template argument g++ 12 crashes.)
template <template <int...> class Words, shape S>
struct spelled {
  template <int... I>
  static auto with(std::integer_sequence<int, I...>) -> Words<S[I]...>;
  using type = decltype(with(std::make_integer_sequence<int, S.rank()>{}));
};

template <class Items>
struct verdict<Items, false, false> {
  static constexpr tape_failure failed = failure_of<Items>;
  using place = typename place_of_failure<Items>::type;
  using layer = by_layer<layer_that_failed<Items>>;
  using received = typename spelled<receives, failed.received>::type;
  static constexpr const reason& words() { return *failed.why; }  // nvcc drops an asterisk in a template argument
  using why = because<words()>;
  static auto sentence() {
    if constexpr (failed.other.rank() == 0)
      return std::type_identity<shape_mismatch<place, layer, received, why>>{};
    else if constexpr (tape_of<Items>.nodes[failed.node].arity > 1)
      return std::type_identity<shape_mismatch<place, layer, received, typename spelled<beside, failed.other>::type, why>>{};
    else
      return std::type_identity<shape_mismatch<place, layer, received, typename spelled<wants, failed.other>::type, why>>{};
  }
  using type = typename decltype(sentence())::type;
};
template <class Items>
struct verdict<Items, false, true> {
  using layer = layer_that_failed<Items>;
  using type = wrong_option<typename place_of_failure<Items>::type, by_layer<layer>,
                            at_t<layer::misused_option, typename layer::options>, because<layer::misuse>>;
};
}  // namespace detail

/// A network: layers from the input to the predictions. Its shapes are checked as soon as the type is named.
///   sequential<input<28, 28, 1>, conv2d<32, 3, relu>, flatten, dense<10, softmax>>
template <int... Extents, class... Items>
struct sequential<input<Extents...>, Items...> {
  using items = branch<input<Extents...>, Items...>;
  static_assert(detail::diagnosed<typename detail::verdict<items>::type>[0]);

  static constexpr shape input_shape = core::tape_of<items>.nodes[0].out;
  static constexpr shape output_shape = core::tape_of<items>.nodes[core::tape_of<items>.size - 1].out;
};

/// A sequence of layers, as an item or a branch of a network: it takes any input shape that its layers take.
///   residual<sequential<conv2d<32, 3, same_padding, relu>, conv2d<32, 3, same_padding>>>
template <class... Items>
struct sequential {};

namespace core {
template <class N>
concept network = requires {
  typename N::items;
  requires tape_of<typename N::items>.well_shaped();
};

/// Whether the items are a network, without a compile error: static_assert(!well_shaped<input<28, 28, 1>, dense<10>>).
template <class... Items>
concept well_shaped = tape_of<branch<Items...>>.well_shaped();
}  // namespace core

}  // namespace strata
