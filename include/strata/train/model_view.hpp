// model_view: what the formats of files see of a model, namely names, shapes and bytes, without its type.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <strata/base/error.hpp>
#include <strata/base/numbers_of.hpp>
#include <strata/network/layer_names.hpp>
#include <strata/network/summary.hpp>
#include <strata/optimizers/setting.hpp>
#include <strata/program/executor.hpp>
#include <strata/program/program.hpp>
#include <string>
#include <vector>

namespace strata {

namespace core {
/// A loss, a metric or an operation: its name and its settings as doubles (detail::numbers_of).
struct named_numbers {
  const char* name = "";
  std::span<const double> settings{};
};
}  // namespace core

/// An optimizer whose state is in this process.
struct optimizer_view {
  const char* name = "";
  std::vector<core::optimizer_setting> settings;  // under Keras' names, without the learning rate
  bool has_schedule = false;                      // the learning rate is a schedule rather than a constant
  double learning_rate = 0;                       // of the next update
  long step = 0;                                  // updates so far
  int slots = 0;
  std::span<std::byte> values;  // one array of the layout's trainable size for each slot
};

/// A model: its parameters by their place in the arena. Loading writes the bytes, step and learning rate; saving only reads.
struct model_view {
  std::span<const core::tape_node> nodes;               // of the network, without the loss
  std::span<const std::span<const double>> operations;  // the settings of each node's operation, as numbers
  std::span<const core::parameter_slot> slots;
  std::span<const int> outputs{};                     // nodes in the order of the predictions; another node may read one of them
  std::span<const detail::named_node> named_nodes{};  // of a graph
  long trainable = 0;                                 // elements of the trained part of the arena
  std::size_t element_size = 4;                       // 4: float, 8: double
  std::span<std::byte> parameters;
  std::optional<optimizer_view> optimizer{};
  std::optional<core::named_numbers> loss{};
  std::vector<core::named_numbers> metrics{};

  /// The bytes of one parameter, or of one slot that the optimizer keeps for it.
  std::span<std::byte> bytes_of(const core::parameter_slot& slot) const { return part(parameters, 0, slot); }
  std::span<std::byte> bytes_of(const core::parameter_slot& slot, int optimizer_slot) const {
    return part(optimizer->values, long(optimizer_slot) * trainable, slot);
  }

 private:
  std::span<std::byte> part(std::span<std::byte> of, long begin, const core::parameter_slot& slot) const {
    return of.subspan(std::size_t(begin + slot.offset) * element_size, std::size_t(slot.what.extents.size()) * element_size);
  }
};

namespace detail {

template <class Types>
inline constexpr std::span<const double> numbers_of_nodes[1] = {};
template <class... Node>
inline constexpr std::span<const double> numbers_of_nodes<type_list<Node...>>[sizeof...(Node)] = {
    numbers_of<typename Node::operation>...};

/// The node at which each output of a network ends.
template <class Network>
inline constexpr auto ends_of_outputs = [] {
  if constexpr (requires { Network::ends_of_outputs(); })
    return Network::ends_of_outputs();
  else
    return std::array{tape_of<typename Network::items>.size - 1};
}();

template <class Network, class T>
model_view view_of_weights(std::span<T> arena) {
  constexpr const auto& layout = layout_of<typename Network::items>;
  return {.nodes = nodes_of<Network>(),
          .operations = numbers_of_nodes<node_types_of<typename Network::items>>,
          .slots = slots_of<Network>(),
          .outputs = ends_of_outputs<Network>,
          .named_nodes = named_nodes_of<Network>,
          .trainable = layout.trainable,
          .element_size = sizeof(T),
          .parameters = std::as_writable_bytes(arena)};
}

/// For formats of files whose layers are used once: throws strata_error for other networks.
[[gnu::cold]] inline void refuse_shared_layers(const model_view& model, const char* format) {
  for (const tape_node& n : model.nodes)
    if (n.owner >= 0)
      throw_error({format,
                   ": a graph with shared layers has no such file yet: save_weights with a name that ends in .safetensors "
                   "stores its weights"});
}
/// For formats of files that hold one input and one output, and layers that are used once.
[[gnu::cold]] inline void refuse_several_ends(const model_view& model, const char* format) {
  refuse_shared_layers(model, format);
  if (std::ranges::count_if(model.nodes, &tape_node::is_input) > 1 || model.outputs.size() > 1)
    throw_error({format,
                 ": a graph of several inputs or outputs has no such file yet: save_weights with a name that ends in "
                 ".safetensors or .keras stores its weights"});
}

/// A view that includes the state of the optimizer if this process has it. If slots are sharded, they are included only with
/// `collects`, which makes this a collective call.
template <class Program, class Executor>
[[gnu::cold]] model_view view_of_training(Executor& executor, [[maybe_unused]] bool collects = false) {
  model_view view = view_of_weights<typename Program::network>(executor.parameters());
  std::span<typename Program::value_type> slots;
  bool has_slots = false;
  if constexpr (Executor::traits.has_slots) {
    slots = executor.slots();
    has_slots = true;
  } else if constexpr (Executor::traits.collects_slots) {
    if (collects) {
      executor.collect_slots(true);
      slots = executor.whole_slots();
    }
    has_slots = collects;
  }
  if (has_slots) {
    const auto& optimizer = executor.optimizer();
    optimizer_view& to = view.optimizer.emplace();
    to.name = Program::optimizer::name;
    if constexpr (requires { std::begin(optimizer.settings()); })
      for (const optimizer_setting& s : optimizer.settings()) to.settings.push_back(s);
    to.settings.insert(to.settings.end(), {{"weight_decay", optimizer.weight_decay},
                                           {"clipnorm", optimizer.clipnorm},
                                           {"clipvalue", optimizer.clipvalue},
                                           {"global_clipnorm", optimizer.global_clipnorm}});
    to.has_schedule = !optimizer.learning_rate.is_number();
    to.learning_rate = executor.learning_rate();
    to.step = executor.step();
    to.slots = optimizer.slots();
    to.values = std::as_writable_bytes(slots);
  }
  if constexpr (length(typename Program::outputs{}) == 1) {
    using only = at_t<0, typename Program::outputs>;
    if constexpr (requires { std::string(only::loss::name); })
      view.loss = named_numbers{only::loss::name, numbers_of<typename only::loss>};
    [&]<class... Metric>(type_list<Metric...>) {
      (view.metrics.push_back({Metric::name, numbers_of<Metric>}), ...);
    }(typename only::metrics{});
  }
  return view;
}

/// Applies to the executor what has been loaded into its view.
template <class Executor>
void apply_loaded(Executor& executor, const model_view& loaded, double rate_before) {
  executor.parameters_changed();
  if constexpr (Executor::traits.has_slots)
    if (loaded.optimizer) {
      executor.set_step(loaded.optimizer->step);
      if (loaded.optimizer->learning_rate != rate_before) executor.set_learning_rate(loaded.optimizer->learning_rate);
    }
}

}  // namespace detail

}  // namespace strata
