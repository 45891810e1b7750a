// The state of all emulated devices, and the loop that does the work of their queues.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <strata/base/error.hpp>
#include <strata/base/random.hpp>
#include <strata/base/text.hpp>
#include <strata/cuda/machine/emulated/device_memory.hpp>
#include <strata/cuda/machine/emulated/from_environment.hpp>
#include <strata/cuda/machine/emulated/queue_state.hpp>
#include <strata/cuda/machine/emulated/recorded_work.hpp>
#include <strata/cuda/machine/emulated/touched_pages.hpp>
#include <strata/cuda/machine/emulated/work_counts.hpp>
#include <strata/cuda/machine/errors.hpp>
#include <thread>
#include <utility>
#include <vector>

namespace strata::machine::detail {

/// All emulated devices, and the work on their queues. Devices have no threads of their own: a thread of the host that waits
/// for a queue does the work (see work_off), one thread at a time.
class machine_state {
  std::vector<std::unique_ptr<device_memory>> memories_;
  std::vector<work_counts> counts_;
  std::vector<std::shared_ptr<recorded_work>> captures_;  // those that have not ended
  bool capture_fails_ = false;                            // whether the next capture fails
  std::vector<long> works_left_;  // how many works each device does before it is lost; negative: it is never lost
  std::vector<std::weak_ptr<queue_state>> queues_;
  // The random numbers that choose which queue works next.
  philox order_{std::uint64_t(from_environment("STRATA_EMULATION_SEED", 1, 0, std::numeric_limits<long>::max()))};
  std::uint64_t choices_ = 0;             // how many of these numbers were used
  std::unique_ptr<touched_pages> pages_;  // null unless bytes are counted
  long threads_ = 0;                      // of the kernel that runs; 0: it is something else
  mutable std::recursive_mutex mutex_;

  machine_state() { reset(int(from_environment("STRATA_EMULATED_GPUS", 0, 0, 64)), std::size_t(memory_from_environment())); }
  static long memory_from_environment() {
    return from_environment("STRATA_EMULATED_GPU_MEMORY", long{1} << 30, 1, long{1} << 38);
  }

 public:
  /// The one state of the program. The first call makes as many devices as the environment variable STRATA_EMULATED_GPUS says
  /// (none, if it is not set), with STRATA_EMULATED_GPU_MEMORY bytes each (1 GiB, if it is not set). Throws strata_error
  /// if a variable is not such a number.
  static machine_state& the() {
    static machine_state one;
    return one;
  }
  /// Locks the state until the result is destroyed. A thread may lock it several times.
  std::unique_lock<std::recursive_mutex> lock() const { return std::unique_lock(mutex_); }

  /// Replaces all devices by `devices` new ones, with counts of 0; bytes are no longer counted, and work that waits on queues is
  /// dropped. Throws strata_error if the number is negative, or if memory of the present devices is in use.
  void reset(int devices, std::size_t bytes_of_each) {
    const auto locked = lock();
    if (devices < 0) throw_error({"emulate_devices(", devices, "): a number of devices is at least 0"});
    for (const auto& each : memories_)
      if (each->is_used()) throw_error("emulate_devices: a trainer or a buffer still has memory of an emulated device");
    for (const auto& each : queues_)
      if (const auto q = each.lock()) q->waiting.clear();
    memories_.clear();
    pages_.reset();
    for (int i = 0; i < devices; ++i) memories_.push_back(std::make_unique<device_memory>(bytes_of_each));
    counts_.assign(std::size_t(devices), {});
    works_left_.assign(std::size_t(devices), -1);
  }
  /// See machine::count_bytes. Throws strata_error if memory of a device is in use.
  void count_bytes() {
    const auto locked = lock();
    for (const auto& each : memories_)
      if (each->is_used()) throw_error("count_bytes: a trainer or a buffer already has memory of an emulated device");
    pages_ = std::make_unique<touched_pages>();
    for (const auto& each : memories_) {
      each->begin_arrays_at_pages();
      pages_->add(each->begin(), each->capacity());
    }
  }
  /// Runs one kernel or copy of a device. If bytes are counted, adds those that it touches to the counts of the device.
  void run(int device, const std::function<void()>& work) {
    if (!pages_) return work();
    pages_->bytes_read = pages_->bytes_written = 0;
    threads_ = 0;
    pages_->during(work);
    work_counts more;
    more.bytes_read = pages_->bytes_read, more.bytes_written = pages_->bytes_written;
    if (threads_ > 0) more.most_bytes_of_thread = (more.bytes_read + more.bytes_written) / threads_;
    counts(device) += more;
  }
  /// A kernel that runs tells how many threads it has.
  void tell_threads(long threads) { threads_ = threads; }
  /// See lose_device. Throws strata_error if there is no such device.
  void lose(int device, long after) {
    const auto locked = lock();
    need_device(device);
    works_left_[std::size_t(device)] = after;
  }
  /// Throws strata_error if there is no such device.
  void need_device(int device) const {
    const auto locked = lock();
    if (device < 0 || device >= devices())
      throw_error({"gpu(", device, ") does not exist: the number of emulated devices is ", devices()});
  }
  /// Throws device_lost if the device is lost, and strata_error if there is no such device. `during` names in the text
  /// what the caller was about to do, or has just done.
  void refuse_lost(int device, const char* during) const {
    const auto locked = lock();
    need_device(device);
    if (works_left_[std::size_t(device)] == 0) throw_exception(device_lost(device, during, "unspecified launch failure"));
  }
  /// See machine::fail_next_capture.
  void fail_next_capture() {
    const auto locked = lock();
    capture_fails_ = true;
  }
  /// See emulate_order.
  void set_seed(std::uint64_t seed) {
    const auto locked = lock();
    order_ = philox{seed}, choices_ = 0;
  }
  /// The number of devices.
  int devices() const {
    const auto locked = lock();
    return int(memories_.size());
  }
  /// The memory of a device. Throws strata_error if there is no such device.
  device_memory& memory(int device) {
    need_device(device);
    return *memories_[std::size_t(device)];
  }
  /// Whether the `bytes` bytes at `from` lie within one allocation of a device. Throws strata_error if there is no such
  /// device.
  bool holds(int device, const void* from, std::size_t bytes) const {
    const auto locked = lock();
    need_device(device);
    return memories_[std::size_t(device)]->holds(from, bytes);
  }
  /// The counts of a device. Throws strata_error if there is no such device.
  work_counts& counts(int device) {
    need_device(device);
    return counts_[std::size_t(device)];
  }
  /// Draws a number from 0 to count - 1 from the seed.
  std::size_t choice(std::size_t count) { return std::size_t(order_.uniform(choices_++) * double(count)); }

  /// Returns the state of a new queue. Its work is done as long as the caller keeps the pointer. Throws strata_error if
  /// there is no such device.
  std::shared_ptr<queue_state> make_queue(int device) {
    const auto locked = lock();
    need_device(device);
    std::erase_if(queues_, [](const auto& each) { return each.expired(); });
    auto made = std::make_shared<queue_state>(queue_state{device});
    queues_.push_back(made);
    return made;
  }
  /// Begins a capture of a queue by this thread: from now on its work is recorded. Throws strata_error if the queue is
  /// captured already, or if fail_next_capture asked for it.
  std::shared_ptr<recorded_work> begin_capture(queue_state& on) {
    const auto locked = lock();
    if (on.recorded) throw_error("a capture of a queue that another thread captures");
    if (std::exchange(capture_fails_, false)) throw_error("CUDA: a graph of a step: out of memory");
    auto made = std::make_shared<recorded_work>();
    made->branches.push_back({on.device});
    captures_.push_back(made);
    on.recorded = made, on.branch = 0;
    return made;
  }
  /// The capture that this thread has begun and not ended, or null.
  std::shared_ptr<recorded_work> capture_of_this_thread() const {
    const auto locked = lock();
    const auto own = std::ranges::find(captures_, std::this_thread::get_id(), &recorded_work::thread);
    return own == captures_.end() ? nullptr : *own;
  }
  /// Puts work on a queue or, if the queue is captured, adds it to the capture. Throws strata_error if the queue is
  /// captured and the work is a wait, because only join adds a wait to a capture, or if the device of the queue does not exist
  /// any more.
  void enqueue(queue_state& on, work w) {
    const auto locked = lock();
    need_device(on.device);
    if (!on.recorded) return on.waiting.push_back(std::move(w));
    if (w.is_ready) on.recorded->fail("a queue that is captured waits for an event that is not part of the graph");
    on.recorded->branches[on.branch].all.push_back({std::move(w.run)});
  }
  /// Sets the place of an event after all work of a queue that is captured. Returns the number of the event in that capture, or
  /// -1 if the queue is not captured.
  int record(const queue_state& on) {
    const auto locked = lock();
    if (!on.recorded) return -1;
    on.recorded->branches[on.branch].all.push_back({.records = on.recorded->events});
    return on.recorded->events++;
  }
  /// Makes a queue wait for the event of that number in a capture. If the queue is not captured yet, it becomes a branch of
  /// that capture. Throws strata_error if the capture has ended, or if the queue is captured by another one.
  void join(queue_state& later, const std::shared_ptr<recorded_work>& graph, int event) {
    const auto locked = lock();
    if (graph->is_over) throw_error("a queue waits for an event of a graph");
    if (later.recorded && later.recorded != graph) {
      constexpr const char* why = "a queue that is captured waits for an event of another graph";
      graph->failure = why;
      later.recorded->fail(why);
    }
    if (!later.recorded) {
      later.recorded = graph, later.branch = graph->branches.size();
      graph->branches.push_back({later.device});
    }
    graph->branches[later.branch].all.push_back({.awaits = event});
  }
  /// Ends a capture: its queues do their work again, instead of recording it.
  void end_capture(const std::shared_ptr<recorded_work>& graph) {
    const auto locked = lock();
    for (const auto& each : queues_)
      if (const auto q = each.lock(); q && q->recorded == graph) q->recorded = nullptr;
    graph->is_over = true;
    std::erase(captures_, graph);
  }
  /// Does work until no work waits on the queue. Each time the seed chooses one of the queues whose first work may run, so work
  /// of other queues may be done, too. Returns false if no work may run before another process does something. Throws
  /// strata_error if each queue waits for another one, and what the work throws.
  bool work_off(queue_state& until) {
    return work_off(until, [] { return false; });
  }
  /// As above, but also returns true as soon as done() is true.
  template <class Done>
  bool work_off(queue_state& until, Done&& done) {
    const auto locked = lock();
    if (until.waiting.empty() || done()) return true;
    const open_memory open(*this, true);
    while (!until.waiting.empty() && !done()) {
      std::vector<std::shared_ptr<queue_state>> ready;
      for (const auto& each : queues_)
        if (auto q = each.lock(); q && !q->waiting.empty() && (!q->waiting.front().is_ready || q->waiting.front().is_ready()))
          ready.push_back(std::move(q));
      if (ready.empty()) {
        for (const auto& each : queues_)
          if (const auto q = each.lock(); q && !q->waiting.empty() && q->waiting.front().waits_for_others) return false;
        throw_error("emulated devices: each queue waits for another one");
      }
      queue_state& chosen = *ready[choice(ready.size())];
      const work next = std::move(chosen.waiting.front());
      chosen.waiting.pop_front();
      if (next.run && (next.is_signal || is_working(chosen.device))) run(chosen.device, next.run);
    }
    return true;
  }
  /// Whether a device is not lost, so that it does one more work. Counts that work for lose_device.
  bool is_working(int device) {
    long& left = works_left_[std::size_t(device)];
    if (left <= 0) return left < 0;
    --left;
    return true;
  }
  /// Does the work on a queue for a caller that cannot throw. Where this fails or depends on another process, the rest of the
  /// work is dropped.
  void finish(queue_state& q) noexcept {
    const auto locked = lock();
    try {
      if (work_off(q)) return;
    } catch (...) {
    }
    q.waiting.clear();
  }
  /// Finishes all queues of a device, for release, which cannot throw.
  void finish_device(int device) noexcept {
    const auto locked = lock();
    for (const auto& each : queues_)
      if (const auto q = each.lock(); q && q->device == device) finish(*q);
  }

  /// Opens the memory of all devices for kernels and copies. The destructor closes it.
  struct open_memory {
    machine_state& all;
    /// by_page: if bytes are counted, the memory stays closed, and each kernel opens the pages that it touches.
    explicit open_memory(machine_state& m, bool by_page = false) : all(m) {
      for (const auto& each : all.memories_) each->protect(by_page && all.pages_);
    }
    open_memory(const open_memory&) = delete;
    open_memory& operator=(const open_memory&) = delete;
    ~open_memory() {
      for (const auto& each : all.memories_) each->protect(true);
    }
  };
};

}  // namespace strata::machine::detail
