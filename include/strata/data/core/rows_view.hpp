// Stages that change the samples: rows around the rows of the view before them.
#pragma once
#include <cstddef>
#include <strata/base/standard_function.hpp>
#include <strata/base/standard_ranges.hpp>
#include <strata/data/core/sample_view.hpp>
#include <string>
#include <utility>

namespace strata::data {

namespace detail {
/// Base of rows that read other rows: forwards everything except the samples or elements.
template <class Base>
class rows_around : public target_type_of<Base> {
 public:
  static constexpr row_properties properties = around(Base::properties);

  std::size_t size() const
    requires sized<Base>
  {
    return base_.size();
  }
  void release(sample_index i) const
    requires releasable<Base>
  {
    base_.release(i);
  }
  void release_all() const
    requires releasable<Base>
  {
    base_.release_all();
  }
  std::size_t ordinal(sample_index i) const { return detail::ordinal(base_, i); }
  std::string describe(sample_index i) const { return detail::describe(base_, i); }
  int parallelism() const { return detail::parallelism(base_); }
  auto weight(sample_index i) const
    requires has_weight<Base>
  {
    return base_.weight(i);
  }

  const Base& base() const { return base_; }
  /// Replaces the rows that it reads: a copied stream has a pool of its own.
  void attach(const Base& base) { base_ = base; }

 protected:
  explicit rows_around(Base&& base) : base_(std::move(base)) {}

  Base base_;
};

/// What samples of Base have: x and the truth, or columns.
template <class Base>
struct form_of_samples {
  using value_type = typename Base::value_type;
  static constexpr shape sample_shape = Base::sample_shape, target_shape = Base::target_shape;
  static constexpr label_kind labels = Base::labels;
};
template <named_source Base>
struct form_of_samples<Base> : named_form<typename Base::named> {};

/// Base of rows whose samples have the shape, labels and targets of Base, or its columns.
template <class Base>
class samples_around : public rows_around<Base>, public form_of_samples<Base> {
 public:
  std::int32_t label(sample_index i) const
    requires has_label<Base>
  {
    return this->base_.label(i);
  }

 protected:
  explicit samples_around(Base&& base) : rows_around<Base>(std::move(base)) {}
};

/// Base of rows of elements. Elements that are sample_like make Self a row_source, too. Self has get(i), or a visit of its own.
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
template <class Self, class... Node, class... V>
struct elements_of<Self, named_sample<column<Node, V>...>>
    : named_form<typename shown_names<named_sample<column<Node, V>...>>::type> {
  using element = named_sample<column<Node, V>...>;

  template <class F>
  decltype(auto) visit(sample_index i, F&& f) const {
    return f(static_cast<const Self&>(*this).get(i));
  }
  template <class Place>
  void write(sample_index i, sample_index, const Place& to, std::identity) const {
    static_cast<const Self&>(*this).visit(
        i, [&](const element& e) { (write_column<kind_of_column<Node, V>>(data::get<Node>(e), data::get<Node>(to)), ...); });
  }

 private:
  template <label_kind Kind, class Value, class T>
  static void write_column(const Value& value, T* to) {
    if constexpr (Kind == label_kind::sparse)
      *to = label_number(value);
    else
      convert(numbers<Value>::data(value), numbers<Value>::extents.size(), to, std::identity{});
  }
};
}  // namespace detail

/// The indices of V in their order, read through other rows. Category and size are those of V.
template <element_view V, class Rows>
class rows_view : public std::ranges::view_base {
  static_assert(detail::checked_rows<Rows>::value);

 public:
  static constexpr view_properties properties{};

  rows_view(V base, Rows rows) : base_(std::move(base)), rows_(std::move(rows)) {}
  rows_view(rows_view&&) = default;
  rows_view& operator=(rows_view&&) = default;
  rows_view(const rows_view& other) : base_(other.base_), rows_(other.rows_) {
    if constexpr (detail::releasable<Rows>) rows_.attach(base_.rows());
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
  /// Rows that change samples have order(), which describes the change, but not a function of the user.
  std::string order() const
    requires requires(const Rows& rows) { rows.order(); }
  {
    return rows_.order();
  }
  const V& base() const { return base_; }
  V& base() { return base_; }

 private:
  V base_;
  Rows rows_;
};

namespace detail {
/// The view with rows Rows around its own, constructed from them and the arguments.
template <class Rows, element_view V, class... Arguments>
auto with_rows(V view, Arguments&&... arguments) {
  Rows rows(view.rows(), std::forward<Arguments>(arguments)...);
  return rows_view<V, Rows>(std::move(view), std::move(rows));
}
}  // namespace detail

}  // namespace strata::data
