// Definitions of kernel_list.hpp.
#pragma once

namespace strata::detail {

STRATA_FUNCTION std::string layers_of_group(std::span<const tape_node> nodes, const std::vector<std::string>& names,
                                            const kernel_group& g) {
  std::string out;
  for (int i = g.first; i < g.first + g.count && !nodes[std::size_t(i)].operation->is_loss; ++i) {
    const int layer = nodes[std::size_t(i)].layer_number;
    if (i == g.first || layer != nodes[std::size_t(i) - 1].layer_number)
      out += text_of({i > g.first ? ", " : "", names[std::size_t(layer)]});
  }
  return out;
}

STRATA_FUNCTION std::string operations_of_group(std::span<const tape_node> nodes, const kernel_group& g) {
  std::string out;
  for (int k = 0; k < g.count; ++k) out += text_of({k > 0 ? " + " : "", nodes[std::size_t(g.first + k)].operation->name});
  return out;
}

STRATA_FUNCTION std::vector<listed_kernel> listed_kernels(std::span<const tape_node> nodes, std::span<const parameter_slot> slots,
                                                          std::span<const kernel_group> groups) {
  const std::vector<std::string> names = layer_names(nodes), parameters = parameter_names(nodes, slots);
  const auto layers_of = [&](const kernel_group& g) {
    const std::string layers = layers_of_group(nodes, names, g);
    return layers.empty() ? std::string("loss") : layers;
  };
  std::vector<listed_kernel> out;
  for (const kernel_group& g : groups) {
    listed_kernel& it = out.emplace_back();
    it.layers = layers_of(g);
    it.operations = operations_of_group(nodes, g);
    it.output = g.kernel.part_of_output > 0 ? shape{g.size} : nodes[std::size_t(g.first + g.count - 1)].out;
    it.trains = g.trains;
    const tape_node& first = nodes[std::size_t(g.first)];
    for (int k = 0; k < g.arity; ++k) {
      const int from = g.input[k];
      it.inputs.push_back({from < 0 ? std::string() : layers_of(groups[std::size_t(from)]),
                           std::size_t(nodes[std::size_t(first.input[k])].out.size()), g.wants_dx[k]});
    }
    for (int i = g.first; i < g.first + g.count; ++i) {
      const tape_node& node = nodes[std::size_t(i)];
      if (node.operation->multiply_adds)
        it.multiply_adds += double(node.operation->multiply_adds(nodes[std::size_t(node.input[0])].out));
      for (std::size_t s = 0; s < slots.size(); ++s)
        if (slots[s].node == i)
          it.parameters.push_back({parameters[s], std::size_t(slots[s].what.extents.size()), slots[s].what.trainable});
    }
  }
  return out;
}

}  // namespace strata::detail
