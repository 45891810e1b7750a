// Weights as a file. The ending of the name gives the format: safetensors, one tensor per parameter, named layer/parameter, in
// Keras' layouts; or one of Keras' own, for which strata/interop/keras/keras_files.hpp is included once in the program.
#pragma once
#include <algorithm>
#include <cstring>
#include <strata/base/text.hpp>
#include <strata/io/file_kind.hpp>
#include <strata/io/open_file.hpp>
#include <strata/io/safetensors.hpp>
#include <strata/network/layer_names.hpp>
#include <strata/train/fitted_model.hpp>
#include <strata/train/model_view.hpp>
#include <strata/train/snapshot_file.hpp>

namespace strata {

/// Whether load_weights converts values of another precision than the network's. By default it refuses them.
enum class convert_precision : bool { no, yes };

namespace detail {

/// Endings of the names of Keras' files.
inline constexpr std::string_view keras_endings[] = {".weights.h5", ".h5", ".hdf5", ".keras"};

/// Writes and reads Keras' files. Null in a program that does not include strata/interop/keras/keras_files.hpp.
struct keras_file_functions {
  void (*save)(const std::filesystem::path&, const model_view&) = nullptr;
  void (*load)(const std::filesystem::path&, model_view&, convert_precision) = nullptr;
};
inline keras_file_functions keras_files;

inline bool is_keras_file(std::string_view name) {
  return std::ranges::any_of(keras_endings, [&](std::string_view ending) { return name.ends_with(ending); });
}
/// Throws if the program lacks what files of Keras need. `is` describes such a file in the message.
inline void require_keras_files(std::string_view name, std::string_view is = "") {
  if (keras_files.save == nullptr)
    throw_error({name, is,
                 ": files of Keras need #include <strata/interop/keras/keras_files.hpp> in one file of the program, "
                 "which then links libhdf5 and libzip"});
}
/// Throws if the program lacks what a file of that name needs.
inline void require_format_of(std::string_view name) {
  if (name.empty()) throw_error("weights: the name of the file is empty");
  if (is_keras_file(name)) require_keras_files(name);
}

inline constexpr const char* weights_version_key = "strata_weights_version";
inline constexpr int weights_version = 1;

inline tensor_extents extents_of(const parameter& p) {
  tensor_extents out;
  for (int i = 0; i < p.extents.rank(); ++i) out.push_back(std::uint64_t(p.extents[i]));
  return out;
}
inline dtype type_of(const model_view& model) { return model.element_size == sizeof(double) ? dtype::F64 : dtype::F32; }

inline void save_safetensors(const std::filesystem::path& path, const model_view& model) {
  const std::vector<std::string> names = parameter_names(model.nodes, model.slots);
  std::vector<safetensor> tensors;
  for (std::size_t i = 0; i < names.size(); ++i)
    tensors.push_back({names[i], type_of(model), extents_of(model.slots[i].what), model.bytes_of(model.slots[i])});
  write_safetensors(path, tensors, {{weights_version_key, std::to_string(weights_version)}});
}

/// Collects errors about the parameters of a file, one a line, of which the first are shown.
class misfits {
  static constexpr int listed = 8;
  std::string lines_;
  int count_ = 0;

 public:
  void add(std::string_view name, const std::string& why) {
    if (!why.empty() && ++count_ <= listed) lines_ += text_of({"\n  ", visible(name), ": ", why});
  }
  int count() const { return count_; }
  /// Throws if there are any errors.
  void report(const std::filesystem::path& path) const {
    if (count_ > 0)
      throw_error({path.string(), " does not fit the network", lines_,
                   count_ > listed ? text_of({"\n  and ", count_ - listed, " more"}) : ""});
  }
};

/// Describes how an array of the file differs from the parameter; empty if it does not.
inline std::string misfit(const tensor_extents& have, dtype type_in_file, const parameter& want, dtype type,
                          convert_precision convert) {
  if (have != extents_of(want))
    return text_of({"the file has ", shape_text(have), ", the network ", shape_text(extents_of(want))});
  const bool is_real = type_in_file == dtype::F32 || type_in_file == dtype::F64;
  if (type_in_file == type || (is_real && convert == convert_precision::yes)) return {};
  return text_of({"the file has ", name_of(type_in_file), ", the network ", name_of(type),
                  is_real ? " (convert_precision::yes would convert)" : ""});
}

/// Converts the elements of `from` to the type of `to`, which has as many.
template <class From>
void store_numbers(std::span<const From> from, std::span<std::byte> to, std::size_t element_size) {
  const auto store = [&]<class To>(To) {
    for (std::size_t i = 0; i < from.size(); ++i) {
      const To value = static_cast<To>(from[i]);
      std::memcpy(to.data() + i * sizeof value, &value, sizeof value);
    }
  };
  element_size == sizeof(double) ? store(double{}) : store(float{});
}

inline void load_safetensors(const std::filesystem::path& path, model_view& model, convert_precision convert) {
  const safetensors_file file(path);
  if (const auto at = file.metadata().find(weights_version_key);
      at != file.metadata().end() && at->second != std::to_string(weights_version))
    throw_error({path.string(), ": weights of version ", detail::quoted(at->second), ", but this program reads version ",
                 weights_version});

  const bool is_snapshot = file.metadata().contains(snapshot_version_key);
  if (is_snapshot)
    if (const std::string damage = damage_of_snapshot(path); !damage.empty())
      throw_error({path.string(), " is damaged: ", damage});
  const auto is_not_a_weight = [&](const std::string& name) {
    return is_snapshot && (name.starts_with(slot_prefix) || name.starts_with(callback_prefix) || name == checksum_tensor);
  };

  const std::vector<std::string> names = parameter_names(model.nodes, model.slots);
  misfits differences;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const safetensors_file::entry* e = file.find(names[i]);
    differences.add(names[i],
                    e ? misfit(e->extents, e->type, model.slots[i].what, type_of(model), convert) : "missing in the file");
  }
  for (const safetensors_file::entry& e : file.entries())
    if (std::ranges::find(names, e.name) == names.end() && !is_not_a_weight(e.name))
      differences.add(e.name, text_of({"not in the network; the file has ", shape_text(e.extents)}));
  differences.report(path);

  // Everything is read before the arena changes, because reading may fail.
  std::vector<std::vector<std::byte>> loaded;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const safetensors_file::entry& e = file[names[i]];
    if (e.type == type_of(model)) {
      loaded.push_back(file.bytes(e.name));
      continue;
    }
    std::vector<std::byte>& to = loaded.emplace_back(std::size_t(e.count()) * model.element_size);
    if (e.type == dtype::F64)
      store_numbers<double>(file.read<double>(e.name), to, model.element_size);
    else
      store_numbers<float>(file.read<float>(e.name), to, model.element_size);
  }
  for (std::size_t i = 0; i < names.size(); ++i) std::ranges::copy(loaded[i], model.bytes_of(model.slots[i]).begin());
}

/// Saves in the format given by the ending of the name.
inline void save_view(const std::filesystem::path& path, const model_view& model) {
  require_format_of(path.string());
  (is_keras_file(path.string()) ? keras_files.save : save_safetensors)(path, model);
}
/// Loads in the format given by the first bytes of the file or, if they belong to no known format, by the ending of the name.
inline void load_view(const std::filesystem::path& path, model_view& model, convert_precision convert) {
  const std::string name = path.string();
  switch (io::kind_of_file(path)) {
    case io::file_kind::gzip:
      throw_error({name, ": compressed by gzip: decompress it first"});
    case io::file_kind::hdf5:
      require_keras_files(name, " is an HDF5 file");
      return keras_files.load(path, model, convert);
    case io::file_kind::zip:
      require_keras_files(name, " is a zip archive, as .keras files and those of PyTorch are");
      return keras_files.load(path, model, convert);
    case io::file_kind::safetensors:
      return load_safetensors(path, model, convert);
    case io::file_kind::json:
      throw_error({name, ": a JSON text, such as an architecture of Keras, which has no weights"});
    case io::file_kind::other:
      if (keras_files.load == nullptr && is_keras_file(name)) (void)io::open_to_read(path);  // no header helps if this throws
      require_format_of(name);
      (is_keras_file(name) ? keras_files.load : load_safetensors)(path, model, convert);
  }
}

template <class Network>
void check_arena(std::size_t size) {
  constexpr long expected = layout_of<typename Network::items>.size;
  if (size != std::size_t(expected)) throw_error({"weights: ", size, " values, but the network's arena has ", expected});
}

}  // namespace detail

/// Writes all weights and state of an arena that layout_of describes. Either the file is complete, or an older one is unchanged.
/// The kernel of dense is (in, out), that of conv2d (height, width, in / groups, out).  Throws strata_error.
template <core::network Network, std::floating_point T>
void save_weights(const std::filesystem::path& path, std::type_identity_t<std::span<const T>> arena) {
  detail::check_arena<Network>(arena.size());
  const std::span<T> only_read(const_cast<T*>(arena.data()), arena.size());
  detail::save_view(path, detail::view_of_weights<Network>(only_read));
}

/// The overload for a running fit; it writes to a file of Keras also the state of the optimizer.
inline void save_weights(const std::filesystem::path& path, fitted_model& model) { detail::save_view(path, model.view()); }

/// Reads such a file, or a snapshot. Throws strata_error that lists the parameters that differ, or reports a damaged
/// snapshot; then nothing in the arena has changed.
template <core::network Network, std::floating_point T>
void load_weights(const std::filesystem::path& path, std::type_identity_t<std::span<T>> arena,
                  convert_precision convert = convert_precision::no) {
  detail::check_arena<Network>(arena.size());
  model_view view = detail::view_of_weights<Network>(arena);
  detail::load_view(path, view, convert);
}

namespace core {
/// The functions that save_weights and load_weights of a trainer and the constructor of a predictor call.
template <class Network, class T>
struct please_include_strata_train_weights_file {
  static void load(const std::filesystem::path& path, std::span<T> arena) { load_weights<Network, T>(path, arena); }

  template <class Program, class Executor>
  static void save(const std::filesystem::path& path, const Executor& executor) {
    detail::save_view(path, detail::view_of_training<Program>(const_cast<Executor&>(executor)));  // only reads
  }
  template <class Program, class Executor>
  static void load(const std::filesystem::path& path, Executor& executor) {
    model_view view = detail::view_of_training<Program>(executor);
    const double rate = executor.learning_rate();
    detail::load_view(path, view, convert_precision::no);
    detail::apply_loaded(executor, view, rate);
  }
};
}  // namespace core

}  // namespace strata
