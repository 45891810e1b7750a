// A view as a plain range of values, for loops and other ranges of the user.
#pragma once
#include <cstddef>
#include <optional>
#include <ranges>
#include <strata/data/core/closure.hpp>
#include <strata/data/core/element.hpp>
#include <strata/data/core/sample_view.hpp>
#include <strata/data/core/single_pass.hpp>
#include <strata/data/views/element_reader.hpp>
#include <utility>

namespace strata::data {

template <element_view V>
class elements_view : public detail::single_pass<elements_view<V>> {
  friend detail::single_pass<elements_view>;

 public:
  explicit elements_view(V base) : base_(std::move(base)) {}

  std::size_t size() const
    requires detail::sized<V>
  {
    return base_.size();
  }
  void set_epoch(int epoch) { epoch_ = epoch; }
  const V& base() const { return base_; }

 private:
  struct state {
    detail::element_reader<V> reader;
    std::optional<detail::kept_t<V>> current;
    bool done = true;
  };

  void start() {
    state_.reader.start(base_, epoch_++);
    next();
  }
  const detail::kept_t<V>& read() const { return *state_.current; }
  void next() {
    state_.done = true;  // also if the next element throws
    state_.done = !state_.reader.next(base_, [this](const detail::element_t<rows_t<V>>& e) {
      if (state_.current)
        detail::keep(e, *state_.current);
      else
        state_.current.emplace(detail::store(e));
    });
  }
  bool done() const { return state_.done; }

  V base_;
  int epoch_ = 0;
  detail::own_state<state> state_;
};

namespace detail {
struct elements_fn {
  template <std::ranges::range V>
  auto operator()(V view) const {
    constexpr bool fits = element_view<V>;
    static_assert(fits, "data::elements takes a view of samples or elements: data::unbatch makes samples of batches");
    if constexpr (fits) return elements_view<V>(std::move(view));
  }
};
}  // namespace detail

/// `for (auto [x, label] : train | data::elements)`: values that own their memory, for example data::sample of stored tensors, in
/// the order of the view. Each begin() starts the next epoch. An input range, also for the views of the standard:
/// `train | data::elements | std::views::take(3)`; data::from_range leads back. Sized if the view is. A reference to an element
/// lives until the next ++.
/// cf. https://www.tensorflow.org/api_docs/python/tf/data/Dataset#as_numpy_iterator
inline constexpr closure<detail::elements_fn> elements{};

}  // namespace strata::data
