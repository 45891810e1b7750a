// Weights as a safetensors file: one tensor per parameter, named layer/parameter, in the layouts of Keras.
#pragma once
#include <strata/base/text.hpp>
#include <strata/interop/safetensors.hpp>
#include <strata/network/summary.hpp>
#include <strata/train/fitted_model.hpp>
#include <strata/train/snapshot_file.hpp>

namespace strata {

/// Whether load_weights converts values of another precision than the network's. By default it refuses them.
enum class convert_precision : bool { no, yes };

namespace detail {

inline constexpr const char* weights_version_key = "strata_weights_version";
inline constexpr int weights_version = 1;

inline tensor_extents extents_of(const parameter& p) {
  tensor_extents out;
  for (int i = 0; i < p.extents.rank(); ++i) out.push_back(std::uint64_t(p.extents[i]));
  return out;
}

template <class T>
void save_parameters(const std::filesystem::path& path, std::span<const parameter_slot> slots, std::span<const std::string> names,
                     std::span<const T> arena) {
  std::vector<safetensor> tensors;
  for (std::size_t i = 0; i < slots.size(); ++i)
    tensors.push_back(safetensor::of(names[i], extents_of(slots[i].what),
                                     arena.subspan(std::size_t(slots[i].offset), std::size_t(slots[i].what.extents.size()))));
  write_safetensors(path, tensors, {{weights_version_key, std::to_string(weights_version)}});
}

/// Describes what is wrong with one tensor of the file; empty if nothing is.
inline std::string misfit(const safetensors_file::entry* have, const parameter& want, dtype type, convert_precision convert) {
  if (!have) return "missing in the file";
  if (have->extents != extents_of(want))
    return detail::text_of({"the file has ", shape_text(have->extents), ", the network ", shape_text(extents_of(want))});
  const bool convertible = convert == convert_precision::yes && (have->type == dtype::F32 || have->type == dtype::F64);
  if (have->type != type && !convertible)
    return detail::text_of(
        {"the file has ", name_of(have->type), ", the network ", name_of(type),
         have->type == dtype::F32 || have->type == dtype::F64 ? " (convert_precision::yes would convert)" : ""});
  return {};
}

template <class T>
void load_parameters(const std::filesystem::path& path, std::span<const parameter_slot> slots, std::span<const std::string> names,
                     std::span<T> arena, convert_precision convert) {
  const safetensors_file file(path);
  if (const auto at = file.metadata().find(weights_version_key);
      at != file.metadata().end() && at->second != std::to_string(weights_version))
    throw_error({path.string(), ": weights of version '", at->second, "', but this program reads version ", weights_version});

  const bool is_snapshot = file.metadata().contains(snapshot_version_key);
  if (is_snapshot)
    if (const std::string damage = damage_of_snapshot(path); !damage.empty())
      throw_error({path.string(), " is damaged: ", damage});
  const auto is_not_a_weight = [&](const std::string& name) {
    return is_snapshot && (name.starts_with(slot_prefix) || name.starts_with(callback_prefix) || name == checksum_tensor);
  };

  constexpr int listed = 8;
  std::string differences;
  int count = 0;
  const auto report = [&](const std::string& name, const std::string& why) {
    if (!why.empty() && ++count <= listed) differences += detail::text_of({"\n  ", name, ": ", why});
  };
  for (std::size_t i = 0; i < slots.size(); ++i)
    report(names[i], misfit(file.find(names[i]), slots[i].what, dtype_of<T>(), convert));
  for (const safetensors_file::entry& e : file.entries())
    if (std::ranges::find(names, e.name) == names.end() && !is_not_a_weight(e.name))
      report(e.name, detail::text_of({"not in the network; the file has ", shape_text(e.extents)}));
  if (count > 0)
    throw_error({path.string(), " does not fit the network", differences,
                 count > listed ? detail::text_of({"\n  and ", count - listed, " more"}) : ""});

  // Everything is read before the arena changes, because reading may fail.
  std::vector<T> loaded(arena.begin(), arena.end());
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const safetensors_file::entry& e = file[names[i]];
    const std::span<T> to = std::span(loaded).subspan(std::size_t(slots[i].offset), std::size_t(e.count()));
    using other = std::conditional_t<std::is_same_v<T, float>, double, float>;
    if (e.type == dtype_of<T>())
      file.read(e, to);
    else
      std::ranges::transform(file.read<other>(e.name), to.begin(), [](other v) { return static_cast<T>(v); });
  }
  std::ranges::copy(loaded, arena.begin());
}

template <class Network>
void check_arena(std::size_t size) {
  constexpr long expected = layout_of<typename Network::items>.size;
  if (size != std::size_t(expected)) throw_error({"weights: ", size, " values, but the network's arena has ", expected});
}

}  // namespace detail

/// Writes all weights and state of an arena that layout_of describes. Either the file is complete, or an older one is unchanged.
/// The kernel of dense is (in, out), that of conv2d (height, width, in / groups, out).  Throws strata::error.
template <network Network, std::floating_point T>
void save_weights(const std::filesystem::path& path, std::type_identity_t<std::span<const T>> arena) {
  detail::check_arena<Network>(arena.size());
  detail::save_parameters<T>(path, detail::slots_of<Network>(), parameter_names_of<Network>(), arena);
}

/// The same for the weights of a running fit.
inline void save_weights(const std::filesystem::path& path, fitted_model& model) {
  const dtype type = model.element_size() == sizeof(double) ? dtype::F64 : dtype::F32;
  std::vector<safetensor> tensors;
  for (const named_array& a : model.weights()) tensors.push_back({a.name, type, a.extents, a.bytes});
  write_safetensors(path, tensors, {{detail::weights_version_key, std::to_string(detail::weights_version)}});
}

/// Reads such a file, or a snapshot. Throws strata::error that lists the parameters that differ, or says that the snapshot is
/// damaged; then nothing in the arena has changed.
template <network Network, std::floating_point T>
void load_weights(const std::filesystem::path& path, std::type_identity_t<std::span<T>> arena,
                  convert_precision convert = convert_precision::no) {
  detail::check_arena<Network>(arena.size());
  detail::load_parameters<T>(path, detail::slots_of<Network>(), parameter_names_of<Network>(), arena, convert);
}

/// What save_weights and load_weights of a trainer call.
template <class Network, class T>
struct please_include_strata_train_weights_file {
  static void save(const std::filesystem::path& path, std::span<const T> arena) { save_weights<Network, T>(path, arena); }
  static void load(const std::filesystem::path& path, std::span<T> arena) { load_weights<Network, T>(path, arena); }
};

}  // namespace strata
