// The layers that a program freezes at run time, by their names in the summary.
#pragma once
#include <cstddef>
#include <span>
#include <strata/base/error.hpp>
#include <strata/base/linkage.hpp>
#include <strata/base/text.hpp>
#include <strata/network/layer_names.hpp>
#include <string>
#include <vector>

namespace strata::detail {

/// frozen: a flag for each slot, as in trainable_layers. Throws strata_error if the layer does not exist, if it is to
/// train but its type is frozen, and if freezing it would change what it computes.
[[gnu::cold]] void set_trainable(std::span<const tape_node> nodes, std::span<const parameter_slot> slots, std::span<bool> frozen,
                                 const std::string& layer, bool trains);
/// Whether any weight of the layer is trained. Throws strata_error if the layer does not exist.
[[gnu::cold]] bool is_trainable(std::span<const tape_node> nodes, std::span<const parameter_slot> slots,
                                std::span<const bool> frozen, const std::string& layer);
/// ", frozen {conv2d, dense}"; empty if no layer is. Processes that train together compare it.
[[gnu::cold]] std::string frozen_layers(std::span<const tape_node> nodes, std::span<const parameter_slot> slots,
                                        std::span<const bool> frozen);

/// A flag for each slot of the layout: true if the program has frozen it.
template <class Network>
class trainable_layers {
  static constexpr int count = layout_of<typename Network::items>.count;
  bool frozen_[count + 1] = {};

 public:
  std::span<const bool> frozen() const { return {frozen_, std::size_t(count)}; }
  bool is_trainable(const std::string& layer) const {
    return detail::is_trainable(nodes_of<Network>(), slots_of<Network>(), frozen(), layer);
  }
  void set_trainable(const std::string& layer, bool trains) {
    detail::set_trainable(nodes_of<Network>(), slots_of<Network>(), {frozen_, std::size_t(count)}, layer, trains);
  }
  std::string text() const { return frozen_layers(nodes_of<Network>(), slots_of<Network>(), frozen()); }
  /// Elements of the slots that are frozen.
  long elements() const {
    long sum = 0;
    for (int s = 0; s < count; ++s)
      if (frozen_[s]) sum += slots_of<Network>()[std::size_t(s)].what.extents.size();
    return sum;
  }
};

}  // namespace strata::detail

#if STRATA_DEFINES
#include <strata/train/trainable_layers.ipp>
#endif
