// CUDA devices without CUDA, for tests: each thread of a kernel is a function call or, where threads wait for each other, a
// fiber. Work on a queue is done late and in an order that a seed chooses. The host cannot read or write the memory of a device,
// so code that does crashes; a queue that does not wait for another one gives wrong results with some seed. hardware.cuh has the
// same names for nvcc.
// needs: boost_context
#pragma once
#include <sys/mman.h>

#include <algorithm>
#include <boost/context/fiber.hpp>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <strata/base/error.hpp>
#include <strata/base/random.hpp>
#include <strata/base/text.hpp>
#include <strata/cuda/machine/errors.hpp>
#include <strata/cuda/machine/touched_pages.hpp>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#define STRATA_DEVICE

namespace strata::machine {

/// What one device has done since it was asked last.
struct work_counts {
  long kernels = 0, copies_to_device = 0, copies_to_host = 0, copies_between = 0, sums = 0;  // also those of graphs
  long bytes_to_device = 0;                                                                  // of copies_to_device
  long library_calls = 0;                  // of the kernels, those of cuBLASLt and cuDNN
  long graphs = 0, captures = 0;           // launched, recorded
  long waits = 0, event_waits = 0;         // of the host: for a queue, for an event
  long bytes_read = 0, bytes_written = 0;  // by kernels and copies: see count_bytes
  constexpr work_counts& operator+=(const work_counts& more) {
    kernels += more.kernels, library_calls += more.library_calls, graphs += more.graphs, captures += more.captures;
    copies_to_device += more.copies_to_device, copies_to_host += more.copies_to_host, copies_between += more.copies_between,
        sums += more.sums, bytes_to_device += more.bytes_to_device;
    waits += more.waits, event_waits += more.event_waits;
    bytes_read += more.bytes_read, bytes_written += more.bytes_written;
    return *this;
  }
};

namespace detail {

/// Stacks for fibers, which are used again.
class fiber_stacks {
  static constexpr std::size_t size = std::size_t{64} << 10;
  std::vector<void*> free_;

 public:
  fiber_stacks() = default;
  fiber_stacks(const fiber_stacks&) = delete;
  fiber_stacks& operator=(const fiber_stacks&) = delete;
  ~fiber_stacks() {
    for (void* each : free_) std::free(each);
  }
  boost::context::stack_context allocate() {
    void* bottom = nullptr;
    if (free_.empty()) {
      bottom = std::aligned_alloc(64, size);
      if (!bottom) throw std::bad_alloc();
    } else {
      bottom = free_.back();
      free_.pop_back();
    }
    boost::context::stack_context stack;
    stack.size = size;
    stack.sp = static_cast<std::byte*>(bottom) + size;
    return stack;
  }
  void deallocate(const boost::context::stack_context& stack) { free_.push_back(static_cast<std::byte*>(stack.sp) - size); }

  /// Of one thread of the program.
  struct of_this_thread {
    static fiber_stacks& all() {
      thread_local fiber_stacks stacks;
      return stacks;
    }
    boost::context::stack_context allocate() const { return all().allocate(); }
    void deallocate(const boost::context::stack_context& stack) const { all().deallocate(stack); }
  };
};

struct work {
  std::function<bool()> is_ready;  // empty: it is
  std::function<void()> run;
  bool is_signal = false;         // for another queue: it is sent even if the device is lost
  bool waits_for_others = false;  // is_ready() may depend on other processes
};

/// What captured queues were asked to do: the first one, and those that wait for an event of the graph.
struct recorded_work {
  struct item {
    std::function<void()> run{};    // or
    int records = -1, awaits = -1;  // the number of an event
  };
  struct branch {
    int device;
    std::vector<item> all{};
    work_counts counts{};
  };
  std::vector<branch> branches;
  int events = 0;
  bool is_over = false;  // nothing can be added

  /// Whether the first queue waits, also by others, for all that is on the others.
  bool is_joined() const {
    struct place {
      std::size_t branch, end;
    };
    std::vector<place> recorded(std::size_t(events), place{});
    for (std::size_t b = 0; b < branches.size(); ++b)
      for (std::size_t i = 0; i < branches[b].all.size(); ++i)
        if (const int e = branches[b].all[i].records; e >= 0) recorded[std::size_t(e)] = {b, i + 1};
    std::vector<std::size_t> awaited(branches.size());
    awaited[0] = branches[0].all.size();
    for (bool changes = true; changes;) {
      changes = false;
      for (std::size_t b = 0; b < branches.size(); ++b)
        for (std::size_t i = 0; i < awaited[b]; ++i)
          if (const int e = branches[b].all[i].awaits; e >= 0) {
            const place& at = recorded[std::size_t(e)];
            if (awaited[at.branch] >= at.end) continue;
            awaited[at.branch] = at.end;
            changes = true;
          }
    }
    for (std::size_t b = 0; b < branches.size(); ++b)
      if (awaited[b] < branches[b].all.size()) return false;
    return true;
  }
};

struct queue_state {
  int device;
  std::deque<work> waiting{};
  std::shared_ptr<recorded_work> recorded{};  // while it is captured
  std::size_t branch = 0;                     // of recorded
};

/// The memory of one device: an address range that may be read and written only while a kernel or a copy runs.
class device_memory {
  std::byte* begin_;
  std::size_t capacity_, free_;
  std::map<std::size_t, std::size_t> holes_;      // offset -> size
  std::map<const void*, std::size_t> allocated_;  // address -> bytes
  std::size_t alignment_ = 256;
  std::size_t taken_for(std::size_t bytes) const {
    return (std::max<std::size_t>(bytes, 1) + alignment_ - 1) / alignment_ * alignment_;
  }

 public:
  explicit device_memory(std::size_t capacity) : capacity_(capacity), free_(capacity), holes_{{0, capacity}} {
    void* const at = ::mmap(nullptr, capacity, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) throw std::bad_alloc();
    begin_ = static_cast<std::byte*>(at);
  }
  device_memory(const device_memory&) = delete;
  device_memory& operator=(const device_memory&) = delete;
  ~device_memory() { ::munmap(begin_, capacity_); }

  std::byte* begin() const { return begin_; }
  /// From now on no two arrays share a page.
  void begin_arrays_at_pages() { alignment_ = touched_pages::page; }
  std::size_t free() const { return free_; }
  std::size_t capacity() const { return capacity_; }
  bool is_used() const { return !allocated_.empty(); }
  void protect(bool closed) { ::mprotect(begin_, capacity_, closed ? PROT_NONE : PROT_READ | PROT_WRITE); }

  /// Whether these bytes are part of one allocation.
  bool holds(const void* from, std::size_t bytes) const {
    auto next = allocated_.upper_bound(from);
    if (next == allocated_.begin()) return false;
    --next;
    return std::size_t(static_cast<const std::byte*>(from) - static_cast<const std::byte*>(next->first)) + bytes <= next->second;
  }
  /// Null if there is no hole of that size.
  void* allocate(std::size_t bytes) {
    const std::size_t size = taken_for(bytes);
    const auto hole = std::ranges::find_if(holes_, [&](const auto& each) { return each.second >= size; });
    if (hole == holes_.end()) return nullptr;
    const auto [offset, room] = *hole;
    holes_.erase(hole);
    if (room > size) holes_[offset + size] = room - size;
    free_ -= size;
    allocated_[begin_ + offset] = bytes;
    return begin_ + offset;
  }
  void release(const void* memory) {
    const auto found = allocated_.find(memory);
    if (found == allocated_.end()) std::abort();
    std::size_t offset = std::size_t(static_cast<const std::byte*>(memory) - begin_), size = taken_for(found->second);
    free_ += size;
    allocated_.erase(found);
    if (const auto next = holes_.find(offset + size); next != holes_.end()) size += next->second, holes_.erase(next);
    if (auto before = holes_.lower_bound(offset); before != holes_.begin())
      if (--before; before->first + before->second == offset) offset = before->first, size += before->second;
    holes_[offset] = size;
  }
};

/// Throws strata::error for anything but a whole number of at least `least`.
inline long from_environment(const char* name, long otherwise, long least) {
  const char* const text = std::getenv(name);
  if (!text) return otherwise;
  long value = 0;
  const std::string_view all(text);
  const auto [end, code] = std::from_chars(all.data(), all.data() + all.size(), value);
  if (code != std::errc() || end != all.data() + all.size() || value < least)
    throw_error({name, " is '", all, "', but must be a whole number of at least ", least});
  return value;
}

/// All devices and the work on their queues. One thread at a time makes the devices work.
class machine_state {
  std::vector<std::unique_ptr<device_memory>> memories_;
  std::vector<work_counts> counts_;
  bool capture_fails_ = false;    // the next one
  std::vector<long> works_left_;  // of each device until it is lost; negative: it is never lost
  std::vector<std::weak_ptr<queue_state>> queues_;
  philox order_{std::uint64_t(from_environment("STRATA_EMULATION_SEED", 1, 0))};
  std::uint64_t choices_ = 0;
  std::unique_ptr<touched_pages> pages_;  // if bytes are counted
  mutable std::recursive_mutex mutex_;

  machine_state() { reset(int(from_environment("STRATA_EMULATED_GPUS", 0, 0)), std::size_t(memory_from_environment())); }
  static long memory_from_environment() { return from_environment("STRATA_EMULATED_GPU_MEMORY", long{1} << 30, 1); }

 public:
  static machine_state& the() {
    static machine_state one;
    return one;
  }
  std::unique_lock<std::recursive_mutex> lock() const { return std::unique_lock(mutex_); }

  /// Other devices from now on. Throws strata::error while memory of those before is in use.
  void reset(int devices, std::size_t bytes_of_each) {
    const auto locked = lock();
    if (devices < 0) throw_error({"emulate_devices(", devices, "): a number of devices is at least 0"});
    for (const auto& each : memories_)
      if (each->is_used()) throw_error("emulate_devices: a trainer or a buffer still has memory of an emulated device");
    memories_.clear();
    pages_.reset();
    for (int i = 0; i < devices; ++i) memories_.push_back(std::make_unique<device_memory>(bytes_of_each));
    counts_.assign(std::size_t(devices), {});
    works_left_.assign(std::size_t(devices), -1);
  }
  void count_bytes() {
    const auto locked = lock();
    pages_ = std::make_unique<touched_pages>();
    for (const auto& each : memories_) {
      if (each->is_used()) throw_error("count_bytes: a trainer or a buffer already has memory of an emulated device");
      each->begin_arrays_at_pages();
      pages_->add(each->begin(), each->capacity());
    }
  }
  /// One kernel or copy of a device.
  void run(int device, const std::function<void()>& work) {
    if (!pages_) return work();
    pages_->bytes_read = pages_->bytes_written = 0;
    pages_->during(work);
    counts(device).bytes_read += pages_->bytes_read;
    counts(device).bytes_written += pages_->bytes_written;
  }
  void lose(int device, long after) {
    const auto locked = lock();
    counts(device);  // or throws
    works_left_[std::size_t(device)] = after;
  }
  bool is_lost(int device) const { return device < devices() && works_left_[std::size_t(device)] == 0; }
  void refuse_lost(int device, const char* during) const {
    const auto locked = lock();
    if (is_lost(device)) throw_exception(device_lost(device, during, "unspecified launch failure"));
  }
  void fail_next_capture() {
    const auto locked = lock();
    capture_fails_ = true;
  }
  void begin_capture() {
    const auto locked = lock();
    if (std::exchange(capture_fails_, false)) throw_error("CUDA: a graph of a step: out of memory");
  }
  void set_seed(std::uint64_t seed) {
    const auto locked = lock();
    order_ = philox{seed}, choices_ = 0;
  }
  int devices() const { return int(memories_.size()); }
  device_memory& memory(int device) { return *memories_[std::size_t(device)]; }
  bool holds(int device, const void* from, std::size_t bytes) const {
    const auto locked = lock();
    return memories_[std::size_t(device)]->holds(from, bytes);
  }
  work_counts& counts(int device) {
    if (device < 0 || device >= devices()) throw_error({"there are ", devices(), " emulated devices, but not number ", device});
    return counts_[std::size_t(device)];
  }
  /// A number below `count`.
  std::size_t choice(std::size_t count) { return std::size_t(order_.uniform(choices_++) * double(count)); }

  std::shared_ptr<queue_state> make_queue(int device) {
    const auto locked = lock();
    std::erase_if(queues_, [](const auto& each) { return each.expired(); });
    auto made = std::make_shared<queue_state>(queue_state{device});
    queues_.push_back(made);
    return made;
  }
  void enqueue(queue_state& on, work w) {
    const auto locked = lock();
    if (!on.recorded) return on.waiting.push_back(std::move(w));
    if (w.is_ready) throw_error("a queue that is captured waits for an event that is not part of the graph");
    on.recorded->branches[on.branch].all.push_back({std::move(w.run)});
  }
  /// What begins after an event of a graph is part of it.
  void join(queue_state& later, const std::shared_ptr<recorded_work>& graph, int event) {
    const auto locked = lock();
    if (graph->is_over) throw_error("a queue waits for an event of a graph");
    if (!later.recorded) {
      later.recorded = graph, later.branch = graph->branches.size();
      graph->branches.push_back({later.device});
    }
    graph->branches[later.branch].all.push_back({.awaits = event});
  }
  void end_capture(const std::shared_ptr<recorded_work>& graph) {
    const auto locked = lock();
    for (const auto& each : queues_)
      if (const auto q = each.lock(); q && q->recorded == graph) q->recorded = nullptr;
    graph->is_over = true;
  }
  /// What a GPU refuses while a queue is captured, on any queue of the program.
  void refuse_while_captured(const char* what) const {
    const auto locked = lock();
    for (const auto& each : queues_)
      if (const auto q = each.lock(); q && q->recorded) throw_error({what, " while a queue is captured"});
  }
  static void refuse_in_graph(const queue_state& q, const char* what) {
    if (q.recorded) throw_error({what, " cannot be part of a graph"});
  }
  /// Works until the queue is empty; other queues may go on meanwhile, or not. Returns false if first another process has to do
  /// something.
  bool work_off(queue_state& until) {
    return work_off(until, [] { return false; });
  }
  /// The same until `done()`, if that is earlier.
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
  /// Whether a device does one more work.
  bool is_working(int device) {
    long& left = works_left_[std::size_t(device)];
    if (left <= 0) return left < 0;
    --left;
    return true;
  }
  /// All work of a device. What cannot be done is forgotten: whoever waited for it has got the error.
  void work_off_device(int device) noexcept {
    const auto locked = lock();
    for (const auto& each : queues_)
      if (const auto q = each.lock(); q && q->device == device) try {
          if (!work_off(*q)) q->waiting.clear();
        } catch (...) {
          q->waiting.clear();
        }
  }

  /// While it lives, kernels and copies may read and write.
  struct open_memory {
    machine_state& all;
    /// by_page: if bytes are counted, each kernel opens its pages.
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

/// The fibers of one block.
struct block_of_threads {
  std::vector<boost::context::fiber> fibers;
  std::vector<boost::context::fiber> back;  // of each thread: where its barrier returns to
};

}  // namespace detail

/// One thread of a kernel. A kernel is a function object: see launch.
class lane {
  int thread_;
  long block_;
  detail::block_of_threads* all_;

 public:
  lane(int thread, long block, detail::block_of_threads* all) : thread_(thread), block_(block), all_(all) {}
  int thread() const { return thread_; }
  long block() const { return block_; }
  /// The same thread of a kernel whose first block is that one.
  lane from_block(long first) const { return {thread_, block_ - first, all_}; }
  void barrier() const {
    auto& back = all_->back[std::size_t(thread_)];
    back = std::move(back).resume();
  }
};

inline int device_count() { return detail::machine_state::the().devices(); }
/// Where device_count() is 0.
inline const char* why_no_device() { return "nvcc has not compiled this program, and it has no emulated GPU"; }

/// For tests: `count` devices with so many bytes each, in place of those that the environment asks for. Throws
/// strata::error while a trainer or a buffer has memory of a device.
inline void emulate_devices(int count, std::size_t bytes_of_each = std::size_t{1} << 30) {
  detail::machine_state::the().reset(count, bytes_of_each);
}
/// For tests: a device does so many works more, and then none.
inline void lose_device(int device, long after = 0) { detail::machine_state::the().lose(device, after); }
/// For tests: the next graph that is recorded, on any device, is an error.
inline void fail_next_capture() { detail::machine_state::the().fail_next_capture(); }
/// From now on counts what kernels and copies read and write, in pages of 4,096 bytes: each page that a kernel reads, and each
/// that it writes, however often. Until emulate_devices is called again.
inline void count_bytes() { detail::machine_state::the().count_bytes(); }
/// In which order queues work.
inline void emulate_order(std::uint64_t seed) { detail::machine_state::the().set_seed(seed); }
/// What a device was asked to do since the last call.
inline work_counts take_counts(int device) { return std::exchange(detail::machine_state::the().counts(device), {}); }

class queue {
  std::shared_ptr<detail::queue_state> state_;

 public:
  queue() = default;
  explicit queue(int device) : state_(detail::machine_state::the().make_queue(device)) {}
  int device() const { return state_->device; }
  detail::queue_state& state() const { return *state_; }
};

namespace detail {
inline void count(const queue& q, long work_counts::* what, const char* during, long how_many = 1) {
  const auto locked = machine_state::the().lock();
  machine_state::the().refuse_lost(q.device(), during);
  detail::queue_state& state = q.state();
  work_counts& to = state.recorded ? state.recorded->branches[state.branch].counts : machine_state::the().counts(q.device());
  to.*what += how_many;
}
inline void enqueue(const queue& q, std::function<void()> run) { machine_state::the().enqueue(q.state(), {{}, std::move(run)}); }

/// All threads of one block, in rounds from barrier to barrier. The order of threads in a round is not that of their numbers.
template <class Code, class Shared>
void run_block(long block, const Code& code, Shared& shared) {
  namespace context = boost::context;
  constexpr std::size_t threads = std::size_t(Code::threads);
  std::memset(static_cast<void*>(&shared), 0xcd, sizeof shared);  // nothing is zero by luck
  block_of_threads all{std::vector<context::fiber>(threads), std::vector<context::fiber>(threads)};
  for (std::size_t t = 0; t < threads; ++t)
    all.fibers[t] = context::fiber(std::allocator_arg, fiber_stacks::of_this_thread{}, [&, t](context::fiber&& main) {
      all.back[t] = std::move(main);
      code(lane(int(t), block, &all), shared);
      return std::move(all.back[t]);
    });
  for (bool backwards = block % 2 == 1, goes_on = true; goes_on; backwards = !backwards) {
    std::size_t waiting = 0;
    for (std::size_t i = 0; i < threads; ++i) {
      context::fiber& next = all.fibers[backwards ? threads - 1 - i : i];
      if (!next) continue;
      next = std::move(next).resume();
      waiting += bool(next);
    }
    if (waiting != 0 && waiting != threads) throw_error("some threads of a block wait at a barrier that others never reach");
    goes_on = waiting != 0;
  }
}
}  // namespace detail

/// Runs `code` on `blocks` blocks of Code::threads threads: code(lane), or code(lane, memory) with Code::shared for each block.
template <class Code>
void launch(const queue& q, long blocks, const Code& code) {
  if (blocks <= 0) return;
  detail::count(q, &work_counts::kernels, "a kernel");
  detail::enqueue(q, [blocks, code] {
    if constexpr (requires { typename Code::shared; }) {
      const auto memory = std::make_unique<typename Code::shared>();
      for (long b = 0; b < blocks; ++b) detail::run_block(b, code, *memory);
    } else {
      for (long b = blocks - 1; b >= 0; --b)
        for (int t = 0; t < Code::threads; ++t) code(lane(t, b, nullptr));
    }
  });
}

inline void wait(const queue& q) {
  detail::machine_state::refuse_in_graph(q.state(), "a wait of the host");
  detail::count(q, &work_counts::waits, "the work of a step");
  while (!detail::machine_state::the().work_off(q.state())) std::this_thread::sleep_for(std::chrono::microseconds(20));
  detail::machine_state::the().refuse_lost(q.device(), "the work of a step");
}
/// Whether all work is done. Does not wait for other processes.
inline bool is_done(const queue& q) {
  detail::machine_state::the().refuse_lost(q.device(), "the work of a step");
  const bool done = detail::machine_state::the().work_off(q.state());
  detail::machine_state::the().refuse_lost(q.device(), "the work of a step");
  return done;
}

/// A place in the work of a queue, for which other queues and the host can wait.
class event {
  struct place {
    queue on;
    bool done = false;
    std::shared_ptr<detail::recorded_work> graph{};  // of which it is a part
    int number = -1;
  };
  std::shared_ptr<place> place_;  // null: it was never recorded, and nothing waits for it

 public:
  /// After all work that is on the queue now.
  void record(const queue& q) {
    place_ = std::make_shared<place>(place{q});
    if (const auto& graph = q.state().recorded) {
      place_->graph = graph, place_->number = graph->events++;
      graph->branches[q.state().branch].all.push_back({.records = place_->number});
      return;
    }
    detail::machine_state::the().enqueue(q.state(), {{}, [at = place_] { at->done = true; }, true});
  }
  /// Work that is enqueued from now on begins after it.
  void hold(const queue& later) const {
    if (place_ && place_->graph) return detail::machine_state::the().join(later.state(), place_->graph, place_->number);
    if (place_) detail::machine_state::the().enqueue(later.state(), {[at = place_] { return at->done; }, {}});
  }
  void wait() const {
    if (!place_) return;
    if (place_->graph) throw_error("the host waits for an event of a graph");
    detail::machine_state::refuse_in_graph(place_->on.state(), "a wait of the host");
    detail::count(place_->on, &work_counts::event_waits, "the work of a step");
    while (!detail::machine_state::the().work_off(place_->on.state(), [at = place_.get()] { return at->done; }))
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    detail::machine_state::the().refuse_lost(place_->on.device(), "the work of a step");
  }
};

/// Work that is enqueued on `later` from now on begins after all that is on `earlier` now.
inline void order(const queue& earlier, const queue& later) {
  event done;
  done.record(earlier);
  done.hold(later);
}

/// Work of one queue, and of those that wait for it, that was recorded once and is launched as one.
class graph {
  std::shared_ptr<const detail::recorded_work> work_;

 public:
  graph() = default;
  explicit graph(std::shared_ptr<const detail::recorded_work> work) : work_(std::move(work)) {}
  explicit operator bool() const { return work_ != nullptr; }
  /// The work of other queues is not on these: each branch is a queue of its own.
  void launch(const queue& q) const {
    detail::machine_state::refuse_in_graph(q.state(), "a launch of another graph");
    detail::count(q, &work_counts::graphs, "a graph");
    auto& all = detail::machine_state::the();
    const auto locked = all.lock();
    const auto has_passed = std::make_shared<std::vector<char>>(std::size_t(work_->events));
    std::vector<std::shared_ptr<detail::queue_state>> others;
    for (const auto& branch : work_->branches) {
      all.counts(branch.device) += branch.counts;
      const bool is_first = &branch == &work_->branches.front();
      if (!is_first) others.push_back(all.make_queue(branch.device));
      detail::queue_state& on = is_first ? q.state() : *others.back();
      for (const auto& each : branch.all)
        if (each.awaits >= 0)
          all.enqueue(on, {[=, e = std::size_t(each.awaits)] { return (*has_passed)[e] != 0; }, {}});
        else if (each.records >= 0)
          all.enqueue(on, {{}, [=, e = std::size_t(each.records)] { (*has_passed)[e] = 1; }, true});
        else
          all.enqueue(on, {{}, each.run});
    }
    const auto are_empty = [others] {
      return std::ranges::all_of(others, [](const auto& each) { return each->waiting.empty(); });
    };
    if (!others.empty()) all.enqueue(q.state(), {are_empty, {}});  // they live until then
  }
};

/// What f() enqueues on the queue becomes a graph and is not done now. So does what it enqueues on other queues, of any device,
/// that wait for this one (order); this one waits for them before f() returns. Meanwhile nothing is allocated, and the host does
/// not wait. Addresses and all other arguments of kernels are the same in each launch.
template <class F>
graph capture(const queue& q, F&& f) {
  auto& all = detail::machine_state::the();
  all.refuse_while_captured("a capture");
  all.begin_capture();
  detail::count(q, &work_counts::captures, "a capture");
  struct recording {
    std::shared_ptr<detail::recorded_work> work = std::make_shared<detail::recorded_work>();
    explicit recording(detail::queue_state& on) {
      work->branches.push_back({on.device});
      on.recorded = work, on.branch = 0;
    }
    recording(const recording&) = delete;
    recording& operator=(const recording&) = delete;
    ~recording() { detail::machine_state::the().end_capture(work); }
  } now(q.state());
  f();
  if (!now.work->is_joined()) throw_error("a queue that is captured does not wait for another queue of the graph");
  return graph(now.work);
}

/// Bytes.
inline std::size_t free_memory(int device) {
  auto& all = detail::machine_state::the();
  const auto locked = all.lock();
  return all.memory(device).free();
}

/// Zeroed. Throws out_of_device_memory or device_lost.
inline void* allocate(int device, std::size_t bytes) {
  auto& all = detail::machine_state::the();
  const auto locked = all.lock();
  all.refuse_lost(device, "an allocation of memory");
  all.refuse_while_captured("memory is allocated");
  auto& memory = all.memory(device);
  void* const made = memory.allocate(bytes);
  if (!made) throw_exception(out_of_device_memory(device, bytes, memory.free(), memory.capacity()));
  const detail::machine_state::open_memory open(all);
  std::memset(made, 0, bytes);
  return made;
}
inline void release(int device, void* memory) noexcept {
  auto& all = detail::machine_state::the();
  const auto locked = all.lock();
  if (!memory || device >= all.devices()) return;
  all.work_off_device(device);
  all.memory(device).release(memory);
}

/// Memory of the host that devices read by themselves, while the program goes on.
class pinned_memory {
  std::vector<std::byte> bytes_;

 public:
  pinned_memory() = default;
  explicit pinned_memory(std::size_t size) : bytes_(size) {}
  std::byte* data() { return bytes_.data(); }
  std::size_t size() const { return bytes_.size(); }
};
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
