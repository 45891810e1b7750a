// Selects the samples or elements that a user's function accepts.
#pragma once
#include <concepts>
#include <ranges>
#include <strata/data/core/closure.hpp>
#include <strata/data/core/element.hpp>
#include <strata/data/core/function.hpp>
#include <strata/data/core/index_stage.hpp>
#include <strata/data/core/left_out.hpp>
#include <string>
#include <type_traits>
#include <utility>

namespace strata::data {

template <element_view V, class F>
class filter_view : public detail::index_stage<filter_view<V, F>, V> {
  friend detail::single_pass<filter_view>;

 public:
  filter_view(V base, F f) : detail::index_stage<filter_view, V>(std::move(base)), f_(std::move(f)) {}

  std::string order() const { return "filter"; }

 private:
  void start() {
    state_.start(this->base_);
    find();
  }
  sample_index read() const { return **state_.at; }
  void next() {
    ++*state_.at;
    find();
  }
  bool done() { return state_.done(this->base_); }

  void find() {
    for (; !done(); ++*state_.at) {
      const sample_index i = **state_.at;
      bool keeps = false;
      detail::unless_left_out(
          [&] { detail::call("filter", this->rows(), i, *f_, [&](const auto& kept) { keeps = static_cast<bool>(kept); }); });
      if (keeps) return;
      detail::release(this->rows(), i);
    }
  }

  detail::function<F> f_;
  detail::own_state<detail::position<V>> state_;
};

namespace detail {
struct filter_fn {
  template <std::ranges::range V, class F>
  auto operator()(V view, F f) const {
    constexpr bool right_view = is_element_view<V>;
    static_assert(right_view, "data::filter takes a view of samples or elements: put it before batch");
    if constexpr (element_view<V>) {
      constexpr bool fits = takes<const F, element_t<rows_t<V>>>;
      static_assert(fits, "the function of data::filter takes x, or x and y of samples with labels, or an element");
      if constexpr (fits) return filter_view<V, F>(std::move(view), std::move(f));
    }
  }
  template <class F>
  constexpr auto operator()(F f) const {
    return detail::partial(*this, std::move(f));
  }
};
}  // namespace detail

/// `filter([](auto x, int label) { return label != 0; })`: keeps a sample if f(x) or f(x, y), or an element if f(element) is
/// true. Input range without a size. An exception of f arrives as strata_error that names the sample.
/// https://www.tensorflow.org/api_docs/python/tf/data/Dataset#filter
inline constexpr detail::filter_fn filter{};

}  // namespace strata::data
