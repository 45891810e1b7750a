// The GPUs of an engine, and the order of the work on their queues.
#pragma once
#include <cstddef>
#include <deque>
#include <strata/cuda/machine/device.hpp>
#include <utility>

namespace strata::core {

/// Device: derives from engine_device. Their addresses do not change.
template <class Device>
class device_group {
  std::deque<Device> all_;

 public:
  template <class... Arguments>
  void add(Arguments&&... arguments) {
    all_.emplace_back(std::forward<Arguments>(arguments)...);
  }
  auto begin() { return all_.begin(); }
  auto end() { return all_.end(); }
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }
  std::size_t size() const { return all_.size(); }
  Device& operator[](int i) { return all_[std::size_t(i)]; }
  const Device& operator[](int i) const { return all_[std::size_t(i)]; }

  void enable_peer_access() const {
    for (const Device& from : all_)
      for (const Device& to : all_) machine::enable_peer_access(from.on.index(), to.on.index());
  }
  /// Blocks the host until all devices are idle.
  void wait() const {
    for (const Device& each : all_) each.wait();
  }
  /// Work enqueued on any device from now on begins when all devices have done the work enqueued before.
  void wait_for_each_other() const {
    for (const Device& a : all_)
      for (const Device& b : all_)
        if (&a != &b) machine::order(a.queue, b.queue);
  }
  /// Work enqueued on the other devices from now on begins when the first has done the work enqueued before.
  void first_goes_first() const {
    for (const Device& each : all_)
      if (each.number > 0) machine::order(all_.front().queue, each.queue);
  }
  /// Work enqueued on the first device from now on begins when all devices have done the work enqueued before.
  void first_goes_last() const {
    for (const Device& each : all_)
      if (each.number > 0) machine::order(each.queue, all_.front().queue);
  }
};

}  // namespace strata::core
