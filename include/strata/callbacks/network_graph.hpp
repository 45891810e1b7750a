// The graph of a network, for TensorBoard. Needs protozero.
// needs: protozero
#pragma once
#include <cstddef>
#include <cstdint>
#include <protozero/pbf_writer.hpp>
#include <strata/network/layer_names.hpp>
#include <strata/train/model_view.hpp>
#include <string>
#include <vector>

namespace strata::detail {

/// A GraphDef with a node for each operation and for each parameter: dense/affine, dense/relu, dense/kernel. TensorBoard shows a
/// layer as a box that opens. A layer of one operation without parameters is that node.
/// https://github.com/tensorflow/tensorflow/blob/master/tensorflow/core/framework/graph.proto
class network_graph {
  // Numbers of fields in TensorFlow's messages.
  struct field {
    static constexpr protozero::pbf_tag_type node = 1, versions = 4;                             // GraphDef
    static constexpr protozero::pbf_tag_type producer = 1;                                       // VersionDef
    static constexpr protozero::pbf_tag_type name = 1, operation = 2, input = 3, attribute = 5;  // NodeDef
    static constexpr protozero::pbf_tag_type key = 1, value = 2;                                 // of a map
    static constexpr protozero::pbf_tag_type list = 1, shapes = 7;                               // AttrValue, its ListValue
    static constexpr protozero::pbf_tag_type dim = 2, size = 1;                                  // TensorShapeProto
  };
  std::string bytes_;

  void add(const std::string& name, const char* operation, const std::vector<std::string>& inputs, const shape& extents,
           bool has_batch) {
    protozero::pbf_writer graph(bytes_), node(graph, field::node);
    node.add_string(field::name, name);
    node.add_string(field::operation, operation);
    for (const std::string& input : inputs) node.add_string(field::input, input);
    protozero::pbf_writer entry(node, field::attribute);
    entry.add_string(field::key, "_output_shapes");
    protozero::pbf_writer value(entry, field::value), list(value, field::list), of_output(list, field::shapes);
    const auto add_extent = [&](std::int64_t extent) {
      protozero::pbf_writer dim(of_output, field::dim);
      dim.add_int64(field::size, extent);
    };
    if (has_batch) add_extent(-1);
    for (int axis = 0; axis < extents.rank(); ++axis) add_extent(extents[axis]);
  }

 public:
  explicit network_graph(const model_view& model) {
    const std::vector<std::string> layers = layer_names(model.nodes), parameters = parameter_names(model.nodes, model.slots);
    std::vector<int> parts(layers.size());
    for (const tape_node& n : model.nodes) ++parts[std::size_t(n.layer_number)];
    for (const parameter_slot& s : model.slots) ++parts[std::size_t(model.nodes[std::size_t(s.node)].layer_number)];
    std::vector<std::string> names;
    for (const tape_node& n : model.nodes) {
      const std::size_t layer = std::size_t(n.layer_number);
      names.push_back(unique_name(parts[layer] == 1 ? layers[layer] : layers[layer] + '/' + n.operation->name, names));
    }
    for (std::size_t s = 0; s < parameters.size(); ++s)
      add(parameters[s], model.slots[s].what.trainable ? "Parameter" : "State", {}, model.slots[s].what.extents, false);
    for (std::size_t i = 0; i < names.size(); ++i) {
      const tape_node& n = model.nodes[i];
      std::vector<std::string> inputs;
      for (int k = 0; k < n.arity; ++k) inputs.push_back(names[std::size_t(n.input[k])]);
      for (std::size_t s = 0; s < parameters.size(); ++s)
        if (model.slots[s].node == (n.owner >= 0 ? n.owner : int(i))) inputs.push_back(parameters[s]);
      add(names[i], n.operation->name, inputs, n.out, true);
    }
    protozero::pbf_writer graph(bytes_), versions(graph, field::versions);
    versions.add_int32(field::producer, 1);
  }

  const std::string& bytes() const { return bytes_; }
};

}  // namespace strata::detail
