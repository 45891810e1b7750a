// Elements with their place in the epoch.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <ranges>
#include <strata/base/text.hpp>
#include <strata/data/core/addressable.hpp>
#include <strata/data/core/closure.hpp>
#include <strata/data/core/element.hpp>
#include <strata/data/core/element_pair.hpp>
#include <strata/data/core/index_stage.hpp>
#include <strata/data/core/indexed_view.hpp>
#include <strata/data/core/rows_view.hpp>
#include <strata/data/core/single_pass.hpp>
#include <strata/data/core/stream.hpp>
#include <string>
#include <utility>

namespace strata::data {

namespace detail {
struct counted_index {
  sample_index index;
  std::size_t count = 0;
};

/// Rows of a random-access view: the count is the place.
template <addressable V>
class enumerated_places {
 public:
  using base_rows = rows_t<V>;

  explicit enumerated_places(V base) : base_(std::move(base)) {}

  std::size_t size() const { return base_.size(); }
  counted_index counted(sample_index i) const { return {index_at(base_, i.row, i.epoch), i.row}; }
  std::string order() const { return order_of(base_); }
  const base_rows& base() const { return base_.rows(); }

 private:
  V base_;
};

/// Rows of any other view: indices in use are stored in a pool with their counts.
template <class Rows>
class enumerated_pool {
 public:
  using base_rows = Rows;

  explicit enumerated_pool(Rows base) : base_(std::move(base)) {}

  sample_index put(counted_index i) const { return {pool_->put(i), i.index.epoch}; }
  counted_index counted(sample_index i) const { return pool_->element(i.row); }
  void release(sample_index i) const {
    detail::release(base_, counted(i).index);
    pool_->release(i.row);
  }
  void release_all() const {
    detail::release_all(base_);
    pool_->release_all();
  }
  const Rows& base() const { return base_; }

 private:
  Rows base_;
  std::shared_ptr<element_pool<counted_index>> pool_ = std::make_shared<element_pool<counted_index>>();
};

template <class Indices>
using enumerated = element_pair<std::int64_t, element_t<typename Indices::base_rows>>;

template <class Indices>
class enumerated_rows : public Indices, public elements_of<enumerated_rows<Indices>, enumerated<Indices>> {
 public:
  using element = enumerated<Indices>;
  static constexpr row_properties properties = around(Indices::base_rows::properties);

  enumerated_rows(Indices indices, std::int64_t start) : Indices(std::move(indices)), start_(start) {}

  template <class F>
  decltype(auto) visit(sample_index i, F&& f) const {
    const counted_index n = this->counted(i);
    return detail::visit(this->base(), n.index, [&](const element_t<typename Indices::base_rows>& e) -> decltype(auto) {
      return f(element{start_ + static_cast<std::int64_t>(n.count), e});
    });
  }
  std::size_t ordinal(sample_index i) const { return detail::ordinal(this->base(), this->counted(i).index); }
  std::string describe(sample_index i) const { return detail::describe(this->base(), this->counted(i).index); }
  int parallelism() const { return detail::parallelism(this->base()); }
  auto weight(sample_index i) const
    requires has_weight<typename Indices::base_rows>
  {
    return this->base().weight(this->counted(i).index);
  }

  std::int64_t start() const { return start_; }
  std::string order() const {
    const std::string name = strata::detail::text_of({"enumerate(", start_, ")"});
    if constexpr (requires(const Indices& indices) { indices.order(); })
      return Indices::order() + " | " + name;
    else
      return name;
  }

 private:
  std::int64_t start_;
};
}  // namespace detail

/// An input range. Sized if the view is.
template <element_view V>
class enumerate_view : public detail::single_pass<enumerate_view<V>> {
  using rows_type = detail::enumerated_rows<detail::enumerated_pool<rows_t<V>>>;
  friend detail::single_pass<enumerate_view>;

 public:
  static constexpr view_properties properties{};

  enumerate_view(V base, std::int64_t start)
      : base_(std::move(base)), rows_(detail::enumerated_pool<rows_t<V>>(base_.rows()), start) {}
  enumerate_view(enumerate_view&&) = default;
  enumerate_view& operator=(enumerate_view&&) = default;
  enumerate_view(const enumerate_view& other) : enumerate_view(other.base_, other.rows_.start()) {}  // with a pool of its own
  enumerate_view& operator=(const enumerate_view& other) { return *this = enumerate_view(other); }

  std::size_t size() const
    requires detail::sized<V>
  {
    return base_.size();
  }
  const rows_type& rows() const { return rows_; }
  void set_epoch(int epoch) { base_.set_epoch(epoch); }
  std::string order() const { return rows_.order(); }
  const V& base() const { return base_; }

 private:
  struct state : detail::position<V> {
    std::size_t count = 0;
    sample_index current;
  };

  void start() {
    state_.start(base_);
    state_.count = 0;
    put();
  }
  sample_index read() const { return state_.current; }
  void next() {
    ++*state_.at;
    ++state_.count;
    put();
  }
  bool done() { return state_.done(base_); }

  void put() {
    if (!done()) state_.current = rows_.put({**state_.at, state_.count});
  }

  V base_;
  rows_type rows_;
  detail::own_state<state> state_;
};

namespace detail {
struct enumerate_fn {
  template <std::ranges::range V>
  auto operator()(V view, std::int64_t start = 0) const {
    constexpr bool fits = element_view<V>;
    static_assert(fits, "data::enumerate takes a view of samples or elements: put it before batch");
    if constexpr (addressable<V>)
      return indexed_view("enumerate", enumerated_rows(enumerated_places<V>(std::move(view)), start));
    else if constexpr (element_view<V>)
      return enumerate_view<V>(std::move(view), start);
  }
  constexpr auto operator()(std::int64_t start = 0) const { return detail::partial(*this, start); }
};
}  // namespace detail

/// `enumerate()`, `enumerate(100)`: std::pair of a std::int64_t, which counts from 0 or 100, and the element. A map after it
/// takes f(index, element) or f(index, x, y). Elements are counted in the order in which they are read: after shuffle, element 0
/// differs from epoch to epoch. Category and size are those of the view.
/// https://www.tensorflow.org/api_docs/python/tf/data/Dataset#enumerate
inline constexpr detail::enumerate_fn enumerate{};

}  // namespace strata::data
