// Copies between the host and emulated devices, and between devices.
#pragma once
#include <cstddef>
#include <cstring>
#include <strata/cuda/machine/emulated/machine_state.hpp>
#include <strata/cuda/machine/emulated/queue.hpp>
#include <strata/cuda/machine/emulated/work_counts.hpp>
#include <vector>

namespace strata::machine {

/// The values are read when the copy is done: until then they stay as they are.
inline void copy_pinned_to_device(const queue& q, void* to, const std::byte* from, std::size_t bytes) {
  detail::count(q, &work_counts::copies_to_device, "a copy to the device");
  detail::count(q, &work_counts::bytes_to_device, "a copy to the device", long(bytes));
  detail::enqueue(q, [=] { std::memcpy(to, from, bytes); });
}
/// The values are read now.
inline void copy_to_device(const queue& q, void* to, const void* from, std::size_t bytes) {
  detail::machine_state::refuse_in_graph(q.state(), "a copy of memory that is not pinned");
  detail::count(q, &work_counts::copies_to_device, "a copy to the device");
  detail::count(q, &work_counts::bytes_to_device, "a copy to the device", long(bytes));
  const auto* const first = static_cast<const std::byte*>(from);
  detail::enqueue(q,
                  [to, values = std::vector<std::byte>(first, first + bytes)] { std::memcpy(to, values.data(), values.size()); });
}
inline void copy_to_host(const queue& q, void* to, const void* from, std::size_t bytes) {
  detail::machine_state::refuse_in_graph(q.state(), "a copy to memory that is not pinned");
  detail::count(q, &work_counts::copies_to_host, "a copy to the host");
  detail::enqueue(q, [=] { std::memcpy(to, from, bytes); });
}
/// Copies between the memory of two devices need not go through that of the host, where the hardware can do so.
inline void enable_peer_access(int, int) {}
/// Between addresses of any devices.
inline void copy_between(const queue& q, void* to, const void* from, std::size_t bytes) {
  detail::count(q, &work_counts::copies_between, "a copy between devices");
  detail::enqueue(q, [=] { std::memcpy(to, from, bytes); });
}

}  // namespace strata::machine
