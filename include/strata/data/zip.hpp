// Two views side by side: one element of each at a time.
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
#include <strata/data/addressable.hpp>
#include <strata/data/element.hpp>
#include <strata/data/element_pair.hpp>
#include <strata/data/numbered.hpp>
#include <strata/data/parallel.hpp>
#include <strata/data/sample.hpp>
#include <strata/data/sample_view.hpp>
#include <strata/data/stream.hpp>
#include <strata/data/two_views.hpp>
#include <string>
#include <type_traits>
#include <utility>

namespace strata::data {

namespace detail {
/// Of an element of each view.
struct two_numbers {
  sample_index a, b;
};

/// Both numbers follow from the place.
template <addressable A, addressable B>
class zipped_places {
 public:
  using rows_a = rows_t<A>;
  using rows_b = rows_t<B>;

  zipped_places(A a, B b) : a_(std::move(a)), b_(std::move(b)) {}

  std::size_t size() const { return std::min<std::size_t>(a_.size(), b_.size()); }
  two_numbers numbers(sample_index i) const { return {number_at(a_, i.row, i.epoch), number_at(b_, i.row, i.epoch)}; }
  const rows_a& a() const { return a_.rows(); }
  const rows_b& b() const { return b_.rows(); }

 private:
  A a_;
  B b_;
};

/// Pairs of numbers wait in a pool as long as they are in use.
template <class RowsA, class RowsB>
class zipped_pool {
 public:
  using rows_a = RowsA;
  using rows_b = RowsB;

  zipped_pool(RowsA a, RowsB b) : a_(std::move(a)), b_(std::move(b)) {}

  sample_index put(two_numbers n) const {
    const std::uint32_t slot = pool_->acquire();
    pool_->element(slot) = n;
    return {slot, n.a.epoch};
  }
  two_numbers numbers(sample_index i) const { return pool_->element(i.row); }
  void release(sample_index i) const {
    const two_numbers n = numbers(i);
    detail::release(a_, n.a), detail::release(b_, n.b);
    pool_->release(i.row);
  }
  void release_all() const {
    detail::release_all(a_), detail::release_all(b_);
    pool_->release_all();
  }
  const RowsA& a() const { return a_; }
  const RowsB& b() const { return b_; }

 private:
  RowsA a_;
  RowsB b_;
  std::shared_ptr<element_pool<two_numbers>> pool_ = std::make_shared<element_pool<two_numbers>>();
};

template <class Numbers>
class zipped_elements : public Numbers {
  using rows_a = typename Numbers::rows_a;
  using rows_b = typename Numbers::rows_b;

 public:
  using Numbers::Numbers;
  using element = element_pair<element_t<rows_a>, element_t<rows_b>>;
  static constexpr bool is_random = detail::is_random<rows_a>() || detail::is_random<rows_b>();
  static constexpr bool leaves_out = detail::leaves_out<rows_a>() || detail::leaves_out<rows_b>();

  template <class F>
  decltype(auto) visit(sample_index i, F&& f) const {
    const two_numbers n = this->numbers(i);
    return detail::visit(this->a(), n.a, [&](const element_t<rows_a>& a) -> decltype(auto) {
      return detail::visit(this->b(), n.b, [&](const element_t<rows_b>& b) -> decltype(auto) { return f(element{a, b}); });
    });
  }
  std::size_t ordinal(sample_index i) const { return detail::ordinal(this->a(), this->numbers(i).a); }
  std::string describe(sample_index i) const { return detail::describe(this->a(), this->numbers(i).a); }
  int parallelism() const { return more_threads(detail::parallelism(this->a()), detail::parallelism(this->b())); }
};

/// Pairs that are samples: each part goes straight to where it belongs.
template <class Numbers>
class zipped_samples : public zipped_elements<Numbers> {
  using rows_a = typename Numbers::rows_a;
  using rows_b = typename Numbers::rows_b;
  using y = element_t<rows_b>;

 public:
  using zipped_elements<Numbers>::zipped_elements;
  using value_type = typename rows_a::value_type;
  static constexpr shape sample_shape = rows_a::sample_shape;
  static constexpr label_kind labels = label_of<y>::kind;
  static constexpr shape target_shape = label_of<y>::extents;

  template <class T, class Then>
  void write(sample_index i, sample_index ahead, sample_place<T> to, Then then) const {
    const two_numbers n = this->numbers(i), coming = this->numbers(ahead);
    this->a().write(n.a, coming.a, sample_place<T>{.x = to.x}, then);
    if constexpr (labels == label_kind::sparse)
      detail::visit(this->b(), n.b, [&](const y& label) { *to.label = label_number(label); });
    else
      this->b().write(n.b, coming.b, sample_place<T>{.x = to.target}, std::identity{});
  }
};

/// x without labels, and what can be its label or target.
template <class Numbers, class A = typename Numbers::rows_a, class B = typename Numbers::rows_b>
inline constexpr bool zips_to_samples = row_source<A> && sample_like<std::pair<element_t<A>, element_t<B>>> &&
                                        (std::integral<element_t<B>> || row_source<B>);
}  // namespace detail

template <class Numbers>
using zipped_rows =
    std::conditional_t<detail::zips_to_samples<Numbers>, detail::zipped_samples<Numbers>, detail::zipped_elements<Numbers>>;

/// Two views, one of which at least is an input range. Sized if both are.
template <element_view A, element_view B, class Rows = zipped_rows<detail::zipped_pool<rows_t<A>, rows_t<B>>>>
class zip_view : public detail::stage_over_two<zip_view<A, B>, A, B, Rows> {
  friend detail::single_pass<zip_view>;

 public:
  zip_view(A a, B b) : detail::stage_over_two<zip_view, A, B, Rows>("zip", std::move(a), std::move(b)) {}

  std::size_t size() const
    requires(detail::sized<A> && detail::sized<B>)
  {
    return std::min<std::size_t>(this->a_.size(), this->b_.size());
  }
  std::string order() const { return this->order_of_both("zip"); }

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
    if (state_.a.done(this->a_)) return;  // b might have to wait for an element that nobody wants
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
struct zip_fn {
  template <std::ranges::range A, std::ranges::range B>
  auto operator()(A a, B b) const {
    constexpr bool views = element_view<A> && element_view<B>;
    static_assert(views, "data::zip takes two views of samples or elements: put it before batch");
    if constexpr (views && addressable<A> && addressable<B>)
      return numbered_view("zip", zipped_rows<zipped_places<A, B>>(std::move(a), std::move(b)));
    else if constexpr (views)
      return zip_view<A, B>(std::move(a), std::move(b));
  }
};
}  // namespace detail

/// `zip(images, labels)`: pairs of an element of each, until one view ends. If `images` yields x without labels, and `labels`
/// integers or numbers, they are samples, which can be batched; otherwise elements std::pair, which want a map. What is not
/// trivially copyable is a const reference in the pair. In errors they have the names of the elements of the first view.
/// Random access if both views have it, and do not change from epoch to epoch; otherwise an input range; sized if both are.
/// Throws strata::error if the views are shared among different numbers of workers.
/// https://www.tensorflow.org/api_docs/python/tf/data/Dataset#zip
inline constexpr detail::zip_fn zip{};

}  // namespace strata::data
