// Definitions of trainable_layers.hpp.
#pragma once
#include <algorithm>
#include <utility>

namespace strata::detail {

/// The index of the layer with that name.
STRATA_FUNCTION int layer_of_name(std::span<const tape_node> nodes, const std::string& layer, const char* asks) {
  const std::vector<std::string> names = layer_names(nodes);
  const auto found = std::find(names.begin(), names.end(), layer);
  if (found != names.end()) return int(found - names.begin());
  std::string known;
  for (const std::string& name : names) known += text_of({known.empty() ? "" : ", ", name});
  throw_error({asks, ": there is no layer '", layer, "'; the layers are ", known});
}

STRATA_FUNCTION void set_trainable(std::span<const tape_node> nodes, std::span<const parameter_slot> slots,
                                   std::span<bool> frozen, const std::string& layer, bool trains) {
  const int number = layer_of_name(nodes, layer, "set_trainable");
  const auto is_of_layer = [&](const parameter_slot& s) { return nodes[std::size_t(s.node)].layer_number == number; };
  for (const tape_node& n : nodes) {
    if (n.owner >= 0)
      throw_error(
          "set_trainable: a network with shared layers trains all of them: write frozen<...> around those that should not "
          "change");
    if (n.layer_number != number || n.is_input()) continue;
    if (n.frozen && trains &&
        std::any_of(slots.begin(), slots.end(), [&](const parameter_slot& s) { return is_of_layer(s) && s.what.frozen; }))
      throw_error({"set_trainable: '", layer, "' is in frozen<...>, whose weights no program can train"});
    if (n.operation->traits.whole_batch && !trains)
      throw_error({"set_trainable: '", layer,
                   "' computes with statistics of the batch while it trains, and with its moving statistics when it is frozen: "
                   "write frozen<...> around it"});
  }
  for (std::size_t s = 0; s < slots.size(); ++s)
    if (is_of_layer(slots[s]) && slots[s].what.trainable) frozen[s] = !trains;
}

STRATA_FUNCTION bool is_trainable(std::span<const tape_node> nodes, std::span<const parameter_slot> slots,
                                  std::span<const bool> frozen, const std::string& layer) {
  const int number = layer_of_name(nodes, layer, "is_trainable");
  bool any = false;
  for (std::size_t s = 0; s < slots.size(); ++s)
    any = any || (nodes[std::size_t(slots[s].node)].layer_number == number && slots[s].what.trainable && !frozen[s]);
  return any;
}

STRATA_FUNCTION std::string frozen_layers(std::span<const tape_node> nodes, std::span<const parameter_slot> slots,
                                          std::span<const bool> frozen) {
  const std::vector<std::string> names = layer_names(nodes);
  std::string out;
  int last = -1;
  for (std::size_t s = 0; s < slots.size(); ++s)
    if (const int number = nodes[std::size_t(slots[s].node)].layer_number; frozen[s] && number != std::exchange(last, number))
      out += text_of({out.empty() ? ", frozen {" : ", ", names[std::size_t(number)]});
  if (!out.empty()) out += '}';
  return out;
}

}  // namespace strata::detail
