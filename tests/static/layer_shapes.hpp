// The output shape and the parameters of a layer, through its operations.
#pragma once
#include <span>
#include <strata/concepts/layer.hpp>
#include <string_view>

namespace strata::test {
using namespace core;

template <layer Layer>
constexpr expected_shape output_of(shape in) {
  return [&]<class... Operation>(type_list<Operation...>) {
    expected_shape at = in;
    ((at = at.refused ? at : info_of<Operation>.output_shape(std::span<const shape>(&at.value, 1))), ...);
    return at;
  }(operations_of<Layer>{});
}

template <class Layer>
constexpr bool gives(shape in, shape out) {
  const expected_shape got = output_of<Layer>(in);
  return !got.refused && got.value == out;
}

template <class Layer>
constexpr bool refuses(shape in, const reason& why) {
  const expected_shape got = output_of<Layer>(in);
  return got.refused && got.why == &why;
}

/// Parameter `k` of the layer's first operation, with the layer's options applied.
template <class Layer>
constexpr parameter parameter_of(shape in, int k) {
  parameter owned[max_parameters] = {};
  info_of<detail::at_t<0, operations_of<Layer>>>.parameters(in, owned);
  info_of_layer<Layer>.adjust(owned[k]);
  return owned[k];
}
template <class Layer>
constexpr int parameter_count(shape in) {
  parameter owned[max_parameters] = {};
  return info_of<detail::at_t<0, operations_of<Layer>>>.parameters(in, owned);
}

constexpr bool is(const parameter& p, std::string_view name, shape extents, std::string_view start, bool trainable = true) {
  return p.name == name && p.extents == extents && p.start->name == start && p.trainable == trainable;
}

template <class Layer>
constexpr bool called(std::string_view name, std::string_view class_name) {
  return info_of_layer<Layer>.name == name && info_of_layer<Layer>.class_name == class_name;
}

/// Whether option number `at` is refused for that reason.
template <class Layer>
constexpr bool misused(int at, const reason& why) {
  return info_of_layer<Layer>.misused && Layer::misused_option == at && &Layer::misuse == &why;
}
template <class Layer>
constexpr bool well_used() {
  return !info_of_layer<Layer>.misused;
}

}  // namespace strata::test
