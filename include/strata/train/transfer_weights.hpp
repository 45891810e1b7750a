// transfer_weights: copies the weights of one network that fit into another one.
#pragma once
#include <algorithm>
#include <concepts>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <ostream>
#include <span>
#include <strata/base/error.hpp>
#include <strata/base/shape_text.hpp>
#include <strata/base/text.hpp>
#include <strata/io/safetensors.hpp>
#include <strata/train/model_view.hpp>
#include <strata/train/snapshot_file.hpp>
#include <strata/train/weights_file.hpp>
#include <string>
#include <utility>
#include <vector>

namespace strata {

/// The result of a transfer: names of parameters of the network that received weights.
struct transfer_report {
  std::vector<std::string> copied;
  std::vector<std::pair<std::string, std::string>> skipped;  // a name, and why

  /// 4 of 6 parameters copied
  ///   skipped dense_1/kernel: (32, 10) there, (32, 1) here
  friend std::ostream& operator<<(std::ostream& out, const transfer_report& r) {
    out << r.copied.size() << " of " << r.copied.size() + r.skipped.size() << " parameters copied\n";
    for (const auto& [name, why] : r.skipped) out << "  skipped " << name << ": " << why << '\n';
    return out;
  }
};

/// How parameters of two networks are matched.
enum class transfer_by {
  name,     // conv2d/kernel with conv2d/kernel, as summary and files name them
  position  // the k-th layer that has parameters with the k-th layer that has parameters
};

namespace detail {

/// A parameter that may be copied.
struct offered_weights {
  std::string name;
  tensor_extents extents;
  bool same_type = true;
  std::function<std::vector<std::byte>()> bytes;
};

inline std::vector<offered_weights> weights_of_model(const model_view& model, dtype type) {
  std::vector<offered_weights> out;
  const std::vector<std::string> names = parameter_names(model.nodes, model.slots);
  for (std::size_t i = 0; i < names.size(); ++i)
    out.push_back({names[i], extents_of(model.slots[i].what), type_of(model) == type, [&model, i] {
                     const auto bytes = model.bytes_of(model.slots[i]);
                     return std::vector(bytes.begin(), bytes.end());
                   }});
  return out;
}

inline std::vector<offered_weights> weights_of_file(const safetensors_file& file, dtype type) {
  std::vector<offered_weights> out;
  for (const safetensors_file::entry& e : file.entries())
    out.push_back({e.name, e.extents, e.type == type, [&file, name = e.name] { return file.bytes(name); }});
  return out;
}

/// Everything is read before the first weight changes, because reading may fail.
inline transfer_report transfer(const model_view& to,
                                const std::function<const offered_weights*(std::size_t slot, const std::string& name)>& match) {
  transfer_report report;
  const std::vector<std::string> names = parameter_names(to.nodes, to.slots);
  std::vector<std::vector<std::byte>> read(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    const offered_weights* one = match(i, names[i]);
    const tensor_extents wanted = extents_of(to.slots[i].what);
    if (!one)
      report.skipped.emplace_back(names[i], "not there");
    else if (one->extents != wanted)
      report.skipped.emplace_back(names[i], text_of({shape_text(one->extents), " there, ", shape_text(wanted), " here"}));
    else if (!one->same_type)
      report.skipped.emplace_back(names[i], "numbers of another precision");
    else
      report.copied.push_back(names[i]), read[i] = one->bytes();
  }
  for (std::size_t i = 0; i < names.size(); ++i) std::ranges::copy(read[i], to.bytes_of(to.slots[i]).begin());
  return report;
}

inline transfer_report transfer_by_name(std::span<const offered_weights> from, const model_view& to) {
  return transfer(to, [&](std::size_t, const std::string& name) {
    const auto at = std::ranges::find(from, name, &offered_weights::name);
    return at == from.end() ? nullptr : &*at;
  });
}

/// For each slot, the index of its layer among those with parameters, and its own index in the layer.
inline std::vector<std::pair<int, int>> places_of_slots(const model_view& model) {
  std::vector<int> layers;
  for (const parameter_slot& s : model.slots) layers.push_back(model.nodes[std::size_t(s.node)].layer_number);
  std::vector<int> sorted = layers;
  std::ranges::sort(sorted);
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());  // clang 14 cannot compile std::ranges::subrange
  std::vector<std::pair<int, int>> places;
  for (std::size_t i = 0; i < layers.size(); ++i)
    places.emplace_back(int(std::ranges::lower_bound(sorted, layers[i]) - sorted.begin()),
                        int(std::ranges::count(std::span(layers).first(i), layers[i])));
  return places;
}

inline transfer_report transfer_by_position(const model_view& from, std::span<const offered_weights> weights,
                                            const model_view& to) {
  const auto there = places_of_slots(from), here = places_of_slots(to);
  return transfer(to, [&](std::size_t slot, const std::string&) {
    const auto at = std::ranges::find(there, here[slot]);
    return at == there.end() ? nullptr : &weights[std::size_t(at - there.begin())];
  });
}

}  // namespace detail

/// Copies weights and state from one trainer to another one where names (or positions) and shapes are equal, and returns what it
/// left out: for a network with a new head, or with more layers than before. Optimizers are left as they are. A collective call
/// of all processes that train together. See copy_weights for layers that both networks share by their type.
template <class From, class To>
transfer_report transfer_weights(const From& from, To& to, transfer_by how = transfer_by::name)
  requires(!std::convertible_to<const From&, std::filesystem::path>)
{
  using T = typename From::value_type;
  const std::span<const T> arena = from.parameters();
  const model_view source =
      detail::view_of_weights<typename From::network>(std::span(const_cast<T*>(arena.data()), arena.size()));  // only read
  const model_view target = detail::view_of_weights<typename To::network>(to.executor().parameters());
  const std::vector<detail::offered_weights> weights = detail::weights_of_model(source, detail::type_of(target));
  const transfer_report report = how == transfer_by::name ? detail::transfer_by_name(weights, target)
                                                          : detail::transfer_by_position(source, weights, target);
  to.executor().parameters_changed();
  return report;
}

/// The same from a file of save_weights (.safetensors), or a snapshot, by name.
/// Throws strata_error for a file that is damaged; then no weight has changed.
template <class To>
transfer_report transfer_weights(const std::filesystem::path& path, To& to) {
  const core::safetensors_file file(path);
  if (file.metadata().contains(detail::snapshot_version_key))
    if (const std::string damage = core::damage_of_snapshot(path); !damage.empty())
      throw_error({path.string(), " is damaged: ", damage});
  const model_view target = detail::view_of_weights<typename To::network>(to.executor().parameters());
  const transfer_report report = detail::transfer_by_name(detail::weights_of_file(file, detail::type_of(target)), target);
  to.executor().parameters_changed();
  return report;
}

}  // namespace strata
