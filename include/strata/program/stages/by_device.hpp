// Which stage computes which layer, by the devices in the network's type.
#pragma once
#include <array>
#include <cstddef>
#include <strata/program/stages/split_backend.hpp>
#include <strata/program/stages/timetable.hpp>

namespace strata::core {

/// Each device of `on_device` is a stage; micro-batches come one at a time.
template <int Devices>
struct by_device {
  static constexpr const auto& table = one_at_a_time<Devices>;
  static constexpr auto place = "device";
  static constexpr int device_count = Devices;
  template <class Program>
  using verdict = detail::split_verdict<Program>;

  template <class Items>
  static constexpr auto stage_of_node = [] {
    constexpr const auto& t = tape_of<Items>;
    std::array<int, std::size_t(t.size)> stage_of{};
    for (int i = 0; i < t.size; ++i) stage_of[std::size_t(i)] = t.nodes[i].device > 0 ? t.nodes[i].device : 0;
    detail::keep_together(t, stage_of);
    return stage_of;
  }();
};

}  // namespace strata::core
