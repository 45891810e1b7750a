// A part of a view: the result of take and skip, for samples, elements and batches.
#pragma once
#include <algorithm>
#include <cstddef>
#include <limits>
#include <strata/base/standard_ranges.hpp>
#include <strata/concepts/batch_source.hpp>
#include <strata/data/core/addressable.hpp>
#include <strata/data/core/batch_stage.hpp>
#include <strata/data/core/index_stage.hpp>
#include <strata/data/core/sample_view.hpp>
#include <string>
#include <utility>

namespace strata::data {

namespace detail {
/// The range of `count` elements after the first `first`.
struct slice {
  static constexpr std::size_t all = std::numeric_limits<std::size_t>::max();

  std::size_t first = 0, count = all;

  /// Its number of elements in a view of n elements.
  std::size_t size(std::size_t n) const { return std::min(n - std::min(n, first), count); }
  std::string order() const {
    return count == all ? "skip(" + std::to_string(first) + ")" : "take(" + std::to_string(count) + ")";
  }
};
}  // namespace detail

/// A part of a random-access view: random access and sized.
template <detail::addressable V>
class slice_view : public std::ranges::view_base {
 public:
  static constexpr view_properties properties{};

  slice_view(V base, detail::slice part) : base_(std::move(base)), part_(part) {}

  auto begin() const { return at(std::min(part_.first, base_.size())); }
  auto end() const { return at(std::min(part_.first, base_.size()) + size()); }
  std::size_t size() const { return part_.size(base_.size()); }
  decltype(auto) rows() const { return base_.rows(); }
  void set_epoch(int epoch) { base_.set_epoch(epoch); }
  std::string order() const { return part_.order(); }
  const V& base() const { return base_; }
  V& base() { return base_; }

 private:
  auto at(std::size_t place) const {
    return std::ranges::begin(base_) + static_cast<std::ranges::range_difference_t<const V>>(place);
  }

  V base_;
  detail::slice part_;
};

/// A part of any other view: an input range, sized if the view is.
template <element_view V>
class single_pass_slice_view : public detail::index_stage<single_pass_slice_view<V>, V> {
  friend detail::single_pass<single_pass_slice_view>;

 public:
  single_pass_slice_view(V base, detail::slice part)
      : detail::index_stage<single_pass_slice_view, V>(std::move(base)), part_(part) {}

  std::size_t size() const
    requires detail::sized<V>
  {
    return part_.size(this->base_.size());
  }
  std::string order() const { return part_.order(); }

 private:
  struct state : detail::position<V> {
    std::size_t left = 0;
  };

  void start() {
    state_.start(this->base_);
    state_.left = part_.count;
    for (std::size_t i = 0; i < part_.first && !done(); ++i, ++*state_.at) detail::release(this->rows(), **state_.at);
  }
  sample_index read() const { return **state_.at; }
  void next() {
    if (--state_.left != 0) ++*state_.at;  // never reads the element after the last one
  }
  bool done() { return state_.left == 0 || state_.done(this->base_); }

  detail::slice part_;
  detail::own_state<state> state_;
};

/// A part of the batches of B. If B can resume, skipped batches are not made. Models batch_source; sized if B is.
template <detail::batches B>
class batch_slice_view : public detail::batch_stage<batch_slice_view<B>, B> {
  using stage = detail::batch_stage<batch_slice_view, B>;
  friend stage;

 public:
  batch_slice_view(B base, detail::slice part) : stage(std::move(base)), part_(part) {}

  std::size_t size() const
    requires detail::sized<B>
  {
    return part_.size(this->base_.size());
  }
  std::string order() const { return detail::order_of_batches(this->base_, part_.order()); }
  std::string describe(core::data_position after, int count, int n) const
    requires detail::describes<B>
  {
    after.samples += this->samples_in(part_.first);
    return stage::describe(after, count, n);
  }

 private:
  /// Skipped samples do not count, so that later stages can count batches.
  core::data_position position_after(core::data_position of_base) const {
    of_base.samples -= std::min(of_base.samples, this->samples_in(part_.first));
    return of_base;
  }
  void start_pass() {
    core::data_position from = this->from();
    left_ = part_.count - std::min(part_.count, this->batches_in(from.samples));
    to_skip_ = 0;
    if constexpr (detail::resumable<B>)
      from.samples += this->samples_in(part_.first);
    else
      to_skip_ = part_.first;
    this->start_base(from);
  }
  auto make(typename stage::buffer& out) {
    for (; to_skip_ > 0; --to_skip_)
      if (this->next_of_base(out).count == 0) return typename stage::value_type{};
    if (left_ == 0) return typename stage::value_type{};
    --left_;
    return this->next_of_base(out);
  }

  detail::slice part_;
  std::size_t left_ = 0, to_skip_ = 0;
};

namespace detail {
/// Makes the slice for any kind of view.
template <class V>
auto sliced(V view, slice part) {
  if constexpr (addressable<V>)
    return slice_view<V>(std::move(view), part);
  else if constexpr (element_view<V>)
    return single_pass_slice_view<V>(std::move(view), part);
  else
    return batch_slice_view<V>(std::move(view), part);
}
}  // namespace detail

}  // namespace strata::data
