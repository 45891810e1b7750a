// The threads of interleave: they read the ranges of a cycle ahead, while the order of the elements stays the same.
#pragma once
#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <strata/base/error.hpp>
#include <strata/base/exceptions.hpp>
#include <strata/base/shape.hpp>
#include <strata/base/tensor.hpp>
#include <strata/data/core/element.hpp>
#include <strata/data/core/function.hpp>
#include <strata/data/core/index_stage.hpp>
#include <strata/data/core/left_out.hpp>
#include <strata/data/core/named_sample.hpp>
#include <strata/data/core/parallel.hpp>
#include <strata/data/core/sample.hpp>
#include <strata/data/views/element_reader.hpp>
#include <strata/data/views/inner_reader.hpp>
#include <strata/data/views/interleave_cycle.hpp>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace strata::data {

namespace detail {
/// Passes a stored element in the form in which it was passed before.
template <class E>
struct show {
  static const std::remove_cvref_t<E>& again(const stored_t<E>& kept) { return kept; }
};
template <class T, shape S>
struct show<tensor<T, S>> {
  static tensor<T, S> again(const stored_t<tensor<T, S>>& kept) { return kept; }
};
template <class X, class Y>
struct show<sample<X, Y>> {
  static sample<X, Y> again(const stored_t<sample<X, Y>>& kept) { return {show<X>::again(kept.x), show<Y>::again(kept.y)}; }
};
template <class... Node, class... V>
struct show<named_sample<column<Node, V>...>> {
  static named_sample<column<Node, V>...> again(const stored_t<named_sample<column<Node, V>...>>& kept) {
    return {{show<V>::again(data::get<Node>(kept))}...};
  }
};
template <class X, class Y>
struct show<std::pair<X, Y>> {
  static std::pair<X, Y> again(const stored_t<std::pair<X, Y>>& kept) {
    return {show<X>::again(kept.first), show<Y>::again(kept.second)};
  }
};

/// Threads, and the lanes in which they read. A lane has one range and two chunks of its elements: the consumer empties one chunk
/// while a thread fills the other. There is a lane for each place of the cycle, and some more in which the next ranges are
/// started ahead of their turn. Ranges are numbered in the order of the elements of V, and enter the cycle in this order.
template <element_view V, class F>
class interleave_threads {
  using rows = rows_t<V>;
  using shown_element = element_t<rows>;
  using reader = inner_reader<mapped_t<F, rows>>;

 public:
  using element = typename reader::element;

  interleave_threads(V base, function<F> f, interleave_cycle cycle, bool deterministic, std::size_t threads)
      : base_(std::move(base)),
        f_(std::move(f)),
        cycle_(cycle),
        deterministic_(deterministic),
        count_(threads),
        lanes_(cycle.places() + threads),
        places_(cycle.places()) {
    for (lane& l : lanes_)
      for (chunk& c : l.chunks) c.elements.resize(chunk_size);
  }
  interleave_threads(const interleave_threads&) = delete;
  interleave_threads& operator=(const interleave_threads&) = delete;
  ~interleave_threads() {
    {
      const std::lock_guard lock(mutex_);
      quit_ = true;
      stop_.store(true, std::memory_order_relaxed);
    }
    work_.notify_all();
    for (std::thread& t : threads_) t.join();
  }

  /// A new object with the same settings, at its beginning.
  std::unique_ptr<interleave_threads> another() const {
    const std::lock_guard lock(base_mutex_);
    return std::make_unique<interleave_threads>(base_, f_, cycle_, deterministic_, count_);
  }
  const V& base() const { return base_; }
  const interleave_cycle& cycle() const { return cycle_; }

  // Functions called by the consumer.

  void start(int epoch) {
    std::unique_lock lock(mutex_);
    running_ = false;
    stop_.store(true, std::memory_order_relaxed);
    idle_.wait(lock, [this] { return at_work_ == 0; });
    for (lane& l : lanes_) l.reset();
    std::fill(places_.begin(), places_.end(), nullptr);
    cycle_.start();
    open_ = 0;
    next_ = inputs_ = 0;
    at_end_ = input_at_end_ = false;
    input_at_first_ = true;
    epoch_ = epoch;
    {
      const std::lock_guard base_lock(base_mutex_);
      detail::release_all(base_.rows());
      base_.set_epoch(epoch);
      input_.start(base_);
    }
    stop_.store(false, std::memory_order_relaxed);
    running_ = true;
    lock.unlock();
    work_.notify_all();
    while (threads_.size() < count_) threads_.emplace_back([this] { run(); });
  }
  bool next(element& e) {
    while (!at_end_ || open_ > 0) {
      if (!deterministic_) go_where_something_is_ready();
      lane*& here = places_[cycle_.at()];
      if (here != nullptr) {
        if (take(*here, e)) {
          cycle_.count_one();
          return true;
        }
        const std::exception_ptr failure = std::exchange(here->failure, nullptr);
        free(std::exchange(here, nullptr));
        --open_;
        cycle_.go_on();
        if (failure) std::rethrow_exception(failure);
      } else if (!at_end_) {
        here = next_lane();
        at_end_ = here == nullptr;
        open_ += !at_end_;
      } else {
        cycle_.go_on();
      }
    }
    return false;
  }

 private:
  static constexpr std::size_t chunk_size = std::clamp<std::size_t>((std::size_t{64} << 10) / sizeof(element), 1, 16);

  struct chunk {
    std::vector<element> elements;
    std::size_t size = 0;
  };
  struct lane {
    // Guarded by the mutex.
    bool used = false, busy = false, finished = false;  // busy: a thread works on it
    std::size_t input = 0;                              // index of its range
    std::size_t first = 0, full = 0;                    // chunks
    // Owned by the thread while the lane is busy, and by the consumer once it has finished.
    std::optional<stored_t<shown_element>> from;
    std::optional<sample_index> index;  // of `from`; guarded by base_mutex_
    std::optional<reader> range;
    std::exception_ptr failure;
    std::array<chunk, 2> chunks;  // full chunks are owned by the consumer
    // Owned by the consumer.
    bool in_chunk = false;
    std::size_t taken = 0;

    bool ended() const { return finished && full == 0; }
    void reset() {
      used = busy = finished = in_chunk = false;
      first = full = 0;
      index.reset();
      range.reset();
      failure = nullptr;
    }
  };
  struct job {
    lane* l = nullptr;
    bool next_input = false;
  };

  // Functions called by the consumer.

  bool take(lane& l, element& e) {
    if (!l.in_chunk) {
      std::unique_lock lock(mutex_);
      ready_.wait(lock, [&] { return l.full > 0 || l.finished; });
      if (l.ended()) return false;
      l.in_chunk = true;
      l.taken = 0;
    }
    chunk& from = l.chunks[l.first];
    element& taken = from.elements[l.taken++];
    if constexpr (std::is_trivially_copyable_v<element>)
      e = taken;
    else
      std::swap(e, taken);  // the thread reuses the memory of e
    if (l.taken == from.size) {
      l.in_chunk = false;
      {
        const std::lock_guard lock(mutex_);
        l.first = 1 - l.first;
        --l.full;
      }
      work_.notify_one();
    }
    return true;
  }
  void free(lane* l) {
    l->range.reset();
    {
      const std::lock_guard lock(mutex_);
      l->used = false;
    }
    work_.notify_one();
  }
  lane* next_lane() {
    std::unique_lock lock(mutex_);
    lane* found = nullptr;
    ready_.wait(lock, [&] { return (found = lane_of(next_)) != nullptr || no_more_inputs(); });
    if (found != nullptr) ++next_;
    return found;
  }
  void go_where_something_is_ready() {
    const auto place = [this](std::size_t steps) { return (cycle_.at() + steps) % places_.size(); };
    if (const lane* here = places_[place(0)]; here != nullptr && here->in_chunk) return;
    std::unique_lock lock(mutex_);
    std::size_t steps = 0;
    ready_.wait(lock, [&] {
      for (steps = 0; steps < places_.size(); ++steps) {
        const lane* there = places_[place(steps)];
        if (there != nullptr ? there->full > 0 || there->finished : !at_end_ && (lane_of(next_) || no_more_inputs())) return true;
      }
      return false;
    });
    if (steps > 0) cycle_.jump(place(steps));
  }
  // Called with the mutex held.
  lane* lane_of(std::size_t input) {
    for (lane& l : lanes_)
      if (l.used && l.input == input) return &l;
    return nullptr;
  }
  bool no_more_inputs() const { return input_at_end_ && next_ == inputs_; }

  // Functions run by the threads.

  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      job j;
      work_.wait(lock, [&] { return quit_ || (j = find_job()).l != nullptr; });
      if (quit_) return;
      lane& l = *j.l;
      l.busy = true;
      input_busy_ |= j.next_input;
      ++at_work_;
      chunk& to = l.chunks[(l.first + l.full) % 2];
      lock.unlock();
      bool goes_on = false;
      if (j.next_input)
        goes_on = read_input(l);
      else
        goes_on = fill(l, to);
      lock.lock();
      --at_work_;
      l.busy = false;
      if (j.next_input) {
        input_busy_ = false;
        input_at_end_ = !goes_on;
        l.used = goes_on || l.failure;
        l.finished = !goes_on;
        l.first = l.full = 0;
        if (l.used) l.input = inputs_++;
      } else {
        l.full += to.size > 0;
        l.finished = !goes_on;
      }
      ready_.notify_one();
      work_.notify_one();  // two jobs may have become possible, and this thread takes only one of them
      if (at_work_ == 0) idle_.notify_one();
    }
  }
  /// Called with the mutex held. First come lanes without elements, in the order of their ranges; then the next range; then lanes
  /// with one chunk.
  job find_job() {
    if (!running_) return {};
    lane *best = nullptr, *unused = nullptr;
    for (lane& l : lanes_) {
      if (!l.used && !l.busy) unused = &l;
      if (!l.used || l.busy || l.finished || l.full == 2) continue;
      if (best == nullptr || std::pair(l.full, l.input) < std::pair(best->full, best->input)) best = &l;
    }
    if (best != nullptr && best->full == 0) return {best};
    if (unused != nullptr && !input_at_end_ && !input_busy_) return {unused, true};
    return {best};
  }
  /// Reads the next element of V into the lane. False if there is none.
  bool read_input(lane& l) {
    STRATA_TRY {
      const std::lock_guard lock(base_mutex_);
      for (bool shown = false; !shown;) {
        if (l.index) detail::release(base_.rows(), *std::exchange(l.index, std::nullopt));
        if (!std::exchange(input_at_first_, false)) ++*input_.at;
        if (input_.done(base_)) return false;
        l.index = **input_.at;
        shown = unless_left_out([&] {
          detail::visit(base_.rows(), *l.index, [&](const shown_element& e) {
            if (l.from)
              detail::keep(e, *l.from);
            else
              l.from.emplace(detail::store(e));
          });
        });
      }
      return true;
    }
    STRATA_CATCH_ALL {
      l.failure = std::current_exception();
      return false;
    }
  }
  /// Reads the next elements of the lane's range. False at its end.
  bool fill(lane& l, chunk& to) {
    to.size = 0;
    STRATA_TRY {
      if (!l.range) {
        const auto& e = show<shown_element>::again(*l.from);
        l.range.emplace(detail::call(*f_, e), epoch_);
      }
      for (; to.size < chunk_size && !stop_.load(std::memory_order_relaxed); ++to.size)
        if (!l.range->next(to.elements[to.size])) return false;
      return true;
    }
    STRATA_CATCH(const std::exception& failure) {
      const std::lock_guard lock(base_mutex_);
      l.failure = std::make_exception_ptr(
          strata_error("interleave: " + detail::describe(base_.rows(), *l.index) + ": " + failure.what()));
    }
    STRATA_CATCH_ALL { l.failure = std::current_exception(); }
    return false;
  }

  mutable std::mutex base_mutex_;  // guards the view; locked after mutex_ if both are
  V base_;
  position<V> input_;
  bool input_at_first_ = true;

  function<F> f_;  // called by all threads at once
  interleave_cycle cycle_;
  bool deterministic_;
  std::size_t count_;
  int epoch_ = 0;

  std::mutex mutex_;
  std::condition_variable work_, ready_, idle_;  // for the threads; for the consumer; when no thread is at work
  std::vector<lane> lanes_;
  std::size_t inputs_ = 0;  // elements of V that have been read
  std::size_t at_work_ = 0;
  bool running_ = false, quit_ = false, input_busy_ = false, input_at_end_ = false;
  std::atomic<bool> stop_{false};  // checked in the middle of a chunk

  std::vector<lane*> places_;  // this and the members below are owned by the consumer
  std::size_t open_ = 0, next_ = 0;
  bool at_end_ = false;

  std::vector<std::thread> threads_;
};

/// interleave_source with threads. A copy has threads of its own.
template <element_view V, class F>
class parallel_interleave_source {
  using threads = interleave_threads<V, F>;

 public:
  using element = typename threads::element;

  parallel_interleave_source(V base, F f, interleave_options options, parallel p)
      : threads_(std::make_unique<threads>(std::move(base), function<F>(std::move(f)), interleave_cycle(options),
                                           options.deterministic, number_of_threads(options, p))),
        order_(threads_->cycle().order() + (options.deterministic ? "" : ", as they come")) {}
  parallel_interleave_source(parallel_interleave_source&&) = default;
  parallel_interleave_source& operator=(parallel_interleave_source&&) = default;
  parallel_interleave_source(const parallel_interleave_source& other)
      : threads_(other.threads_->another()), order_(other.order_) {}
  parallel_interleave_source& operator=(const parallel_interleave_source& other) {
    return *this = parallel_interleave_source(other);
  }

  void start(int epoch) { threads_->start(epoch); }
  bool next(element& e) { return threads_->next(e); }
  const V& base() const { return threads_->base(); }
  std::string order() const { return order_; }

 private:
  static std::size_t number_of_threads(interleave_options options, parallel p) {
    if (p.threads() > 0) return static_cast<std::size_t>(p.threads());
    const auto processors = static_cast<std::size_t>(std::max(1u, std::thread::hardware_concurrency()));
    return std::min(processors, interleave_cycle(options).places());
  }

  std::unique_ptr<threads> threads_;
  std::string order_;
};
}  // namespace detail

}  // namespace strata::data
