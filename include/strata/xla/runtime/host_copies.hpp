// The host's copies of parameters and optimizer slots, whose originals are on the devices.
#pragma once
#include <cstddef>
#include <span>
#include <strata/base/arena.hpp>
#include <strata/base/error.hpp>
#include <strata/program/program.hpp>
#include <strata/xla/module.hpp>
#include <strata/xla/pjrt/client.hpp>
#include <strata/xla/pjrt/copies_to_host.hpp>
#include <strata/xla/runtime/calls_in_flight.hpp>
#include <strata/xla/runtime/running_module.hpp>
#include <strata/xla/runtime/state_places.hpp>
#include <vector>

namespace strata::detail {

/// A copy is read from the devices when it is needed after they have changed the original, and sent to them before the next call
/// after the caller has written to it. slot_types: those of compiled_modules. Functions that read or send wait for training calls
/// first, and throw strata_error if the state is lost.
template <class Program, class Connections>
class host_copies {
  using T = typename Program::value_type;
  using places = state_places<Program>;
  static constexpr const auto& layout = layout_of_program<Program>;
  struct copy {
    arena<T> values;
    bool is_valid = true;    // equal to what the devices have
    bool is_written = true;  // the devices do not have it yet
  };

  const pjrt::client& client_;
  device_state& state_;
  calls_in_flight<Connections>& calls_;
  copy parameters_, slots_;
  std::vector<pjrt::event> reading_;

 public:
  /// All copies begin as zeros that are still to be sent. The arguments must outlive this object.
  host_copies(const pjrt::client& client, device_state& state, calls_in_flight<Connections>& calls, int arenas_of_optimizer)
      : client_(client),
        state_(state),
        calls_(calls),
        parameters_{arena<T>(std::size_t(layout.size))},
        slots_{arena<T>(std::size_t(layout.trainable) * std::size_t(arenas_of_optimizer))} {}

  std::span<T> parameters() {
    return read(parameters_, [this](const auto& f) { this->each_parameter(f); });
  }
  /// One array of the layout's trainable size after the other.
  std::span<T> slots(std::span<const stablehlo::tensor_type> slot_types) {
    return read(slots_, [&](const auto& f) { this->each_slot(slot_types, f); });
  }

  /// Marks the copies that were read as changed by the caller.
  void were_written() {
    parameters_.is_written = parameters_.is_valid;
    slots_.is_written = slots_.is_valid;
  }
  /// A call that changes the state on the devices has begun.
  void are_outdated() { parameters_.is_valid = slots_.is_valid = false; }

  /// Sends the changed copies to all devices. Slots are sent once their types are known; no module uses them before.
  void send(std::span<const stablehlo::tensor_type> slot_types) {
    refuse_lost_state();
    send(parameters_, [this](const auto& f) { this->each_parameter(f); });
    if (!slot_types.empty()) send(slots_, [&](const auto& f) { this->each_slot(slot_types, f); });
  }

 private:
  /// Calls f(index in the state, type, elements of the copy) for each parameter.
  void each_parameter(const auto& f) {
    for (std::size_t i = 0; i < places::of_arena; ++i) {
      const parameter_slot& p = layout.slots[i];
      stablehlo::tensor_type type{stablehlo::element_of<T>, {}};
      for (int d = 0; d < p.what.extents.rank(); ++d) type.extents.push_back(p.what.extents[d]);
      f(i, type, parameters_.values.data() + p.offset);
    }
  }
  void each_slot(std::span<const stablehlo::tensor_type> types, const auto& f) {
    for (std::size_t i = 0; i < types.size(); ++i)
      if (const parameter_slot& p = layout.slots[i % places::of_arena]; p.what.trainable)
        f(places::of_arena + i, types[i], slots_.values.data() + long(i / places::of_arena) * layout.trainable + p.offset);
  }

  std::span<T> read(copy& to, const auto& each) {
    if (!to.is_valid) {
      calls_.await();
      refuse_lost_state();
      pjrt::copies_to_host copies(reading_);
      each([&](std::size_t place, const stablehlo::tensor_type& type, T* values) {
        copies.begin(state_.at(place, 0), type, {reinterpret_cast<std::byte*>(values), type.bytes()});
      });
      copies.wait("read the weights");
      to.is_valid = true;
    }
    return to.values.span();
  }
  void send(copy& from, const auto& each) {
    if (!from.is_written) return;
    calls_.await();
    each([&](std::size_t place, const stablehlo::tensor_type& type, const T* values) {
      for (int r = 0; r < state_.replicas(); ++r)
        state_.at(place, std::size_t(r)) = client_.upload({reinterpret_cast<const std::byte*>(values), type.bytes()}, type, r);
    });
    from.is_written = false;  // after an error the next call sends all of them again
  }
  void refuse_lost_state() const {
    if (state_.is_lost)
      throw_error(
          "the weights are lost: the last training step failed on the device while it changed them. Create a new trainer, and "
          "load saved weights");
  }
};

}  // namespace strata::detail
