// Keras' older .h5: the architecture as an attribute, and the weights of each layer in a group of its name.
// needs: hdf5
#pragma once
#include <algorithm>
#include <set>
#include <span>
#include <strata/base/json.hpp>
#include <strata/interop/hdf5.hpp>
#include <strata/interop/keras/layer_list.hpp>
#include <strata/interop/keras/weights_store.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace strata::keras {

/// The bytes of such a file: architecture and weights, without the state of an optimizer.
inline std::vector<std::byte> legacy_bytes(const std::string& name, const model_view& model, const layer_list& list,
                                           const nlohmann::json& architecture, const char* version) {
  core::hdf5_image file(name);
  const nlohmann::json config{{"class_name", architecture["class_name"]}, {"config", architecture["config"]}};
  file.text("/", "model_config", config.dump());
  const std::string group = "/model_weights";
  std::vector<std::string> names;
  for (const int number : list.order)
    if (number > 0 || !list.chain) names.push_back(list[number].name);
  for (const std::string& of : {std::string("/"), group}) {
    file.text(of, "keras_version", version);
    file.text(of, "backend", "jax");
  }
  file.texts(group, "layer_names", names);
  for (const int number : list.order) {
    const layer& l = list[number];
    if (number == 0 && list.chain) continue;
    std::vector<std::string> weights;
    for (const int s : l.slots) {
      const core::parameter_slot& slot = model.slots[std::size_t(s)];
      weights.push_back(l.name + '/' + slot.what.name);
      write_parameter(file, group + '/' + l.name + '/' + weights.back(), model, slot.what, model.bytes_of(slot));
    }
    if (l.class_name == "Normalization") {
      weights.push_back(l.name + "/count");
      file.number<std::int32_t>(group + '/' + l.name + '/' + weights.back(), 0);
    }
    file.texts(group + '/' + l.name, "weight_names", weights);
  }
  file.texts(group + "/top_level_model_weights", "weight_names", {});
  return file.bytes();
}

/// The group of the weights: a whole model has them in a group, a file of weights does not. Null for a file of another kind.
inline const char* legacy_root(const hdf5_file& file) {
  return file.has_attribute("model_weights", "layer_names") ? "model_weights/"
         : file.has_attribute("", "layer_names")            ? ""
                                                            : nullptr;
}
inline bool is_legacy(const hdf5_file& file) { return legacy_root(file) != nullptr; }

/// Reads such a file. As in Keras, layers with weights are matched by their order; names of layers are ignored.
inline loaded_state read_legacy(const hdf5_file& file, const model_view& model, const layer_list& list,
                                convert_precision convert) {
  struct saved_layer {
    std::string name;
    std::vector<std::string> paths;
  };
  std::vector<saved_layer> saved;
  const std::string root = legacy_root(file);
  const auto listed = file.texts(root, "layer_names");
  const auto backend = file.texts(root, "backend");
  if (backend == std::vector<std::string>{"theano"} &&
      std::ranges::any_of(list.layers, [](const layer& l) { return l.class_name.starts_with("Conv2D"); }))
    file.fail(root, "Theano flips the kernels of convolutions: load the model with another backend of Keras, and save it");
  std::set<std::string> names_of_layers;
  constexpr std::size_t most_weights = 100'000;  // links may refer to the weights of a layer many times
  std::size_t count = 0;
  for (const std::string& name : *listed) {
    if (!names_of_layers.insert(name).second)
      file.fail(root, detail::text_of({"its attribute layer_names has ", detail::quoted(name), " twice"}));
    const auto weights = file.texts(root + name, "weight_names");
    if (!weights) file.fail(root + name, "its attribute weight_names is missing");
    if ((count += weights->size()) > most_weights) file.fail(root, detail::text_of({"has more than ", most_weights, " weights"}));
    if (weights->empty()) continue;
    saved_layer& l = saved.emplace_back(saved_layer{name, {}});
    for (const std::string& weight : *weights) l.paths.push_back(root + name + '/' + weight);
  }

  detail::misfits differences;
  const std::vector<std::string> names = detail::parameter_names(model.nodes, model.slots);
  std::vector<std::string> paths(model.slots.size());
  std::size_t next = 0;
  for (const int number : list.order) {
    const layer& l = list[number];
    if (l.slots.empty()) continue;
    if (next == saved.size()) {
      differences.add(l.name, "missing in the file");
      continue;
    }
    const saved_layer& from = saved[next++];
    const std::size_t most = l.slots.size() + (l.class_name == "Normalization");
    if (from.paths.size() != l.slots.size() && from.paths.size() != most) {
      differences.add(l.name, detail::text_of({"the file's layer ", from.name, " has ", from.paths.size(),
                                               " arrays, the network ", l.slots.size()}));
      continue;
    }
    for (std::size_t i = 0; i < l.slots.size(); ++i) {
      const std::size_t s = std::size_t(l.slots[i]);
      paths[s] = from.paths[i];
      const auto found = file.find_array(paths[s]);
      differences.add(names[s], found ? misfit_of(*found, model, model.slots[s].what, convert)
                                      : detail::text_of({"missing in the file, there is no ", paths[s]}));
    }
  }
  for (; next < saved.size(); ++next) differences.add(saved[next].name, "not in the network");
  differences.report(file.name());

  loaded_state state;
  for (std::size_t s = 0; s < paths.size(); ++s)
    state.parameters.push_back(read_numbers(file, paths[s], model, model.slots[s].what));
  return state;
}

}  // namespace strata::keras
