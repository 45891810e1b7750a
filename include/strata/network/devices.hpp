// The number of devices that a network names.
#pragma once
#include <strata/network/sequential.hpp>

namespace strata {

// The words of the diagnostic. Neither is ever defined.
template <class Device, class Why>
struct missing_device;

namespace reasons {
inline constexpr reason the_strategy_has_no_such_device_give_placed_more_thread_groups_or_gpus{
    "the network places layers on a device that the strategy does not have: give the trainer placed{thread_groups<N>{}}, or "
    "placed{gpu(0), gpu(1)} with as many GPUs"};
inline constexpr reason the_strategy_has_one_device_use_placed_or_leave_out_on_device{
    "the network places layers on several devices, and the strategy has one: use placed{thread_groups<N>{}}, or leave out "
    "`on_device`"};
}  // namespace reasons

namespace detail {
template <int N>
constexpr int count_devices(const tape<N>& t) {
  int last = 0;
  if (t.well_shaped())
    for (const tape_node& n : t.nodes) last = n.device > last ? n.device : last;
  return last + 1;
}
}  // namespace detail

namespace core {
/// The largest device index of any `on_device` in the network, plus 1.
template <class Network>
inline constexpr int devices_of = detail::count_devices(tape_of<typename Network::items>);
}  // namespace core

namespace detail {
/// Whether a network may place layers on devices of the strategy, as with `placed`.
template <class Strategy>
concept names_devices = requires { Strategy::division::split::device_count; };
/// The number of devices that a network may name.
template <class Strategy>
inline constexpr int devices_of_strategy = 1;
template <names_devices Strategy>
inline constexpr int devices_of_strategy<Strategy> = Strategy::division::split::device_count;
}  // namespace detail

}  // namespace strata
