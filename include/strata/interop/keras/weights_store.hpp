// Keras' .weights.h5, alone or in a .keras archive: a group of numbered arrays for each layer and for the optimizer.
// needs: hdf5
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <span>
#include <strata/interop/hdf5.hpp>
#include <strata/interop/keras/layer_list.hpp>
#include <strata/interop/keras/optimizer_variables.hpp>
#include <strata/train/weights_file.hpp>
#include <string>
#include <vector>

namespace strata::keras {

/// Calls f(span of elements) with the element type of the model.
template <class F>
void with_numbers(const model_view& model, std::span<const std::byte> bytes, F&& f) {
  const auto call = [&]<class T>(T) {
    std::vector<T> numbers(bytes.size() / sizeof(T));
    std::memcpy(numbers.data(), bytes.data(), bytes.size());
    f(std::span<T>(numbers));
  };
  model.element_size == sizeof(double) ? call(double{}) : call(float{});
}

inline void write_parameter(core::hdf5_image& file, const std::string& path, const model_view& model, const core::parameter& what,
                            std::span<const std::byte> bytes, double offset = 0) {
  with_numbers(model, bytes, [&]<class T>(std::span<T> numbers) {
    if (offset != 0)
      for (T& n : numbers) n += T(offset);
    file.array(path, detail::extents_of(what), std::span<const T>(numbers));
  });
}

/// The bytes of such a file; with the optimizer, if the view has one.
inline std::vector<std::byte> weights_store_bytes(const std::string& name, const model_view& model, const layer_list& list) {
  core::hdf5_image file(name);
  file.text("/vars", "name", list.model_name());
  for (const int number : list.order) {
    const layer& l = list[number];
    if (number == 0 && list.chain) continue;  // a Sequential model does not list its input
    const std::string vars = "/layers/" + l.group + "/vars";
    file.text(vars, "name", l.name);
    int index = 0;
    for (const int s : l.slots) {
      const core::parameter_slot& slot = model.slots[std::size_t(s)];
      write_parameter(file, detail::text_of({vars, '/', index++}), model, slot.what, model.bytes_of(slot));
    }
    if (l.class_name == "Normalization") file.number<std::int32_t>(detail::text_of({vars, '/', index}), 0);  // its unused count
  }
  if (has_optimizer_of_keras(model)) {
    file.text("/optimizer/vars", "name", model.optimizer->name);
    file.number("/optimizer/vars/0", std::int32_t(model.optimizer->step));
    file.number("/optimizer/vars/1", float(model.optimizer->learning_rate));
    int index = 2;
    for (const optimizer_variable& v : optimizer_variables(model, list)) {
      const core::parameter_slot& slot = model.slots[std::size_t(v.slot)];
      write_parameter(file, detail::text_of({"/optimizer/vars/", index++}), model, slot.what,
                      model.bytes_of(slot, v.optimizer_slot), v.offset);
    }
  }
  return file.bytes();
}

/// The contents of a file, read and checked before anything changes.
struct loaded_state {
  std::vector<std::vector<std::byte>> parameters;  // by slot of the model
  bool has_optimizer = false;                      // the rest is the state of the same optimizer
  std::vector<std::vector<std::byte>> variables;
  long step = 0;
  double learning_rate = 0;
};

/// Describes how an array of the file differs from the parameter; empty if it does not.
inline std::string misfit_of(const hdf5_file::array& have, const model_view& model, const core::parameter& want,
                             convert_precision convert) {
  if (!have.is_float || have.size > sizeof(double)) return "the file has something other than real numbers";
  if (have.size != sizeof(float) && have.size != sizeof(double) && have.extents == detail::extents_of(want)) {
    if (convert == convert_precision::yes) return {};
    return detail::text_of({"the file has numbers of ", have.size, " bytes (convert_precision::yes would convert)"});
  }
  return detail::misfit(have.extents, have.size == sizeof(double) ? core::dtype::F64 : core::dtype::F32, want,
                        detail::type_of(model), convert);
}

/// Reads an array that has been checked.
inline std::vector<std::byte> read_numbers(const hdf5_file& file, const std::string& path, const model_view& model,
                                           const core::parameter& what, double offset = 0) {
  const auto read = [&]<class T>(T) {
    std::vector<T> numbers(std::size_t(what.extents.size()));
    file.read(path, std::span<T>(numbers));
    if (offset != 0)
      for (T& n : numbers) n -= T(offset);
    std::vector<std::byte> bytes(numbers.size() * sizeof(T));
    std::memcpy(bytes.data(), numbers.data(), bytes.size());
    return bytes;
  };
  return model.element_size == sizeof(double) ? read(double{}) : read(float{});
}

/// Reads the state of the optimizer, if the file has as many variables. As in Keras, it is reset otherwise.
inline void read_optimizer(const hdf5_file& file, const model_view& model, const layer_list& list, loaded_state& to) {
  const std::string vars = "optimizer/vars";
  if (!has_optimizer_of_keras(model) || !file.has(vars)) return;
  const std::vector<optimizer_variable> variables = optimizer_variables(model, list);
  const auto at = [&](std::size_t i) { return detail::text_of({vars, '/', i}); };
  // A schedule has no variable for the rate.
  const std::size_t saved = file.names_in(vars).size();
  const bool has_rate = saved == variables.size() + 2;
  if (!has_rate && saved != variables.size() + 1) return;

  std::int64_t step = 0;
  file.read(at(0), std::span(&step, 1));
  if (step < 0) file.fail(at(0), "the number of updates is negative");
  double rate = model.optimizer->learning_rate;
  if (has_rate) {
    double saved_rate = 0;
    file.read(at(1), std::span(&saved_rate, 1));
    if (!(saved_rate >= 0) || !std::isfinite(saved_rate)) file.fail(at(1), "the learning rate is negative or not finite");
    // Keras stores it as float.
    if (!model.optimizer->has_schedule && float(saved_rate) != float(rate)) rate = saved_rate;
  }
  for (std::size_t i = 0; i < variables.size(); ++i) {
    const core::parameter& what = model.slots[std::size_t(variables[i].slot)].what;
    const std::string path = at(i + 1 + has_rate);
    const auto found = file.find_array(path);
    if (!found) file.fail(path, "missing");
    if (const std::string why = misfit_of(*found, model, what, convert_precision::yes); !why.empty()) file.fail(path, why);
    to.variables.push_back(read_numbers(file, path, model, what, variables[i].offset));
  }
  to.has_optimizer = true;
  to.step = long(step);
  to.learning_rate = rate;
}

/// The group of all layers. Keras 2.12 to 2.14 used another name for it.
inline std::string root_of_layers(const hdf5_file& file) {
  const std::string usual = "layers/", older = "_layer_checkpoint_dependencies/";
  return file.has(usual) || !file.has(older) ? usual : older;
}

/// The places of the arrays of layers in a file. Keras 2.12 and 2.13 numbered the layers of a class in steps of two: dense,
/// dense_2, dense_4.
struct groups_of_layers {
  std::string root;
  int step = 1;

  groups_of_layers(const hdf5_file& file, const layer_list& list) : root(root_of_layers(file)) {
    if (root == "layers/") return;
    const bool has_second = std::ranges::any_of(list.layers, [&](const layer& l) {
      return !l.slots.empty() && l.group == name(l, 1) && !file.names_in(root + l.group + "/vars").empty();
    });
    step = has_second ? 1 : 2;
  }
  /// The group of the layer with index k in its class, in the order of Keras.
  std::string name(const layer& l, int k) const {
    const std::string first = detail::snake_case(l.class_name);
    return k == 0 ? first : detail::text_of({first, '_', k * step});
  }
};

/// Reads such a file. Throws strata_error that lists the parameters that differ.
inline loaded_state read_weights_store(const hdf5_file& file, const model_view& model, const layer_list& list,
                                       convert_precision convert) {
  detail::misfits differences;
  const std::vector<std::string> names = detail::parameter_names(model.nodes, model.slots);
  const groups_of_layers groups(file, list);
  std::vector<std::string> paths(model.slots.size()), known;
  std::map<std::string, int> met;
  for (const int number : list.order) {
    const layer& l = list[number];
    known.push_back(groups.name(l, met[l.class_name]++));
    const std::string vars = groups.root + known.back() + "/vars";
    int index = 0;
    for (const int s : l.slots) {
      const std::string& path = paths[std::size_t(s)] = detail::text_of({vars, '/', index++});
      const auto found = file.find_array(path);
      differences.add(names[std::size_t(s)], found ? misfit_of(*found, model, model.slots[std::size_t(s)].what, convert)
                                                   : detail::text_of({"missing in the file, there is no ", path}));
    }
    const std::size_t most = std::size_t(index) + (l.class_name == "Normalization");
    if (const std::size_t there = file.names_in(vars).size(); there > most)
      differences.add(l.name, detail::text_of({"the file has ", there, " arrays, the network ", index}));
  }
  for (const std::string& group : file.names_in(groups.root)) {
    if (differences.count() > 1000) break;  // links may refer to the same layers many times
    if (std::ranges::find(known, group) == known.end()) {
      const bool nested = !file.names_in(groups.root + group + "/layers").empty();
      if (nested || !file.names_in(groups.root + group + "/vars").empty())
        differences.add(group, nested ? "a model within the model, which is not read" : "not in the network");
    }
  }
  differences.report(file.name());

  loaded_state state;
  for (std::size_t s = 0; s < paths.size(); ++s)
    state.parameters.push_back(read_numbers(file, paths[s], model, model.slots[s].what));
  read_optimizer(file, model, list, state);
  return state;
}

/// The only place that changes a model; it does not fail.
inline void store(const loaded_state& state, model_view& model, const layer_list& list) {
  for (std::size_t s = 0; s < state.parameters.size(); ++s)
    std::ranges::copy(state.parameters[s], model.bytes_of(model.slots[s]).begin());
  if (!state.has_optimizer) return;
  const std::vector<optimizer_variable> variables = optimizer_variables(model, list);
  for (std::size_t i = 0; i < variables.size(); ++i)
    std::ranges::copy(state.variables[i],
                      model.bytes_of(model.slots[std::size_t(variables[i].slot)], variables[i].optimizer_slot).begin());
  model.optimizer->step = state.step;
  model.optimizer->learning_rate = state.learning_rate;
}

}  // namespace strata::keras
