// Keras' files: with this header in one file of a program, save_weights, load_weights and model_checkpoint write and read
// .weights.h5, .keras and .h5 (link -lhdf5 -lzip).  https://keras.io/guides/serialization_and_saving
// needs: hdf5 libzip
#pragma once
#include <algorithm>
#include <filesystem>
#include <optional>
#include <span>
#include <strata/interop/hdf5.hpp>
#include <strata/interop/keras/architecture.hpp>
#include <strata/interop/keras/layer_list.hpp>
#include <strata/interop/keras/legacy_file.hpp>
#include <strata/interop/keras/model_config.hpp>
#include <strata/interop/keras/option_check.hpp>
#include <strata/interop/keras/weights_store.hpp>
#include <strata/io/atomic_file.hpp>
#include <strata/io/file_kind.hpp>
#include <strata/io/zip_archive.hpp>
#include <strata/train/weights_file.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace strata::keras {

/// The version of Keras in the files: the one against which the formats are tested.
inline constexpr const char* keras_version = "3.15.1";
inline constexpr std::string_view weights_member = "model.weights.h5";

/// .keras: an archive of the architecture, the weights and the state of the optimizer.
inline void save_archive(const std::filesystem::path& path, const model_view& model, const layer_list& list) {
  const std::string name = path.string();
  json config = config_writer(name, model, list).model();
  if (json compiled = compile_config(model); !compiled.is_null()) config["compile_config"] = std::move(compiled);
  const std::string metadata = json{{"keras_version", keras_version}}.dump(), text = config.dump();
  const std::vector<std::byte> weights = weights_store_bytes(name, model, list);
  const std::vector<io::zip_member> members{{"metadata.json", {std::as_bytes(std::span(metadata))}, "metadata.json"},
                                            {"config.json", {std::as_bytes(std::span(text))}, "config.json"},
                                            {std::string(weights_member), {weights}, std::string(weights_member)}};
  io::write_zip_archive(path, members);
}

/// Writes the file in the format given by the ending of its name. It is complete, or an older one is unchanged. Throws
/// strata_error for a layer without a counterpart in Keras, and for a file that cannot be written.
inline void save(const std::filesystem::path& path, const model_view& model) {
  const layer_list list(model);
  const std::string name = path.string();
  if (name.ends_with(".keras")) return save_archive(path, model, list);
  const std::vector<std::byte> bytes =
      name.ends_with(".weights.h5") ? weights_store_bytes(name, model, list)
                                    : legacy_bytes(name, model, list, config_writer(name, model, list).model(), keras_version);
  io::atomic_file file(path);
  file.write(bytes);
  file.commit();
}

/// The class of the optimizer of a .keras file; empty if there is none.
inline std::string optimizer_class_in(const json& architecture) {
  const json* at = &architecture;
  for (const char* step : {"compile_config", "optimizer", "class_name"}) {
    if (!at->is_object() || !at->contains(step)) return {};
    at = &(*at)[step];
  }
  return at->is_string() ? at->get<std::string>() : std::string();
}

/// Throws if options of layers differ.
inline void require_options(const std::filesystem::path& path, const json& architecture, const model_view& model,
                            const layer_list& list) {
  detail::misfits differences;
  compare_options(architecture, model, list, differences);
  differences.report(path);
}

/// Counts the layers in a file that are of a class that may be implied. A legacy file without an architecture has only names,
/// which users may have chosen, so all of its layers are counted.
inline layers_in_file count_layers(const hdf5_file& file, const json* architecture) {
  const char* const legacy = legacy_root(file);
  if (!legacy)
    return {std::ranges::count_if(file.names_in(root_of_layers(file)), [](std::string_view name) {
      return name == "reshape" || name == "up_sampling2d" || name.starts_with("reshape_") || name.starts_with("up_sampling2d_");
    })};
  if (!architecture) return {std::ssize(*file.texts(legacy, "layer_names")), true};
  const json config = architecture->value("config", json());
  const json layers = config.is_object() ? config.value("layers", json()) : config;
  return {std::ranges::count_if(layers, [](const json& l) {
    const auto name = l.is_object() ? l.find("class_name") : l.end();
    return name != l.end() && name->is_string() && may_be_implied(name->get_ref<const std::string&>());
  })};
}

/// Reads such a file. The weights of a .keras file may be compressed. Throws strata_error; then the model has not
/// changed.
inline void load(const std::filesystem::path& path, model_view& model, convert_precision convert) {
  const std::string name = path.string();
  const io::file_kind kind = io::kind_of_file(path);  // up to Keras 2.11 .keras was HDF5, too
  if (kind == io::file_kind::zip || (kind == io::file_kind::other && name.ends_with(".keras"))) {
    const io::zip_archive archive(path, "a .keras archive");
    if (std::ranges::any_of(archive.names(), [](std::string_view member) { return member.ends_with("data.pkl"); }))
      throw_error({name, ": a file of PyTorch: write its tensors with safetensors.torch.save_file"});
    const io::zip_bytes weights = archive.read(weights_member);
    const hdf5_file file(name, {weights.bytes.begin(), weights.bytes.end()});
    const layer_list list(model, count_layers(file, nullptr), name);
    loaded_state state = read_weights_store(file, model, list, convert);
    const json architecture = architecture_of(archive);
    require_options(path, architecture, model, list);
    if (state.has_optimizer && is_another_optimizer(optimizer_class_in(architecture), model.optimizer->name))
      state.has_optimizer = false;
    store(state, model, list);
    return;
  }
  const hdf5_file file(path);
  std::optional<json> architecture;
  if (const auto text = file.texts("", "model_config"); text && text->size() == 1)
    architecture = parse_architecture(name, text->front());
  const layer_list list(model, count_layers(file, architecture ? &*architecture : nullptr), name);
  if (is_legacy(file)) {  // Keras 2 writes weights to files of any name
    const loaded_state state = read_legacy(file, model, list, convert);
    if (architecture) require_options(path, *architecture, model, list);
    store(state, model, list);
  } else {
    store(read_weights_store(file, model, list, convert), model, list);
  }
}

/// Registers the formats for all files of the program.
inline const bool files_are_known = (detail::keras_files = {save, load}, true);

}  // namespace strata::keras
