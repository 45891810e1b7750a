// A background thread that makes the next batches while one is in use.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <ranges>
#include <strata/base/error.hpp>
#include <strata/concepts/batch_source.hpp>
#include <strata/data/adaptor.hpp>
#include <strata/data/batch_buffer.hpp>
#include <strata/data/single_pass.hpp>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace strata::data {

/// Batches of V, made ahead by one thread that lives as long as the view. There is a ring of buffers: one is in use, `ahead` are
/// made or being made. Each pass has a number, so that an epoch which was left early cannot leak batches into the next one.
template <std::ranges::view V>
  requires batch_source<V>
class prefetch_view : public detail::single_pass<prefetch_view<V>> {
  friend detail::single_pass<prefetch_view>;

 public:
  using value_type = typename V::value_type;
  static constexpr int batch_size = V::batch_size;
  static constexpr shape sample_shape = V::sample_shape;
  static constexpr label_kind labels = V::labels;
  static constexpr shape target_shape = V::target_shape;

  prefetch_view(V base, std::size_t ahead) {
    if (ahead == 0) throw error("prefetch: buffer_size is 0, it must be at least 1");
    if constexpr (std::ranges::sized_range<V>) size_ = static_cast<std::size_t>(std::ranges::size(base));
    worker_ = std::make_unique<worker>(std::move(base), ahead + 1);
  }

  /// The number of batches.
  std::size_t size() const
    requires std::ranges::sized_range<V>
  {
    return size_;
  }
  void set_epoch(int epoch)
    requires requires(V& v) { v.set_epoch(epoch); }
  {
    next_pass_ = {.epoch = epoch};
  }
  void resume_at(int epoch, std::size_t batches)
    requires requires(V& v) { v.resume_at(epoch, batches); }
  {
    next_pass_ = {.epoch = epoch, .batches = batches};
  }

 private:
  using T = std::remove_cvref_t<decltype(*value_type::x)>;

  struct pass {
    std::optional<int> epoch;  // none: V counts by itself
    std::size_t batches = 0;
  };
  struct slot {
    batch_buffer<T> buffer;
    samples<T> batch;  // of count 0 at the end of a pass
    std::exception_ptr failure;
    std::uint32_t pass_number = 0;
  };

  class worker {
   public:
    worker(V source, std::size_t buffers) : source_(std::move(source)), ring_(buffers) {}
    ~worker() {
      quit_.store(true, std::memory_order_relaxed);
      signal();
      if (thread_.joinable()) thread_.join();
    }

    /// For the consumer. Returns when the first batch of the pass is there, so that passes cannot overtake one another.
    void begin(const pass& wanted) {
      wanted_ = wanted;
      ++pass_number_;
      begun_.store(pass_number_, std::memory_order_release);
      signal();
      if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
      next();
    }
    void next() {
      do {
        if (holds_one_) release();
        const std::uint32_t seen = released_.load(std::memory_order_relaxed);
        made_.wait(seen, std::memory_order_acquire);
        holds_one_ = true;
      } while (current().pass_number != pass_number_);
      if (current().failure) std::rethrow_exception(std::exchange(current().failure, nullptr));
    }
    slot& current() { return ring_[reading_]; }

   private:
    void release() {
      holds_one_ = false;
      reading_ = (reading_ + 1) % ring_.size();
      released_.fetch_add(1, std::memory_order_release);
      signal();
    }
    void signal() {
      signals_.fetch_add(1, std::memory_order_release);
      signals_.notify_one();
    }

    void run() {
      std::uint32_t made = 0, number = 0;
      std::size_t writing = 0;
      bool at_work = false;
      for (;;) {
        const std::uint32_t seen = signals_.load(std::memory_order_acquire);
        if (quit_.load(std::memory_order_relaxed)) return;
        const bool starts = begun_.load(std::memory_order_acquire) != number;
        const bool full = made - released_.load(std::memory_order_acquire) == ring_.size();
        if (full || !(starts || at_work)) {
          signals_.wait(seen, std::memory_order_relaxed);
          continue;
        }
        if (starts) number = begun_.load(std::memory_order_acquire);
        slot& s = ring_[writing];
        fill(s, starts);
        s.pass_number = number;
        at_work = s.batch.count > 0;
        writing = (writing + 1) % ring_.size();
        made_.store(++made, std::memory_order_release);
        made_.notify_one();
      }
    }

    void fill(slot& s, bool starts) {
      s.batch = {};
      s.failure = nullptr;
      try {
        if (starts && wanted_.epoch) order(*wanted_.epoch, wanted_.batches);
        if constexpr (requires { source_.fill(s.buffer); }) {  // no copy
          if (starts) source_.start_epoch();
          s.batch = source_.fill(s.buffer);
        } else {
          if (starts)
            at_.emplace(std::ranges::begin(source_));
          else
            ++*at_;
          if (*at_ != std::ranges::end(source_)) s.batch = copy(**at_, s.buffer);
        }
      } catch (...) {
        s.failure = std::current_exception();
      }
    }
    void order(int epoch, std::size_t batches) {
      if constexpr (requires { source_.resume_at(epoch, batches); })
        source_.resume_at(epoch, batches);
      else if constexpr (requires { source_.set_epoch(epoch); })
        source_.set_epoch(epoch);
    }
    static samples<T> copy(const samples<T>& from, batch_buffer<T>& to) {
      constexpr std::size_t x_size{sample_shape.size()}, y_size{target_shape.size()}, most{batch_size};
      const std::size_t n = static_cast<std::size_t>(from.count);
      to.prepare(most * x_size, labels == label_kind::sparse ? most : 0, labels == label_kind::dense ? most * y_size : 0);
      std::copy_n(from.x, n * x_size, to.x());
      samples<T> result{.x = to.x(), .count = from.count};
      if constexpr (labels == label_kind::sparse) result.labels = std::copy_n(from.labels, n, to.labels()) - from.count;
      if constexpr (labels == label_kind::dense)
        result.targets = std::copy_n(from.targets, n * y_size, to.targets()) - n * y_size;
      return result;
    }

    V source_;  // the thread's
    std::optional<std::ranges::iterator_t<V>> at_;
    std::vector<slot> ring_;
    pass wanted_;  // written before begun_ is raised, read after

    std::uint32_t pass_number_ = 0;  // the consumer's
    std::size_t reading_ = 0;
    bool holds_one_ = false;

    alignas(64) std::atomic<std::uint32_t> made_{0};      // slots, by the thread
    alignas(64) std::atomic<std::uint32_t> released_{0};  // slots, by the consumer
    std::atomic<std::uint32_t> begun_{0};                 // the latest pass
    std::atomic<std::uint32_t> signals_{0};               // raised by the consumer after any change of the two above and of quit_
    std::atomic<bool> quit_{false};
    std::thread thread_;
  };

  void start() { worker_->begin(std::exchange(next_pass_, {})); }
  const samples<T>& read() const { return worker_->current().batch; }
  void next() {
    if (!done()) worker_->next();
  }
  bool done() const { return worker_->current().batch.count == 0; }

  std::unique_ptr<worker> worker_;  // does not move with the view: the thread refers to it
  pass next_pass_;
  std::size_t size_ = 0;
};

namespace detail {
struct prefetch_fn {
  template <std::ranges::range V>
  auto operator()(V view, std::size_t buffer_size = 2) const {
    static_assert(std::ranges::view<V> && batch_source<V>, "data::prefetch takes a view of batches: put it after batch");
    if constexpr (std::ranges::view<V> && batch_source<V>) return prefetch_view<V>(std::move(view), buffer_size);
  }
  constexpr auto operator()(std::size_t buffer_size = 2) const {
    return adaptor{[buffer_size]<class V>(V&& view) { return prefetch_fn{}(std::forward<V>(view), buffer_size); }};
  }
};
}  // namespace detail

/// `prefetch()`, `prefetch(4)`: up to buffer_size batches are made ahead by one background thread. in, out: batch_source.
/// Input range, sized if the view is; move-only. A batch lives until the next ++. An exception of a view before it arrives at
/// begin() or ++, and the next begin() starts the next epoch. Nothing is allocated once each buffer has been used.
/// Throws strata::error if buffer_size is 0. https://www.tensorflow.org/api_docs/python/tf/data/Dataset#prefetch
inline constexpr adaptor<detail::prefetch_fn> prefetch{};

}  // namespace strata::data
