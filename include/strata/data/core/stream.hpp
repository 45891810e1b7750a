// Elements that come one after the other and can be read only once. They wait in a pool until later stages release them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <strata/data/core/rows_view.hpp>
#include <strata/data/core/single_pass.hpp>
#include <string>
#include <utility>
#include <vector>

namespace strata::data {

/// The source of a stream. start(epoch) goes to the first element; next(e) writes the next one into e, whose memory it may reuse,
/// or returns false at the end. Optional members: order() and base(), see element_view.
template <class S>
concept stream_source = std::copyable<S> && requires(S& source, typename S::element& e, int epoch) {
  source.start(epoch);
  { source.next(e) } -> std::same_as<bool>;
};

namespace detail {
/// The elements that are in use at once, for example those in the window of shuffle and in a batch.
template <class E>
class element_pool {
 public:
  std::uint32_t acquire() {
    if (free_.empty()) {
      slots_.emplace_back();
      free_.reserve(slots_.size());  // so that release does not allocate
      return static_cast<std::uint32_t>(slots_.size() - 1);
    }
    const std::uint32_t place = free_.back();
    free_.pop_back();
    return place;
  }
  std::uint32_t put(const E& e) {
    const std::uint32_t place = acquire();
    element(place) = e;
    return place;
  }
  void release(std::uint32_t place) { free_.push_back(place); }
  void release_all() {
    free_.clear();
    for (std::size_t place = slots_.size(); place > 0; --place) free_.push_back(static_cast<std::uint32_t>(place - 1));
  }
  E& element(std::uint32_t place) { return slots_[place].element; }
  std::size_t& ordinal(std::uint32_t place) { return slots_[place].ordinal; }

 private:
  struct slot {
    E element{};
    std::size_t ordinal = 0;
  };
  std::deque<slot> slots_;
  std::vector<std::uint32_t> free_;
};
}  // namespace detail

namespace detail {
/// Elements in a pool; the row of an index is a slot of the pool.
template <class E>
class stream_rows : public elements_of<stream_rows<E>, E> {
 public:
  static constexpr row_properties properties{};

  const E& get(sample_index i) const { return pool_->element(i.row); }
  void release(sample_index i) const { pool_->release(i.row); }
  void release_all() const { pool_->release_all(); }
  std::size_t ordinal(sample_index i) const { return pool_->ordinal(i.row); }
  std::string describe(sample_index i) const {
    if constexpr (requires(const E& e) { e.describe(); })
      return get(i).describe();
    else
      return "sample " + std::to_string(ordinal(i));
  }

  element_pool<E>& pool() const { return *pool_; }

 private:
  std::shared_ptr<element_pool<E>> pool_ = std::make_shared<element_pool<E>>();
};
}  // namespace detail

/// The elements of a source in its order. Input range without a size. A copy reads the source independently.
template <class Source>
class stream_view : public detail::single_pass<stream_view<Source>> {
  static constexpr bool is_stream_source = stream_source<Source>;
  static_assert(is_stream_source,
                "the source of a stream_view is copyable and has `element`, start(epoch), and next(element), which returns bool");
  friend detail::single_pass<stream_view>;

 public:
  static constexpr view_properties properties{};

  explicit stream_view(Source source) : source_(std::move(source)) {}
  stream_view(stream_view&&) = default;
  stream_view& operator=(stream_view&&) = default;
  stream_view(const stream_view& other) : source_(other.source_), epoch_(other.epoch_) {}
  stream_view& operator=(const stream_view& other) { return *this = stream_view(other); }

  const detail::stream_rows<typename Source::element>& rows() const { return rows_; }
  void set_epoch(int epoch) { epoch_ = epoch; }
  std::string order() const {
    if constexpr (requires(const Source& source) { source.order(); })
      return source_.order();
    else
      return "stream";
  }
  const Source& source() const { return source_; }
  Source& source() { return source_; }

 private:
  struct state {
    sample_index current;
    std::size_t read = 0;
    bool done = true;
  };

  void start() {
    state_.read = 0;
    state_.current.epoch = static_cast<std::uint32_t>(epoch_);
    source_.start(epoch_++);
    next();
  }
  sample_index read() const { return state_.current; }
  void next() {
    auto& pool = rows_.pool();
    const std::uint32_t slot = pool.acquire();
    state_.done = !source_.next(pool.element(slot));
    if (state_.done) return pool.release(slot);
    pool.ordinal(slot) = state_.read++;
    state_.current.row = slot;
  }
  bool done() const { return state_.done; }

  Source source_;
  detail::stream_rows<typename Source::element> rows_;
  int epoch_ = 0;
  detail::own_state<state> state_;
};

}  // namespace strata::data
