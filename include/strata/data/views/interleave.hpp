// Makes a range of elements from each element; several ranges are read in turn.
#pragma once
#include <cstddef>
#include <exception>
#include <optional>
#include <ranges>
#include <strata/base/error.hpp>
#include <strata/base/exceptions.hpp>
#include <strata/data/core/closure.hpp>
#include <strata/data/core/element.hpp>
#include <strata/data/core/function.hpp>
#include <strata/data/core/index_stage.hpp>
#include <strata/data/core/left_out.hpp>
#include <strata/data/core/parallel.hpp>
#include <strata/data/core/single_pass.hpp>
#include <strata/data/core/stage_stream.hpp>
#include <strata/data/views/inner_reader.hpp>
#include <strata/data/views/interleave_cycle.hpp>
#include <strata/data/views/parallel_interleave.hpp>
#include <string>
#include <utility>
#include <vector>

namespace strata::data {

namespace detail {
/// The elements of the ranges that f makes of the elements of V.
template <element_view V, class F>
class interleave_source {
  using reader = inner_reader<mapped_t<F, rows_t<V>>>;

 public:
  using element = typename reader::element;

  interleave_source(const char* stage, V base, F f, interleave_cycle cycle)
      : stage_(stage), base_(std::move(base)), f_(std::move(f)), cycle_(cycle) {}

  void start(int epoch) {
    cycle_.start();
    if (state_.places.empty()) state_.places = std::vector<place>(cycle_.places());
    for (place& p : state_.places) p.range.reset();
    state_.open = 0;
    state_.epoch = epoch;
    state_.at_first = true, state_.at_end = false;
    detail::release_all(base_.rows());
    base_.set_epoch(epoch);
    state_.input.start(base_);
  }
  bool next(element& e) {
    while (!state_.at_end || state_.open > 0) {
      place& here = state_.places[cycle_.at()];
      if (here.range) {
        if (read(here, e)) {
          cycle_.count_one();
          return true;
        }
        close(here);
      } else if (!state_.at_end) {
        open(here);
      } else {
        cycle_.go_on();
      }
    }
    return false;
  }
  const V& base() const { return base_; }
  std::string order() const { return cycle_.places() == 1 ? stage_ : cycle_.order(); }

 private:
  struct place {
    std::optional<reader> range;
    sample_index made_of;  // the element from which the range was made
  };
  struct state {
    std::vector<place> places;
    std::size_t open = 0;
    position<V> input;
    int epoch = 0;
    bool at_first = true, at_end = true;
  };

  void open(place& here) {
    if (!std::exchange(state_.at_first, false)) ++*state_.input.at;
    state_.at_end = state_.input.done(base_);
    if (state_.at_end) return;
    here.made_of = **state_.input.at;
    const bool shown = unless_left_out([&] {
      detail::visit(base_.rows(), here.made_of, [&](const element_t<rows_t<V>>& e) {
        naming_element(here, [&] { here.range.emplace(detail::call(*f_, e), state_.epoch); });
      });
    });
    if (shown)
      ++state_.open;
    else
      detail::release(base_.rows(), here.made_of);
  }
  bool read(place& here, element& e) {
    STRATA_TRY {
      return naming_element(here, [&] { return here.range->next(e); });
    }
    STRATA_CATCH_ALL {
      close(here);
      STRATA_THROW_AGAIN;
    }
  }
  template <class G>
  auto naming_element(const place& here, G&& g) {
    STRATA_TRY { return g(); }
    STRATA_CATCH(const std::exception& failure) {
      throw_error({stage_, ": ", detail::describe(base_.rows(), here.made_of), ": ", failure.what()});
    }
  }
  void close(place& here) {
    here.range.reset();
    detail::release(base_.rows(), here.made_of);
    --state_.open;
    cycle_.go_on();
  }

  const char* stage_;
  V base_;
  function<F> f_;
  interleave_cycle cycle_;
  own_state<state> state_;
};

struct interleave_fn {
  template <std::ranges::range V, class F>
  auto operator()(V view, F f, interleave_options options = {}) const {
    if constexpr (fits<V, F>())
      return stage_stream(interleave_source<V, F>("interleave", std::move(view), std::move(f), interleave_cycle(options)));
  }
  template <std::ranges::range V, class F>
  auto operator()(V view, F f, interleave_options options, parallel p) const {
    if constexpr (fits<V, F>()) return stage_stream(parallel_interleave_source<V, F>(std::move(view), std::move(f), options, p));
  }
  template <class F>
    requires(!std::ranges::range<F>)
  constexpr auto operator()(F f, interleave_options options = {}) const {
    return detail::partial(*this, std::move(f), options);
  }
  template <class F>
  constexpr auto operator()(F f, parallel p) const {
    return (*this)(std::move(f), interleave_options{}, p);
  }
  template <class F>
    requires(!std::ranges::range<F>)
  constexpr auto operator()(F f, interleave_options options, parallel p) const {
    return detail::partial(*this, std::move(f), options, p);
  }

 private:
  template <class V, class F>
  static constexpr bool fits() {
    constexpr bool is_view = element_view<V>;
    static_assert(is_view, "data::interleave takes a view of samples or elements: put it before batch");
    if constexpr (is_view) {
      constexpr bool ranges = makes_ranges<F, V>;
      static_assert(ranges,
                    "the function of data::interleave takes an element, or x and y of samples with labels, and returns a "
                    "range of elements; it is called as const");
      constexpr bool keeps_weights = has_no_weights<V> && makes_no_weights<F, V>;
      static_assert(keeps_weights, "data::interleave would lose the weights: put data::sample_weight after it");
      return ranges && keeps_weights;
    }
    return false;
  }
};
}  // namespace detail

/// `from_range(files) | interleave(lines_of, {.cycle_length = 4, .block_length = 16}, parallel(2))`: f(element), f(x) or f(x, y)
/// returns a range of elements, a view of samples, or a function that returns the next element as std::optional. `cycle_length`
/// ranges are read in turns, `block_length` elements of each at a time. A range that ends loses its turn; in the next turn, the
/// range of the next element takes its place. Example: with a cycle of two, the ranges {10, 11, 12}, {20}, {30, 31} give
/// 10 20 11 12 30 31. A range must not refer to its element, which is gone when f returns.
///
/// With parallel(n), n threads call f and read ahead up to 32 elements of each range (64 KiB of large elements). The order is the
/// same unless `deterministic` is false. One thread at a time reads the view before it.
///
/// Input range without a size. Exceptions of f and of its ranges arrive as strata_error that names the element, in the
/// turn of its range. Throws strata_error if cycle_length or block_length is not positive.
/// https://www.tensorflow.org/api_docs/python/tf/data/Dataset#interleave
inline constexpr detail::interleave_fn interleave{};

}  // namespace strata::data
