// The contract of all stages before `batch`: they move sample numbers; rows() says what a number stands for.
#pragma once
#include <concepts>
#include <cstddef>
#include <functional>
#include <optional>
#include <ranges>
#include <strata/base/error.hpp>
#include <strata/base/shape.hpp>
#include <strata/concepts/batch_source.hpp>
#include <strata/data/sample.hpp>
#include <strata/data/single_pass.hpp>
#include <string>
#include <type_traits>
#include <utility>

namespace strata::data {

/// Where samples lie and how one is written into a batch. `write(i, ahead, place, then)` converts sample i to the type of the
/// place and passes each number of x through `then`, so that element-wise stages such as scale cost no pass of their own.
/// Meanwhile it may ask the caches for the sample `ahead`, which comes a little later: the rows of a shuffled data set are misses
/// that no hardware foresees. Several threads may write at once.
template <class R>
concept row_source = std::copyable<R> && requires(const R& rows, sample_index i, sample_place<float> place) {
  typename R::value_type;  // of x, before the batch converts it
  { R::sample_shape } -> std::convertible_to<shape>;
  { R::labels } -> std::convertible_to<label_kind>;
  { R::target_shape } -> std::convertible_to<shape>;
  rows.write(i, i, place, std::identity{});
};

/// Where elements of any other type are: records, paths, structs. `map` makes samples of them. `visit(i, f)` calls f with element
/// i, which need not outlive the call (detail::elements_of makes it of a member get(i)). Several threads may visit at once.
template <class R>
concept element_source = std::copyable<R> && requires(const R& rows, sample_index i) {
  typename R::element;
  rows.visit(i, [](const typename R::element&) {});
};

// Both may have more: `size()`, if each row is known before it is read; `label(i)`, if that is cheap; `direct(i)`, a pointer to the
// numbers of x if they lie in memory as value_type; `release(i)`, if a number may be read only until somebody says that it is
// done with, and `release_all()`; `ordinal(i)`, if a row is not the place of the sample in the data set; `describe(i)`, if errors
// can say more than that place; `parallelism()`, the number of threads that the user wants for writing;
// `any_thread_may_write`, if writing runs no function of the user's and the order of rows means nothing to it; `is_random`;
// `leaves_out`, if a sample may turn out to be none; `target_value_type`, of dense targets.

template <class V>
using rows_t = std::remove_cvref_t<decltype(std::declval<const V&>().rows())>;

/// A view of the numbers of elements or samples. begin() starts the next epoch; set_epoch says which one that is.
template <class V>
concept element_view = std::ranges::view<V> && std::ranges::input_range<V> &&
                       std::convertible_to<std::ranges::range_reference_t<V>, sample_index> && requires(V& v, int epoch) {
                         v.set_epoch(epoch);
                         requires row_source<rows_t<V>> || element_source<rows_t<V>>;
                       };

/// Of samples: what `batch` takes.
template <class V>
concept sample_view = element_view<V> && row_source<rows_t<V>>;

namespace detail {
template <class V>
concept sized = requires(const V& view) {
  { view.size() } -> std::convertible_to<std::size_t>;
};

/// Says that number i will not be read any more.
template <class Rows>
void release(const Rows& rows, sample_index i) {
  if constexpr (requires { rows.release(i); }) rows.release(i);
}
/// No number will be read any more.
template <class Rows>
void release_all(const Rows& rows) {
  if constexpr (requires { rows.release_all(); }) rows.release_all();
}
/// The place of a sample in its data set.
template <class Rows>
std::size_t ordinal(const Rows& rows, sample_index i) {
  if constexpr (requires { rows.ordinal(i); })
    return rows.ordinal(i);
  else
    return i.row;
}
/// For errors: "sample 17", "record 17 of train.tfrecord".
template <class Rows>
std::string describe(const Rows& rows, sample_index i) {
  if constexpr (requires { rows.describe(i); })
    return rows.describe(i);
  else
    return "sample " + std::to_string(ordinal(rows, i));
}
/// Threads that shall write samples; 0: as many as are best.
template <class Rows>
int parallelism(const Rows& rows) {
  if constexpr (requires { rows.parallelism(); })
    return rows.parallelism();
  else
    return 1;
}
/// Among how many workers the samples of a view are shared.
template <class V>
std::size_t shards_of(const V& view) {
  std::size_t shards = 1;
  if constexpr (requires { view.shards(); }) shards = view.shards();
  if constexpr (requires { view.base(); }) shards *= shards_of(view.base());
  return shards;
}
/// What decides which samples come in which order, whoever reads them: "from_tensor_slices(60000 samples) | shuffle(10000, seed 7)".
template <class V>
std::string order_of(const V& view) {
  std::string order;
  if constexpr (requires { view.base(); }) order = order_of(view.base());
  if constexpr (requires { view.order(); }) order += (order.empty() ? "" : " | ") + view.order();
  return order;
}
/// Whether each worker would see the samples in the same order.
template <class V>
constexpr bool is_alike_on_all_workers() {
  bool alike = true;
  if constexpr (requires { V::is_alike_on_all_workers; }) alike = V::is_alike_on_all_workers;
  if constexpr (requires(const V& view) { view.base(); })
    alike = alike && is_alike_on_all_workers<std::remove_cvref_t<decltype(std::declval<const V&>().base())>>();
  return alike;
}
/// The type of targets before the batch converts them; where rows do not say, one that holds fractions.
template <class Rows>
struct target_value {
  using type = std::conditional_t<std::floating_point<typename Rows::value_type>, typename Rows::value_type, float>;
};
template <class Rows>
  requires requires { typename Rows::target_value_type; }
struct target_value<Rows> {
  using type = typename Rows::target_value_type;
};
/// Holds the numbers of A and of B.
template <class A, class B>
using common_value_t =
    std::conditional_t<std::same_as<A, B>, A,
                       std::conditional_t<sizeof(A) <= 2 || sizeof(B) <= 2 || (std::floating_point<A> && std::floating_point<B>),
                                          std::common_type_t<A, B>, double>>;
/// The type that a sample is shown in and kept in: that of x, unless targets would not fit.
template <class Rows>
struct shown_value {
  using type = typename Rows::value_type;
};
template <class Rows>
  requires(Rows::labels == label_kind::dense)
struct shown_value<Rows> {
  using type = common_value_t<typename Rows::value_type, typename target_value<Rows>::type>;
};
template <class Rows>
using shown_value_t = typename shown_value<Rows>::type;

/// Whether writing may be shared by threads that nobody has asked for.
template <class Rows>
constexpr bool any_thread_may_write() {
  if constexpr (requires { Rows::any_thread_may_write; })
    return Rows::any_thread_may_write;
  else
    return false;
}

template <class Rows>
constexpr bool is_random() {
  if constexpr (requires { Rows::is_random; })
    return Rows::is_random;
  else
    return false;
}

/// Whether only those who write a sample know that there is none.
template <class Rows>
constexpr bool leaves_out() {
  if constexpr (requires { Rows::leaves_out; })
    return Rows::leaves_out;
  else
    return false;
}

/// Passes target_value_type on.
template <class Base>
struct target_type_of {};
template <class Base>
  requires requires { typename Base::target_value_type; }
struct target_type_of<Base> {
  using target_value_type = typename Base::target_value_type;
};

/// Base of rows that make something else of other rows: all but the elements themselves goes on as it is.
template <class Base>
class rows_around : public target_type_of<Base> {
 public:
  static constexpr bool is_random = detail::is_random<Base>(), leaves_out = detail::leaves_out<Base>();

  std::size_t size() const
    requires sized<Base>
  {
    return base_.size();
  }
  void release(sample_index i) const
    requires requires(const Base& b) { b.release(i); }
  {
    base_.release(i);
  }
  void release_all() const
    requires requires(const Base& b) { b.release_all(); }
  {
    base_.release_all();
  }
  std::size_t ordinal(sample_index i) const { return detail::ordinal(base_, i); }
  std::string describe(sample_index i) const { return detail::describe(base_, i); }
  int parallelism() const { return detail::parallelism(base_); }

  const Base& base() const { return base_; }
  /// From now on of these rows: those of a copied view.
  void attach(const Base& base) { base_ = base; }

 protected:
  explicit rows_around(Base base) : base_(std::move(base)) {}

  Base base_;
};

std::int32_t label_number(std::integral auto label) {
  if (!std::in_range<std::int32_t>(+label)) throw error("label " + std::to_string(label) + " does not fit into 32 bits");
  return static_cast<std::int32_t>(label);
}

/// Base of an element_source: elements that are sample_like make it a row_source, too. Self has get(i), or a visit of its own.
template <class Self, class E>
struct elements_of {
  using element = E;

  template <class F>
  decltype(auto) visit(sample_index i, F&& f) const {
    return f(static_cast<const Self&>(*this).get(i));
  }
};
template <class Self, sample_like E>
struct elements_of<Self, E> : target_type_of<sample_traits<E>> {
  using element = E;

  template <class F>
  decltype(auto) visit(sample_index i, F&& f) const {
    return f(static_cast<const Self&>(*this).get(i));
  }
  using traits = sample_traits<E>;
  using value_type = typename numbers<typename traits::x_type>::value_type;
  static constexpr shape sample_shape = numbers<typename traits::x_type>::extents;
  static constexpr label_kind labels = traits::labels;
  static constexpr shape target_shape = traits::target_shape;

  template <class T, class Then>
  void write(sample_index i, sample_index, sample_place<T> to, Then then) const {
    static_cast<const Self&>(*this).visit(i, [&](const E& e) {
      write_numbers(traits::x(e), to.x, then);
      if constexpr (labels == label_kind::sparse) *to.label = label_number(traits::y(e));
      if constexpr (labels == label_kind::dense) write_numbers(traits::y(e), to.target, std::identity{});
    });
  }
};
}  // namespace detail

/// The numbers of V in their order, read through other rows: what scale, map and one_hot return.
template <element_view V, class Rows>
class rows_view : public std::ranges::view_base {
 public:
  rows_view(V base, Rows rows) : base_(std::move(base)), rows_(std::move(rows)) {}
  rows_view(rows_view&&) = default;
  rows_view& operator=(rows_view&&) = default;
  rows_view(const rows_view& other) : base_(other.base_), rows_(other.rows_) {
    if constexpr (requires { rows_.release_all(); }) rows_.attach(base_.rows());  // a copied stream has a pool of its own
  }
  rows_view& operator=(const rows_view& other) { return *this = rows_view(other); }

  auto begin() { return std::ranges::begin(base_); }
  auto end() { return std::ranges::end(base_); }
  auto begin() const
    requires std::ranges::range<const V>
  {
    return std::ranges::begin(base_);
  }
  auto end() const
    requires std::ranges::range<const V>
  {
    return std::ranges::end(base_);
  }
  std::size_t size() const
    requires detail::sized<V>
  {
    return base_.size();
  }
  const Rows& rows() const { return rows_; }
  void set_epoch(int epoch) { base_.set_epoch(epoch); }
  const V& base() const { return base_; }
  V& base() { return base_; }

 private:
  V base_;
  Rows rows_;
};

namespace detail {
/// Base of the stages that change which samples come, and in which order.
template <class Self, element_view V>
class index_stage : public single_pass<Self> {
 public:
  decltype(auto) rows() const { return base_.rows(); }
  void set_epoch(int epoch) { base_.set_epoch(epoch); }
  const V& base() const { return base_; }
  V& base() { return base_; }

 protected:
  explicit index_stage(V base) : base_(std::move(base)) {}

  V base_;
};

/// How far a stage has read the view before it.
template <class V>
struct position {
  std::optional<std::ranges::iterator_t<V>> at;

  void start(V& from) { at.emplace(std::ranges::begin(from)); }
  bool done(V& from) const { return *at == std::ranges::end(from); }
};
}  // namespace detail

}  // namespace strata::data
