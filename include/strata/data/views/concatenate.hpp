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
#include <strata/data/core/addressable.hpp>
#include <strata/data/core/closure.hpp>
#include <strata/data/core/element.hpp>
#include <strata/data/core/index_stage.hpp>
#include <strata/data/core/indexed_view.hpp>
#include <strata/data/core/parallel.hpp>
#include <strata/data/core/sample_view.hpp>
#include <strata/data/core/two_views.hpp>
#include <string>
#include <type_traits>
#include <utility>

namespace strata::data {

namespace detail {
/// Rows of two views: places of the second view follow those of the first.
template <addressable A, addressable B>
class joined_places : public two_views<A, B> {
 public:
  using two_views<A, B>::two_views;

  std::size_t size() const { return this->a_.size() + this->b_.size(); }
  std::size_t ordinal(sample_index i) const { return i.row; }
  std::string order() const { return order_of_both("concatenate", this->a_, this->b_); }

  /// Calls f(rows, index) of the view that index i belongs to.
  template <class F>
  decltype(auto) with(sample_index i, F&& f) const {
    const std::size_t first = this->a_.size();
    return i.row < first ? f(this->a(), index_at(this->a_, i.row, i.epoch))
                         : f(this->b(), index_at(this->b_, i.row - first, i.epoch));
  }
  bool is_of_b(sample_index i) const { return i.row >= this->a_.size(); }
  sample_index index_in_view(sample_index i) const {
    return with(i, [](const auto&, sample_index n) { return n; });
  }
};

/// Rows of two views: the lowest bit of an index is 1 for the second view.
template <class RowsA, class RowsB>
class joined_indices : public two_row_sources<RowsA, RowsB> {
 public:
  using two_row_sources<RowsA, RowsB>::two_row_sources;

  /// Throws strata_error if the index has no free bit.
  static sample_index index(sample_index i, bool of_b) {
    if (i.row > std::numeric_limits<std::uint32_t>::max() / 2)
      throw_error({"concatenate: sample ", i.row, ": the samples of both views are more than it can number"});
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
    detail::release_all(this->a()), detail::release_all(this->b());
  }
  /// A number that is unique among the samples of both views, but is not a place.
  std::size_t ordinal(sample_index i) const {
    return 2 * with(i, [](const auto& rows, sample_index n) { return detail::ordinal(rows, n); }) + is_of_b(i);
  }

  template <class F>
  decltype(auto) with(sample_index i, F&& f) const {
    return is_of_b(i) ? f(this->b(), index_in_view(i)) : f(this->a(), index_in_view(i));
  }
  static bool is_of_b(sample_index i) { return (i.row & 1) != 0; }
  static sample_index index_in_view(sample_index i) { return {i.row >> 1, i.epoch}; }
};

/// Whether both views have elements of one type.
template <class A, class B>
inline constexpr bool same_elements = std::same_as<element_t<A>, element_t<B>> && element_source<A> && element_source<B>;
template <class A, class B>
concept same_names = named_source<A> && named_source<B> && std::same_as<typename A::named, typename B::named>;
template <class A, class B>
concept same_samples = row_source<A> && row_source<B> && A::sample_shape == B::sample_shape && A::labels == B::labels &&
                       A::target_shape == B::target_shape;

template <class Indices>
class joined_common : public Indices {
 public:
  using Indices::Indices;
  static constexpr row_properties properties = both(Indices::rows_a::properties, Indices::rows_b::properties);

  std::string describe(sample_index i) const {
    return this->with(i, [](const auto& rows, sample_index n) { return detail::describe(rows, n); }) +
           (this->is_of_b(i) ? " of the second view" : " of the first view");
  }
  int parallelism() const { return more_threads(detail::parallelism(this->a()), detail::parallelism(this->b())); }
  /// The weight; 1 for samples of a view without weights.
  double weight(sample_index i) const
    requires(has_weight<typename Indices::rows_a> || has_weight<typename Indices::rows_b>)
  {
    return this->with(i, []<class Rows>(const Rows& rows, sample_index n) {
      if constexpr (has_weight<Rows>)
        return static_cast<double>(rows.weight(n));
      else
        return 1.0;
    });
  }
};

template <class Indices>
class joined_elements : public joined_common<Indices> {
 public:
  using joined_common<Indices>::joined_common;
  using element = element_t<typename Indices::rows_a>;

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
    this->with(i, [&](const auto& rows, sample_index n) { rows.write(n, same_view ? this->index_in_view(ahead) : n, to, then); });
  }
  std::int32_t label(sample_index i) const
    requires(has_label<rows_a> && has_label<rows_b>)
  {
    return this->with(i, [](const auto& rows, sample_index n) { return rows.label(n); });
  }
};

template <class Base>
class joined_names : public Base, public named_form<typename Base::rows_a::named> {
 public:
  using Base::Base;

  template <class Place>
  void write(sample_index i, sample_index ahead, const Place& to, std::identity then) const {
    const bool same_view = this->is_of_b(i) == this->is_of_b(ahead);
    this->with(i, [&](const auto& rows, sample_index n) { rows.write(n, same_view ? this->index_in_view(ahead) : n, to, then); });
  }
};

template <class Indices, class A = typename Indices::rows_a, class B = typename Indices::rows_b>
struct joined {
  using elements = std::conditional_t<same_elements<A, B>, joined_elements<Indices>, joined_common<Indices>>;
  using type = elements;
};
template <class Indices, class A, class B>
  requires same_samples<A, B>
struct joined<Indices, A, B> {
  using elements = std::conditional_t<same_elements<A, B>, joined_elements<Indices>, joined_common<Indices>>;
  using type = joined_samples<elements>;
};
template <class Indices, class A, class B>
  requires same_names<A, B>
struct joined<Indices, A, B> {
  using type = joined_names<joined_common<Indices>>;
};
template <class Indices>
using joined_rows = typename joined<Indices>::type;
}  // namespace detail

/// Two views, of which at least one is an input range. Sized if both are.
template <element_view A, element_view B, class Rows = detail::joined_rows<detail::joined_indices<rows_t<A>, rows_t<B>>>>
class concatenate_view : public detail::stage_over_two<concatenate_view<A, B>, A, B, Rows> {
  friend detail::single_pass<concatenate_view>;

 public:
  concatenate_view(A a, B b) : detail::stage_over_two<concatenate_view, A, B, Rows>("concatenate", std::move(a), std::move(b)) {}

  std::size_t size() const
    requires(detail::sized<A> && detail::sized<B>)
  {
    return this->a_.size() + this->b_.size();
  }
  std::string order() const { return detail::order_of_both("concatenate", this->a_, this->b_); }

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
      state_.b.start(this->b_);  // not earlier: starting b may read a file
    }
    if (!state_.in_b)
      state_.current = Rows::index(**state_.a.at, false);
    else if (!done())
      state_.current = Rows::index(**state_.b.at, true);
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
      constexpr bool fit =
          same_samples<rows_t<A>, rows_t<B>> || same_elements<rows_t<A>, rows_t<B>> || same_names<rows_t<A>, rows_t<B>>;
      static_assert(fit,
                    "data::concatenate takes two views whose samples have one shape, one kind of labels and one target "
                    "shape, whose samples have the same names and types, or whose elements have one type");
      if constexpr (fit && addressable<A> && addressable<B>)
        return indexed_view("concatenate", joined_rows<joined_places<A, B>>(std::move(a), std::move(b)));
      else if constexpr (fit)
        return concatenate_view<A, B>(std::move(a), std::move(b));
    }
  }
  template <std::ranges::range B>
  constexpr auto operator()(B b) const {
    return detail::partial(*this, std::move(b));
  }
};
}  // namespace detail

/// `a | concatenate(b)`, `concatenate(a, b)`: all of a, then all of b. Samples have the same shape, kind of labels and target
/// shape; the types of their values may differ. Elements have the same type. Errors name the view of the sample. Random access if
/// both views have it; otherwise an input range; sized if both are.
/// Throws strata_error if the views are shared among different numbers of workers.
/// https://www.tensorflow.org/api_docs/python/tf/data/Dataset#concatenate
inline constexpr detail::concatenate_fn concatenate{};

}  // namespace strata::data
