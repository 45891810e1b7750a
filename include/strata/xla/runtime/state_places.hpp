// The order of parameters and optimizer slots in the state on the devices.
#pragma once
#include <cstddef>
#include <strata/program/program.hpp>
#include <strata/xla/module.hpp>
#include <strata/xla/runtime/running_module.hpp>

namespace strata::detail {

/// The parameters, in the order of the layout's slots; then the same order again for each arena of the optimizer.
template <class Program>
struct state_places {
  static constexpr std::size_t of_arena = std::size_t(layout_of_program<Program>.count);

  static constexpr std::size_t count(int arenas_of_optimizer) { return of_arena * std::size_t(1 + arenas_of_optimizer); }
  /// The index in the state of an argument or result that stays on the devices; running_module::no_state for any other one.
  static std::size_t of(const stablehlo::argument& a) {
    if (a.what == stablehlo::role::parameter) return std::size_t(a.index);
    if (a.what == stablehlo::role::slot) return std::size_t(1 + a.arena) * of_arena + std::size_t(a.index);
    return running_module::no_state;
  }
};

}  // namespace strata::detail
