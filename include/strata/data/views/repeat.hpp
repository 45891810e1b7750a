// Several passes over a view as one epoch.
#pragma once
#include <cstddef>
#include <strata/base/error.hpp>
#include <strata/base/text.hpp>
#include <strata/data/core/closure.hpp>
#include <strata/data/core/index_stage.hpp>
#include <strata/data/views/batch_repeat.hpp>
#include <string>
#include <utility>

namespace strata::data {

template <element_view V>
class repeat_view : public detail::index_stage<repeat_view<V>, V> {
  using stage = detail::index_stage<repeat_view, V>;
  friend detail::single_pass<repeat_view>;

 public:
  repeat_view(V base, int count) : stage(std::move(base)), count_(detail::checked_repeat_count(count)) {}

  std::size_t size() const
    requires detail::sized<V>
  {
    return static_cast<std::size_t>(count_) * this->base_.size();
  }
  /// Epoch e consists of the epochs e * count ... e * count + count - 1 of the view before it.
  void set_epoch(int epoch) { epoch_ = epoch; }
  std::string order() const { return strata::detail::text_of({"repeat(", count_, ")"}); }

 private:
  struct state : detail::position<V> {
    int epoch = 0, pass = 0;
  };

  void start() {
    state_.epoch = epoch_++;
    state_.pass = 0;
    start_pass();
  }
  sample_index read() const { return **state_.at; }
  void next() {
    ++*state_.at;
    if (state_.done(this->base_) && state_.pass + 1 < count_) {
      ++state_.pass;
      start_pass();
    }
  }
  bool done() { return state_.done(this->base_); }

  void start_pass() {
    this->base_.set_epoch(state_.epoch * count_ + state_.pass);
    state_.start(this->base_);
  }

  int count_, epoch_ = 0;
  detail::own_state<state> state_;
};

namespace detail {
struct repeat_fn {
  template <class V>
  auto operator()(V view, int count) const {
    constexpr bool right_view = is_element_view<V> || is_batches<V>;
    static_assert(right_view, "data::repeat takes a view of samples, elements or batches");
    if constexpr (element_view<V>)
      return repeat_view<V>(std::move(view), count);
    else if constexpr (batches<V>)
      return batch_repeat_view<V>(std::move(view), count);
  }
  constexpr auto operator()(int count) const { return detail::partial(*this, count); }
};
}  // namespace detail

/// `count` passes over samples, elements or batches as one. Each is an epoch of the views before it, so a shuffle before it has
/// another order in each pass. Input range; sized if the view is. Throws strata_error if count < 1.
/// https://www.tensorflow.org/api_docs/python/tf/data/Dataset#repeat
inline constexpr detail::repeat_fn repeat{};

}  // namespace strata::data
