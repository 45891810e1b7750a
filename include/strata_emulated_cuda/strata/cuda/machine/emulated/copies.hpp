// Copies between the host and emulated devices, and between devices. Each is work on a queue.
#pragma once
#include <cstddef>
#include <cstring>
#include <strata/cuda/machine/emulated/capture_rules.hpp>
#include <strata/cuda/machine/emulated/machine_state.hpp>
#include <strata/cuda/machine/emulated/queue.hpp>
#include <strata/cuda/machine/emulated/work_counts.hpp>
#include <vector>

namespace strata::machine {

/// Enqueues a copy of `bytes` bytes from pinned memory of the host to the device of the queue. The caller must not change them
/// until the copy is done. Throws device_lost if the device is lost.
inline void copy_pinned_to_device(const queue& q, void* to, const std::byte* from, std::size_t bytes) {
  detail::count(q, &work_counts::copies_to_device, "a copy to the device");
  detail::count(q, &work_counts::bytes_to_device, "a copy to the device", long(bytes));
  detail::enqueue(q, [=] { std::memcpy(to, from, bytes); });
}
/// Enqueues a copy of `bytes` bytes from the host to the device of the queue. The bytes are read before this function returns,
/// so the caller may change them at once. Throws device_lost if the device is lost, and strata_error if the queue is
/// captured.
inline void copy_to_device(const queue& q, void* to, const void* from, std::size_t bytes) {
  detail::refuse_in_graph(q.state(), "a copy of memory that is not pinned");
  detail::count(q, &work_counts::copies_to_device, "a copy to the device");
  detail::count(q, &work_counts::bytes_to_device, "a copy to the device", long(bytes));
  const auto* const first = static_cast<const std::byte*>(from);
  detail::enqueue(q,
                  [to, values = std::vector<std::byte>(first, first + bytes)] { std::memcpy(to, values.data(), values.size()); });
}
/// Enqueues a copy of `bytes` bytes from the device of the queue to the host. They are there when the host has waited for the
/// copy. Throws device_lost if the device is lost, and strata_error if the queue is captured.
inline void copy_to_host(const queue& q, void* to, const void* from, std::size_t bytes) {
  detail::refuse_in_graph(q.state(), "a copy to memory that is not pinned");
  detail::count(q, &work_counts::copies_to_host, "a copy to the host");
  detail::enqueue(q, [=] { std::memcpy(to, from, bytes); });
}
/// Does nothing. Where nvcc compiles, it lets a device copy to and from the memory of another one without the host, if both
/// can.
inline void enable_peer_access(int, int) {}
/// Enqueues a copy of `bytes` bytes between addresses of any two devices. Throws device_lost if the device of the queue is
/// lost.
inline void copy_between(const queue& q, void* to, const void* from, std::size_t bytes) {
  detail::count(q, &work_counts::copies_between, "a copy between devices");
  detail::enqueue(q, [=] { std::memcpy(to, from, bytes); });
}

}  // namespace strata::machine
