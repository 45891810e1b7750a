// A background thread makes the next batches while one is in use.
#pragma once
#include <algorithm>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <strata/base/atomic_wait.hpp>
#include <strata/base/error.hpp>
#include <strata/base/exceptions.hpp>
#include <strata/base/standard_ranges.hpp>
#include <strata/base/standard_thread.hpp>
#include <strata/concepts/batch_source.hpp>
#include <strata/data/core/batch_extent.hpp>
#include <strata/data/core/batch_stage.hpp>
#include <strata/data/core/closure.hpp>
#include <strata/data/core/parallel.hpp>
#include <strata/data/core/single_pass.hpp>
#include <type_traits>
#include <utility>
#include <vector>

namespace strata::data {

namespace detail {
/// The number of batches made ahead.
struct prefetch_depth {
  std::size_t at_first, most;
};
/// Replaces a source that cannot be copied.
struct no_copy_of_source {
  explicit no_copy_of_source(const auto&) {}
};
}  // namespace detail

/// Batches of V, made ahead by one thread that lives as long as the view. There is a ring of buffers: one is in use, the others
/// are full or being filled. Passes are numbered, so that a batch of an epoch that was left early is never mistaken for one of
/// the next epoch.
///
/// With autotune the ring grows as in tf.data: if it was full and is empty later, the thread is fast enough on average, and a
/// longer ring evens out its batches. A thread that is too slow never fills the ring, so the ring keeps its size.
template <std::ranges::view V>
  requires core::batch_source<V>
class prefetch_view : public detail::single_pass<prefetch_view<V>>,
                      public detail::batch_extent_of<V>,
                      public detail::form_of_batches<V> {
  friend detail::single_pass<prefetch_view>;
  static constexpr bool copies_source = std::copyable<V>;

 public:
  using value_type = typename V::value_type;

  prefetch_view(V base, std::size_t buffer_size) : prefetch_view(std::move(base), {buffer_size, buffer_size}) {}
  prefetch_view(V base, autotune_t) : prefetch_view(std::move(base), {2, most_ahead(core::batch_size_of(base))}) {}
  prefetch_view(prefetch_view&&) = default;
  prefetch_view& operator=(prefetch_view&&) = default;
  /// A copy has a thread of its own, which reads a copy of the source.
  prefetch_view(const prefetch_view& other)
    requires copies_source
      : prefetch_view(V(other.unread_), other.depth_) {
    next_pass_.from = other.next_pass_.from;
    if constexpr (detail::resumable<V>)
      if (!next_pass_.from && other.worker_->has_begun()) next_pass_.from = core::data_position{.epoch = other.where().epoch + 1};
  }
  prefetch_view& operator=(const prefetch_view& other)
    requires copies_source
  {
    return *this = prefetch_view(other);
  }

  /// The number of batches.
  std::size_t size() const
    requires detail::sized<V>
  {
    return base().size();
  }
  void set_epoch(int epoch)
    requires requires(V& v) { v.set_epoch(epoch); }
  {
    next_pass_ = {.from = {{.epoch = epoch}}};
  }
  /// Takes effect in the next pass.
  void only_rows(core::row_choice which)
    requires detail::has_only_rows<V>
  {
    wanted_rows_ = std::move(which);
  }
  auto stored() const
    requires detail::gives_indices<V>
  {
    return base().stored();
  }
  /// Takes effect in the next pass only.
  void by_index()
    requires detail::gives_indices<V>
  {
    by_index_ = true;
  }
  /// The position after the current batch; batches made ahead do not count.
  core::data_position where() const
    requires requires(const V& v) { v.where(); }
  {
    return next_pass_.from ? *next_pass_.from : worker_->current().where;
  }
  std::string describe(core::data_position after, int count, int n) const
    requires(copies_source && detail::describes<V>)
  {
    return unread_.describe(after, count, n);
  }
  /// The source, for access to members that no pass changes.
  const V& base() const { return worker_->source(); }
  /// The current number of batches that are made ahead.
  std::size_t buffer_size() const { return worker_->buffers() - 1; }
  void resume_at(core::data_position from)
    requires requires(V& v) { v.resume_at(from); }
  {
    next_pass_ = {.from = from};
  }

 private:
  using T = typename value_type::value_type;
  static constexpr std::size_t memory_of_autotune = std::size_t{256} << 20;
  static constexpr std::size_t most_ahead(int batch_size) {
    return std::clamp<std::size_t>(memory_of_autotune / (std::size_t(batch_size) * detail::numbers_of_sample<V> * sizeof(T)), 2,
                                   256);
  }

  prefetch_view(V base, detail::prefetch_depth depth)
      : detail::batch_extent_of<V>(core::batch_size_of(base)), unread_(base), depth_(depth) {
    if (depth.at_first == 0) throw_error("prefetch: buffer_size is 0, it must be at least 1");
    worker_ = std::make_unique<worker>(std::move(base), depth);
  }

  struct pass {
    std::optional<core::data_position> from;  // none: V counts its epochs
    core::row_choice wanted{};
    bool by_index = false;
  };
  struct slot {
    detail::buffer_of<V> buffer;
    core::samples<T> batch;  // of count 0 at the end of a pass
    core::data_position where;
    std::exception_ptr failure;
    std::uint32_t pass_number = 0;
    std::size_t next = 0;  // slot of the next batch
  };

  class worker {
   public:
    worker(V source, detail::prefetch_depth depth)
        : source_(std::move(source)), ring_(depth.most + 1), buffers_(static_cast<std::uint32_t>(depth.at_first + 1)) {}
    ~worker() {
      quit_.store(true, std::memory_order_relaxed);
      signal();
      if (thread_.joinable()) thread_.join();
    }

    /// Called by the consumer. Waits for the first batch of the pass, so that passes stay in order.
    void begin(const pass& wanted) {
      wanted_ = wanted;
      ++pass_number_;
      begun_.store(pass_number_, std::memory_order_release);
      signal();
      if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
      was_full_.store(false, std::memory_order_relaxed);
      take();
    }
    void next() {
      const bool has_to_wait = made_.load(std::memory_order_relaxed) - released_.load(std::memory_order_relaxed) <= 1;
      if (has_to_wait && was_full_.exchange(false, std::memory_order_relaxed)) {
        const std::uint32_t ahead = buffers_.load(std::memory_order_relaxed) - 1;
        buffers_.store(std::min(2 * ahead + 1, static_cast<std::uint32_t>(ring_.size())), std::memory_order_relaxed);
      }
      take();
    }
    slot& current() { return ring_[reading_]; }
    bool has_begun() const { return pass_number_ > 0; }
    /// Called by the consumer, even while the thread makes batches, for members that no pass changes: size, order and base, and
    /// stored(), which reads the rows and the atomic states of a cache.
    const V& source() const { return source_; }
    std::size_t buffers() const { return buffers_.load(std::memory_order_relaxed); }

   private:
    void take() {
      do {
        if (holds_one_) release();
        const std::uint32_t seen = released_.load(std::memory_order_relaxed);
        strata::detail::wait_while(made_, seen, std::memory_order_acquire);
        holds_one_ = true;
      } while (current().pass_number != pass_number_);
      if (current().failure) std::rethrow_exception(std::exchange(current().failure, nullptr));
    }
    void release() {
      holds_one_ = false;
      reading_ = current().next;
      released_.fetch_add(1, std::memory_order_release);
      signal();
    }
    void signal() {
      signals_.fetch_add(1, std::memory_order_release);
      strata::detail::wake_one(signals_);
    }

    void run() {
      std::uint32_t made = 0, number = 0;
      std::size_t writing = 0, buffers = this->buffers();
      bool at_work = false;
      for (;;) {
        const std::uint32_t seen = signals_.load(std::memory_order_acquire);
        if (quit_.load(std::memory_order_relaxed)) return;
        const bool starts = begun_.load(std::memory_order_acquire) != number;
        const bool full = made - released_.load(std::memory_order_acquire) == buffers;
        if (full) was_full_.store(true, std::memory_order_relaxed);
        if (full || !(starts || at_work)) {
          strata::detail::wait_while(signals_, seen, std::memory_order_relaxed);
          continue;
        }
        if (starts) number = begun_.load(std::memory_order_acquire);
        slot& s = ring_[writing];
        fill(s, starts);
        s.pass_number = number;
        at_work = s.batch.count > 0;
        if (++writing == buffers) {  // the ring can grow only here
          buffers = this->buffers();
          if (writing == buffers) writing = 0;
        }
        s.next = writing;
        made = made_.fetch_add(1, std::memory_order_release) + 1;  // a read-modify-write, see progress_counter::raise
        strata::detail::wake_one(made_);
      }
    }

    void fill(slot& s, bool starts) {
      s.batch = {};
      s.failure = nullptr;
      STRATA_TRY {
        if constexpr (detail::has_only_rows<V>)
          if (starts) source_.only_rows(wanted_.wanted);
        if constexpr (detail::gives_indices<V>)
          if (starts && wanted_.by_index) source_.by_index();
        if (starts && wanted_.from) order(*wanted_.from);
        if constexpr (requires { source_.fill(s.buffer); }) {  // without a copy
          if (starts) source_.start_epoch();
          s.batch = source_.fill(s.buffer);
        } else {
          if (starts)
            at_.emplace(std::ranges::begin(source_));
          else
            ++*at_;
          if (*at_ != std::ranges::end(source_)) s.batch = detail::copy_batch<V>(**at_, s.buffer, core::batch_size_of(source_));
        }
      }
      STRATA_CATCH_ALL { s.failure = std::current_exception(); }
      if constexpr (requires { source_.where(); }) s.where = source_.where();
    }
    void order(core::data_position from) {
      if constexpr (requires { source_.resume_at(from); })
        source_.resume_at(from);
      else if constexpr (requires { source_.set_epoch(from.epoch); })
        source_.set_epoch(from.epoch);
    }

    V source_;  // owned by the thread, except for source()
    std::optional<std::ranges::iterator_t<V>> at_;
    std::vector<slot> ring_;
    pass wanted_;  // written before begun_ is raised, read after

    std::uint32_t pass_number_ = 0;  // owned by the consumer, as the next two members
    std::size_t reading_ = 0;
    bool holds_one_ = false;

    alignas(64) std::atomic<std::uint32_t> made_{0};      // slots, by the thread
    alignas(64) std::atomic<std::uint32_t> released_{0};  // slots, by the consumer
    std::atomic<std::uint32_t> begun_{0};                 // the latest pass
    std::atomic<std::uint32_t> signals_{0};               // raised by the consumer when the two above or quit_ change
    std::atomic<std::uint32_t> buffers_;                  // in the ring, by the consumer
    std::atomic<bool> was_full_{false};                   // set by the thread, cleared by the consumer
    std::atomic<bool> quit_{false};
    std::thread thread_;
  };

  void start() {
    next_pass_.wanted = wanted_rows_, next_pass_.by_index = std::exchange(by_index_, false);
    worker_->begin(std::exchange(next_pass_, {}));
  }
  const core::samples<T>& read() const { return worker_->current().batch; }
  void next() {
    if (!done()) worker_->next();
  }
  bool done() const { return worker_->current().batch.count == 0; }

  [[no_unique_address]] std::conditional_t<copies_source, V, detail::no_copy_of_source> unread_;  // for copies of the view
  detail::prefetch_depth depth_;
  std::unique_ptr<worker> worker_;  // does not move with the view: the thread refers to it
  pass next_pass_;
  core::row_choice wanted_rows_;
  bool by_index_ = false;
};

namespace detail {
struct prefetch_fn {
  template <std::ranges::range V, class Depth = std::size_t>
  auto operator()(V view, Depth depth = 2) const {
    constexpr bool right_view = is_batches<V>;
    static_assert(right_view, "data::prefetch takes a view of batches: put it after batch");
    if constexpr (batches<V>) return prefetch_view<V>(std::move(view), depth);
  }
  constexpr auto operator()(std::size_t buffer_size = 2) const { return detail::partial(*this, buffer_size); }
  constexpr auto operator()(autotune_t) const { return detail::partial(*this, autotune); }
};
}  // namespace detail

/// `prefetch()`, `prefetch(4)`, `prefetch(autotune)`: one background thread makes up to buffer_size batches ahead. With autotune
/// their number starts at 2, and doubles whenever no batch is ready although the ring has been full before, up to 256 batches or
/// 256 MB. in, out: batch_source.
/// Input range, sized if the view is. A copy, which must come from the thread that reads the view, has a thread of its own: both
/// may be read at the same time. A batch lives until the next ++. begin() or ++ rethrows an exception of an earlier stage
/// unchanged, and the next begin() starts the next epoch. Nothing is allocated once each buffer has been used.
/// Throws strata_error if buffer_size is 0. https://www.tensorflow.org/api_docs/python/tf/data/Dataset#prefetch
inline constexpr closure<detail::prefetch_fn> prefetch{};

}  // namespace strata::data
