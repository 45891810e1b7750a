// Pairs of the elements of two views.
#pragma once
#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <ranges>
#include <strata/base/shape.hpp>
#include <strata/concepts/batch_source.hpp>
#include <strata/data/core/addressable.hpp>
#include <strata/data/core/closure.hpp>
#include <strata/data/core/element.hpp>
#include <strata/data/core/element_pair.hpp>
#include <strata/data/core/index_stage.hpp>
#include <strata/data/core/indexed_view.hpp>
#include <strata/data/core/parallel.hpp>
#include <strata/data/core/sample.hpp>
#include <strata/data/core/sample_view.hpp>
#include <strata/data/core/stream.hpp>
#include <strata/data/core/two_views.hpp>
#include <string>
#include <type_traits>
#include <utility>

namespace strata::data {

namespace detail {
/// The index of an element in each view.
struct two_indices {
  sample_index a, b;
};

/// Rows of random-access views: both indices are computed from the place.
template <addressable A, addressable B>
class zipped_places : public two_views<A, B> {
 public:
  using two_views<A, B>::two_views;

  std::size_t size() const { return std::min<std::size_t>(this->a_.size(), this->b_.size()); }
  two_indices indices(sample_index i) const { return {index_at(this->a_, i.row, i.epoch), index_at(this->b_, i.row, i.epoch)}; }
  std::string order() const { return order_of_both("zip", this->a_, this->b_); }
};

/// Rows of any other views: pairs of indices in use are stored in a pool.
template <class RowsA, class RowsB>
class zipped_pool : public two_row_sources<RowsA, RowsB> {
 public:
  using two_row_sources<RowsA, RowsB>::two_row_sources;

  sample_index put(two_indices i) const { return {pool_->put(i), i.a.epoch}; }
  two_indices indices(sample_index i) const { return pool_->element(i.row); }
  void release(sample_index i) const {
    const two_indices n = indices(i);
    detail::release(this->a(), n.a), detail::release(this->b(), n.b);
    pool_->release(i.row);
  }
  void release_all() const {
    detail::release_all(this->a()), detail::release_all(this->b());
    pool_->release_all();
  }

 private:
  std::shared_ptr<element_pool<two_indices>> pool_ = std::make_shared<element_pool<two_indices>>();
};

template <class Indices>
class zipped_common : public Indices {
  using rows_a = typename Indices::rows_a;
  using rows_b = typename Indices::rows_b;

 public:
  using Indices::Indices;
  static constexpr row_properties properties = both(rows_a::properties, rows_b::properties);

  std::size_t ordinal(sample_index i) const { return detail::ordinal(this->a(), this->indices(i).a); }
  std::string describe(sample_index i) const { return detail::describe(this->a(), this->indices(i).a); }
  int parallelism() const { return more_threads(detail::parallelism(this->a()), detail::parallelism(this->b())); }
  auto weight(sample_index i) const
    requires(has_weight<rows_a> || has_weight<rows_b>)
  {
    const two_indices n = this->indices(i);
    if constexpr (has_weight<rows_a>)
      return this->a().weight(n.a);
    else
      return this->b().weight(n.b);
  }
};

template <class Indices>
class zipped_elements : public zipped_common<Indices> {
  using rows_a = typename Indices::rows_a;
  using rows_b = typename Indices::rows_b;

 public:
  using zipped_common<Indices>::zipped_common;
  using element = element_pair<element_t<rows_a>, element_t<rows_b>>;

  template <class F>
  decltype(auto) visit(sample_index i, F&& f) const {
    const two_indices n = this->indices(i);
    return detail::visit(this->a(), n.a, [&](const element_t<rows_a>& a) -> decltype(auto) {
      return detail::visit(this->b(), n.b, [&](const element_t<rows_b>& b) -> decltype(auto) { return f(element{a, b}); });
    });
  }
};

/// Pairs that are samples: x and label are written directly to their destinations.
template <class Indices>
class zipped_samples : public zipped_elements<Indices> {
  using rows_a = typename Indices::rows_a;
  using rows_b = typename Indices::rows_b;
  using y = element_t<rows_b>;

 public:
  using zipped_elements<Indices>::zipped_elements;
  using value_type = typename rows_a::value_type;
  static constexpr shape sample_shape = rows_a::sample_shape;
  static constexpr label_kind labels = label_of<y>::kind;
  static constexpr shape target_shape = label_of<y>::extents;

  template <class T, class Then>
  void write(sample_index i, sample_index ahead, sample_place<T> to, Then then) const {
    const two_indices n = this->indices(i), coming = this->indices(ahead);
    this->a().write(n.a, coming.a, sample_place<T>{.x = to.x}, then);
    if constexpr (labels == label_kind::sparse)
      detail::visit(this->b(), n.b, [&](const y& label) { *to.label = label_number(label); });
    else
      this->b().write(n.b, coming.b, sample_place<T>{.x = to.target}, std::identity{});
  }
};

/// Samples with the names of both.
template <class A, class B>
struct both_names;
template <class... A, class... B>
struct both_names<named_sample<A...>, named_sample<B...>> {
  using type = named_sample<A..., B...>;
};
template <class Indices>
class zipped_names
    : public zipped_common<Indices>,
      public named_form<typename both_names<typename Indices::rows_a::named, typename Indices::rows_b::named>::type> {
 public:
  using zipped_common<Indices>::zipped_common;

  template <class Place>
  void write(sample_index i, sample_index ahead, const Place& to, std::identity then) const {
    const two_indices n = this->indices(i), coming = this->indices(ahead);
    this->a().write(n.a, coming.a, to, then);
    this->b().write(n.b, coming.b, to, then);
  }
};

/// Whether A has x without labels, and B labels or targets.
template <class Indices, class A = typename Indices::rows_a, class B = typename Indices::rows_b>
inline constexpr bool zips_to_samples =
    row_source<A> && sample_like<std::pair<element_t<A>, element_t<B>>> && (std::integral<element_t<B>> || row_source<B>);

template <class Indices, class A = typename Indices::rows_a, class B = typename Indices::rows_b>
struct zipped {
  using type = std::conditional_t<zips_to_samples<Indices>, zipped_samples<Indices>, zipped_elements<Indices>>;
};
template <class Indices, named_source A, named_source B>
struct zipped<Indices, A, B> {
  using type = zipped_names<Indices>;
};
template <class Indices>
using zipped_rows = typename zipped<Indices>::type;
}  // namespace detail

/// Two views, of which at least one is an input range. Sized if both are.
template <element_view A, element_view B, class Rows = detail::zipped_rows<detail::zipped_pool<rows_t<A>, rows_t<B>>>>
class zip_view : public detail::stage_over_two<zip_view<A, B>, A, B, Rows> {
  friend detail::single_pass<zip_view>;

 public:
  zip_view(A a, B b) : detail::stage_over_two<zip_view, A, B, Rows>("zip", std::move(a), std::move(b)) {}

  std::size_t size() const
    requires(detail::sized<A> && detail::sized<B>)
  {
    return std::min<std::size_t>(this->a_.size(), this->b_.size());
  }
  std::string order() const { return detail::order_of_both("zip", this->a_, this->b_); }

 private:
  struct state {
    detail::position<A> a;
    detail::position<B> b;
    sample_index current;
  };

  void start() {
    state_.a.start(this->a_), state_.b.start(this->b_);
    pair_up();
  }
  sample_index read() const { return state_.current; }
  void next() {
    ++*state_.a.at;
    if (state_.a.done(this->a_)) return;  // the next element of b is not needed, and reading it could block
    ++*state_.b.at;
    pair_up();
  }
  bool done() { return state_.a.done(this->a_) || state_.b.done(this->b_); }

  void pair_up() {
    if (!done())
      state_.current = this->rows_.put({**state_.a.at, **state_.b.at});
    else if (!state_.a.done(this->a_))
      detail::release(this->a_.rows(), **state_.a.at);
  }

  detail::own_state<state> state_;
};

namespace detail {
template <class A, class B>
inline constexpr bool zips_distinct_names = true;
template <class... A, class... B>
inline constexpr bool zips_distinct_names<type_list<A...>, type_list<B...>> =
    strata::detail::are_distinct<typename A::node..., typename B::node...>;
template <named_view A, named_view B>
inline constexpr bool zips_distinct_names<A, B> = zips_distinct_names<typename rows_t<A>::columns, typename rows_t<B>::columns>;

struct zip_fn {
  template <std::ranges::range A, std::ranges::range B>
  auto operator()(A a, B b) const {
    constexpr bool views = element_view<A> && element_view<B>;
    static_assert(views, "data::zip takes two views of samples or elements: put it before batch");
    constexpr bool distinct = zips_distinct_names<A, B>;
    static_assert(distinct, "data::zip: both views have a column of the same node");
    constexpr bool one_weight = has_no_weights<A> || has_no_weights<B>;
    static_assert(one_weight, "data::zip: both views have weights of samples, and a pair has one");
    if constexpr (!views || !one_weight || !distinct)
      return refused_view{};
    else if constexpr (addressable<A> && addressable<B>)
      return indexed_view("zip", zipped_rows<zipped_places<A, B>>(std::move(a), std::move(b)));
    else
      return zip_view<A, B>(std::move(a), std::move(b));
  }
  template <std::ranges::range A, std::ranges::range B, std::ranges::range... More>
    requires(sizeof...(More) > 0)
  auto operator()(A a, B b, More... more) const {
    constexpr bool all_have_names = ((has_names<A> && has_names<B>) && ... && has_names<More>);
    static_assert(all_have_names,
                  "data::zip takes two views, or more of samples with names: zip(a, zip(b, c)) makes pairs of pairs");
    if constexpr (!all_have_names)
      return refused_view{};
    else if constexpr (std::same_as<decltype((*this)(std::move(b), std::move(more)...)), refused_view>)
      return refused_view{};
    else
      return (*this)(std::move(a), (*this)(std::move(b), std::move(more)...));
  }
};
}  // namespace detail

/// `zip(images, labels)`: pairs of an element of each, until one view ends. If `images` has x without labels, and `labels` has
/// integers or numbers, the pairs are samples, which can be batched; otherwise they are elements std::pair, for a map. The pair
/// refers to elements that are not trivially copyable. Samples with names give samples with all names:
/// `zip(images | named<image>, words | named<tags>, kinds | named<kind>)`. Errors name the element of the first view.
/// Random access if both views have it; otherwise an input range; sized if both are. Throws strata_error if the views are
/// shared among different numbers of workers.
/// https://www.tensorflow.org/api_docs/python/tf/data/Dataset#zip
inline constexpr detail::zip_fn zip{};

}  // namespace strata::data
