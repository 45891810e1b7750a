// One view after another.
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <ranges>
#include <strata/base/error.hpp>
#include <strata/base/shape.hpp>
#include <strata/concepts/batch_source.hpp>
#include <strata/data/adaptor.hpp>
#include <strata/data/addressable.hpp>
#include <strata/data/element.hpp>
#include <strata/data/numbered.hpp>
#include <strata/data/parallel.hpp>
#include <strata/data/sample_view.hpp>
#include <strata/data/two_views.hpp>
#include <string>
#include <type_traits>
#include <utility>

namespace strata::data {

namespace detail {
/// Places of the second view follow those of the first.
template <addressable A, addressable B>
class joined_places {
 public:
  using rows_a = rows_t<A>;
  using rows_b = rows_t<B>;

  joined_places(A a, B b) : a_(std::move(a)), b_(std::move(b)) {}

  std::size_t size() const { return a_.size() + b_.size(); }
  std::size_t ordinal(sample_index i) const { return i.row; }

  /// f(rows, number) of the view that has number i.
  template <class F>
  decltype(auto) with(sample_index i, F&& f) const {
    const std::size_t first = a_.size();
    return i.row < first ? f(a_.rows(), number_at(a_, i.row, i.epoch)) : f(b_.rows(), number_at(b_, i.row - first, i.epoch));
  }
  bool is_of_b(sample_index i) const { return i.row >= a_.size(); }
  sample_index number_in_view(sample_index i) const {
    return with(i, [](const auto&, sample_index n) { return n; });
  }
  const rows_a& a() const { return a_.rows(); }
  const rows_b& b() const { return b_.rows(); }

 private:
  A a_;
  B b_;
};

template <class Rows>
concept releasable = requires(const Rows& rows) { rows.release_all(); };

/// The lowest bit of a number says of which view it is.
template <class RowsA, class RowsB>
class joined_numbers {
 public:
  using rows_a = RowsA;
  using rows_b = RowsB;

  joined_numbers(RowsA a, RowsB b) : a_(std::move(a)), b_(std::move(b)) {}

  /// Throws strata::error if the number needs all of its bits.
  static sample_index number(sample_index i, bool of_b) {
    if (i.row > std::numeric_limits<std::uint32_t>::max() / 2)
      throw error("concatenate: sample " + std::to_string(i.row) + " is more than it can number beside those of another view");
    return {i.row << 1 | std::uint32_t{of_b}, i.epoch};
  }
  void release(sample_index i) const
    requires(releasable<RowsA> || releasable<RowsB>)
  {
    with(i, [](const auto& rows, sample_index n) { detail::release(rows, n); });
  }
  void release_all() const
    requires(releasable<RowsA> || releasable<RowsB>)
  {
    detail::release_all(a_), detail::release_all(b_);
  }
  /// Unlike any other of the two views, though not a place.
  std::size_t ordinal(sample_index i) const {
    return 2 * with(i, [](const auto& rows, sample_index n) { return detail::ordinal(rows, n); }) + is_of_b(i);
  }

  template <class F>
  decltype(auto) with(sample_index i, F&& f) const {
    return is_of_b(i) ? f(b_, number_in_view(i)) : f(a_, number_in_view(i));
  }
  static bool is_of_b(sample_index i) { return (i.row & 1) != 0; }
  static sample_index number_in_view(sample_index i) { return {i.row >> 1, i.epoch}; }
  const RowsA& a() const { return a_; }
  const RowsB& b() const { return b_; }

 private:
  RowsA a_;
  RowsB b_;
};

/// What both views yield, or nothing if one shows tensors and the other a type of its own.
template <class A, class B>
inline constexpr bool same_elements = std::same_as<element_t<A>, element_t<B>> && element_source<A> && element_source<B>;
template <class A, class B>
concept same_samples = row_source<A> && row_source<B> && A::sample_shape == B::sample_shape && A::labels == B::labels &&
                       A::target_shape == B::target_shape;

template <class Numbers>
class joined_common : public Numbers {
 public:
  using Numbers::Numbers;
  static constexpr bool is_random =
      detail::is_random<typename Numbers::rows_a>() || detail::is_random<typename Numbers::rows_b>();
  static constexpr bool leaves_out =
      detail::leaves_out<typename Numbers::rows_a>() || detail::leaves_out<typename Numbers::rows_b>();

  std::string describe(sample_index i) const {
    return this->with(i, [](const auto& rows, sample_index n) { return detail::describe(rows, n); }) +
           (this->is_of_b(i) ? " of the second view" : " of the first view");
  }
  int parallelism() const { return more_threads(detail::parallelism(this->a()), detail::parallelism(this->b())); }
};

template <class Numbers>
class joined_elements : public joined_common<Numbers> {
 public:
  using joined_common<Numbers>::joined_common;
  using element = element_t<typename Numbers::rows_a>;

  template <class F>
  decltype(auto) visit(sample_index i, F&& f) const {
    return this->with(i, [&](const auto& rows, sample_index n) -> decltype(auto) { return detail::visit(rows, n, f); });
  }
};

template <class Base>
class joined_samples : public Base {
  using rows_a = typename Base::rows_a;
  using rows_b = typename Base::rows_b;

 public:
  using Base::Base;
  using value_type = std::common_type_t<typename rows_a::value_type, typename rows_b::value_type>;
  static constexpr shape sample_shape = rows_a::sample_shape, target_shape = rows_a::target_shape;
  static constexpr label_kind labels = rows_a::labels;

  template <class T, class Then>
  void write(sample_index i, sample_index ahead, sample_place<T> to, Then then) const {
    const bool same_view = this->is_of_b(i) == this->is_of_b(ahead);
    this->with(i, [&](const auto& rows, sample_index n) {
      rows.write(n, same_view ? this->number_in_view(ahead) : n, to, then);
    });
  }
  std::int32_t label(sample_index i) const
    requires requires(const rows_a& a, const rows_b& b) { a.label(i), b.label(i); }
  {
    return this->with(i, [](const auto& rows, sample_index n) { return rows.label(n); });
  }
};

template <class Numbers, class A = typename Numbers::rows_a, class B = typename Numbers::rows_b>
struct joined {
  using elements = std::conditional_t<same_elements<A, B>, joined_elements<Numbers>, joined_common<Numbers>>;
  using type = elements;
};
template <class Numbers, class A, class B>
  requires same_samples<A, B>
struct joined<Numbers, A, B> {
  using elements = std::conditional_t<same_elements<A, B>, joined_elements<Numbers>, joined_common<Numbers>>;
  using type = joined_samples<elements>;
};
}  // namespace detail

template <class Numbers>
using joined_rows = typename detail::joined<Numbers>::type;

/// Two views, one of which at least is an input range. Sized if both are.
template <element_view A, element_view B, class Rows = joined_rows<detail::joined_numbers<rows_t<A>, rows_t<B>>>>
class concatenate_view : public detail::stage_over_two<concatenate_view<A, B>, A, B, Rows> {
  friend detail::single_pass<concatenate_view>;

 public:
  concatenate_view(A a, B b) : detail::stage_over_two<concatenate_view, A, B, Rows>("concatenate", std::move(a), std::move(b)) {}

  std::size_t size() const
    requires(detail::sized<A> && detail::sized<B>)
  {
    return this->a_.size() + this->b_.size();
  }
  std::string order() const { return this->order_of_both("concatenate"); }

 private:
  struct state {
    detail::position<A> a;
    detail::position<B> b;
    bool in_b = false;
    sample_index current;
  };

  void start() {
    state_.in_b = false;
    state_.a.start(this->a_);
    find();
  }
  sample_index read() const { return state_.current; }
  void next() {
    if (state_.in_b)
      ++*state_.b.at;
    else
      ++*state_.a.at;
    find();
  }
  bool done() { return state_.in_b && state_.b.done(this->b_); }

  void find() {
    if (!state_.in_b && state_.a.done(this->a_)) {
      state_.in_b = true;
      state_.b.start(this->b_);  // not before: b may be a file
    }
    if (!state_.in_b)
      state_.current = Rows::number(**state_.a.at, false);
    else if (!done())
      state_.current = Rows::number(**state_.b.at, true);
  }

  detail::own_state<state> state_;
};

namespace detail {
struct concatenate_fn {
  template <std::ranges::range A, std::ranges::range B>
  auto operator()(A a, B b) const {
    constexpr bool views = element_view<A> && element_view<B>;
    static_assert(views, "data::concatenate takes two views of samples or elements: put it before batch");
    if constexpr (views) {
      constexpr bool fit = same_samples<rows_t<A>, rows_t<B>> || same_elements<rows_t<A>, rows_t<B>>;
      static_assert(fit, "data::concatenate takes two views whose samples have one shape, one kind of labels and one target "
                         "shape, or whose elements have one type");
      if constexpr (fit && addressable<A> && addressable<B>)
        return numbered_view("concatenate", joined_rows<joined_places<A, B>>(std::move(a), std::move(b)));
      else if constexpr (fit)
        return concatenate_view<A, B>(std::move(a), std::move(b));
    }
  }
  template <std::ranges::range B>
  constexpr auto operator()(B b) const {
    return adaptor{[b]<class A>(A&& a) { return concatenate_fn{}(std::forward<A>(a), b); }};
  }
};
}  // namespace detail

/// `a | concatenate(b)`, `concatenate(a, b)`: all of a, then all of b. Samples have the same shape, kind of labels and target
/// shape; the types of their numbers may differ. Elements have the same type. Errors say of which view a sample is.
/// Random access if both views have it, and do not change from epoch to epoch; otherwise an input range; sized if both are.
/// Throws strata::error if the views are shared among different numbers of workers.
/// https://www.tensorflow.org/api_docs/python/tf/data/Dataset#concatenate
inline constexpr detail::concatenate_fn concatenate{};

}  // namespace strata::data
