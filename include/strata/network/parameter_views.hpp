// The parameters of one layer as tensors with their shapes in their types.
#pragma once
#include <boost/hana/tuple.hpp>
#include <span>
#include <strata/base/tensor.hpp>
#include <strata/network/layout.hpp>

namespace strata {

namespace detail {
template <class Network>
inline constexpr const auto& layout_of_network = layout_of<typename Network::items>;

/// Whether slot s belongs to the layer with that index.
template <class Network>
constexpr bool belongs(int s, int number) {
  return tape_of<typename Network::items>.nodes[layout_of_network<Network>.slots[s].node].layer_number == number;
}
template <class Network>
constexpr int slots_of_layer(int number) {
  int n = 0;
  for (int s = 0; s < layout_of_network<Network>.count; ++s) n += belongs<Network>(s, number);
  return n;
}
template <class Network>
constexpr int slot_of_layer(int number, int index) {
  int s = 0;
  for (;; ++s)
    if (belongs<Network>(s, number) && index-- == 0) return s;
}
}  // namespace detail

/// A Hana tuple of tensor<T, extents>, in the order of the layer: kernel, bias; or gamma, beta, moving_mean, moving_variance.
/// `Layer` is the index of the layer; the input is layer 0. `arena` is trainer::parameters().
///   hana::for_each(parameters_of_layer<cnn, 1>(model.parameters()), print);
template <core::network Network, int Layer, class T>
constexpr auto parameters_of_layer(std::span<T> arena) {
  static_assert(detail::slots_of_layer<Network>(Layer) > 0, "this layer has no parameters");
  return [&]<int... I>(std::integer_sequence<int, I...>) {
    constexpr const auto& layout = detail::layout_of_network<Network>;
    return boost::hana::make_tuple(tensor<T, layout.slots[detail::slot_of_layer<Network>(Layer, I)].what.extents>{
        arena.data() + layout.slots[detail::slot_of_layer<Network>(Layer, I)].offset}...);
  }(std::make_integer_sequence<int, detail::slots_of_layer<Network>(Layer)>{});
}

}  // namespace strata
