// The sums of gradients by NCCL, over the GPUs of one process or of several: bucket after bucket, while the backward goes on.
#pragma once
#include <exception>
#include <functional>
#include <optional>
#include <span>
#include <strata/base/error.hpp>
#include <strata/concepts/communicator.hpp>
#include <strata/cuda/machine/device.hpp>
#include <strata/cuda/machine/loops.hpp>
#include <strata/cuda/machine/nccl.hpp>
#include <strata/exchange/gradient_buckets.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace strata {

namespace machine {
/// Replaces elements from `begin` on of a device's first leaf by the sum over its leaves, which are one after the other in
/// memory; by zeros if it has none.
template <class T>
struct sum_of_leaves {
  T* gradients;
  long stride, begin;
  int leaves;

  constexpr void operator()(long i) const {
    T sum{};
    for (int l = 0; l < leaves; ++l) sum += gradients[l * stride + begin + i];
    gradients[begin + i] = sum;
  }
};
}  // namespace machine

namespace core {
enum class nccl_event { wait_begins, waits, sums_fail, own_error };
/// Called when this process begins to wait for sums, and repeatedly while it waits; throws communication_error if the wait is in
/// vain, for example because another process has ended. Also called with the text of an error before the sums are aborted: an
/// error of this process or of the sums, perhaps caused by another one; then it may throw a more precise communication_error.
using nccl_watch = std::function<void(nccl_event, const std::string& error)>;

/// The sums of one process.
template <class T>
class nccl_sums {
  struct member {
    machine::queue sums;
    std::optional<machine::nccl_communicator> place{};  // none: it is the only device of the training
    T* gradients = nullptr;
    int ready = 0;  // buckets of this step that are on their way
  };
  std::vector<member> members_;
  std::vector<gradient_bucket> buckets_;
  nccl_watch watch_;
  long size_;            // trained elements
  int added_up_ = 0;     // buckets of this step whose sums have been enqueued
  std::string failure_;  // if not empty, all later sums fail

 public:
  /// The devices of this process are the ranks from `first` on of `ranks`. Returns when all ranks have joined.
  nccl_sums(std::span<const int> devices, const machine::nccl_id& group, int first, int ranks,
            std::vector<gradient_bucket> buckets, long size, nccl_watch watch)
      : buckets_(std::move(buckets)), watch_(std::move(watch)), size_(size) {
    for (const int device : devices) members_.push_back({machine::queue(device)});
    if (ranks == 1) return;
    machine::nccl_together([&] {
      for (std::size_t i = 0; i < devices.size(); ++i) members_[i].place.emplace(devices[i], group, first + int(i), ranks);
    });
    wait_until([&] { return is_ready(); });
  }
  nccl_sums(const nccl_sums&) = delete;
  nccl_sums& operator=(const nccl_sums&) = delete;
  ~nccl_sums() {
    const bool is_cut_short = std::uncaught_exceptions() > 0 || !failure_.empty() || is_within_step();
    for (member& m : members_)
      if (m.place) is_cut_short ? m.place->abort() : m.place->begin_to_leave();
  }

  /// Begins a step. gradients: the array of device i.
  void begin(int i, T* gradients) {
    members_[std::size_t(i)].gradients = gradients, members_[std::size_t(i)].ready = 0;
    added_up_ = 0;
  }
  /// The gradients of `leaves` leaves of device i are complete down to that group, by work that is on `backward` now.
  void passed(int i, const machine::queue& backward, int leaves, int group) {
    member& m = members_[std::size_t(i)];
    for (; m.ready < int(buckets_.size()) && buckets_[std::size_t(m.ready)].group >= group; ++m.ready) {
      const gradient_bucket& b = buckets_[std::size_t(m.ready)];
      machine::order(backward, m.sums);
      if (leaves != 1)
        machine::for_each_index(m.sums, b.end - b.begin, machine::sum_of_leaves<T>{m.gradients, size_, b.begin, leaves});
    }
    while (added_up_ < int(buckets_.size()) && is_ready_everywhere(added_up_)) add_up(buckets_[std::size_t(added_up_++)]);
  }
  /// Work that is enqueued on `update` from now on begins after the sums of device i.
  void order_before(int i, const machine::queue& update) { machine::order(members_[std::size_t(i)].sums, update); }

  /// Blocks until the queue is done, which may wait for sums. If the sums fail, aborts them and throws communication_error.
  void wait(const machine::queue& q) {
    wait_until([&] {
      const bool ready = is_ready();
      return machine::is_done(q) && ready;
    });
  }

 private:
  bool is_ready() const {
    for (const member& m : members_)
      if (m.place && !m.place->is_ready()) return false;
    return true;
  }
  /// Others wait for sums that this process has not begun.
  bool is_within_step() const {
    for (const member& m : members_)
      if (m.ready > added_up_) return true;
    return added_up_ > 0 && added_up_ < int(buckets_.size());
  }
  bool is_ready_everywhere(int bucket) const {
    for (const member& m : members_)
      if (m.ready <= bucket) return false;
    return true;
  }
  void add_up(const gradient_bucket& b) {
    if (!members_.front().place) return;
    or_abort([&] {
      machine::nccl_together([&] {
        for (member& m : members_) m.place->add_up(m.sums, m.gradients + b.begin, std::size_t(b.end - b.begin));
      });
    });
    wait_until([&] { return is_ready(); });
  }

  template <class Done>
  void wait_until(Done&& done) {
    or_abort([&] {
      const std::string none;
      if (watch_) watch_(nccl_event::wait_begins, none);
      while (!done()) {
        if (watch_) watch_(nccl_event::waits, none);
        for (const member& m : members_)
          (void)machine::is_done(m.sums);  // throws if a device is lost: others would wait for ever
        std::this_thread::yield();
      }
    });
  }
  /// A sum that fails in one process never ends in the others. After a failure there are no more sums.
  template <class F>
  void or_abort(F&& f) {
    if (!failure_.empty()) throw_exception(communication_error(failure_));
    try {
      try {
        f();
      } catch (const std::exception& e) {
        const bool is_of_sums = dynamic_cast<const communication_error*>(&e) != nullptr;
        if (watch_) watch_(is_of_sums ? nccl_event::sums_fail : nccl_event::own_error, e.what());
        throw;
      }
    } catch (const std::exception& e) {
      failure_ = e.what();
      for (member& m : members_)
        if (m.place) m.place->abort();
      throw;
    }
  }
};
}  // namespace core

}  // namespace strata
