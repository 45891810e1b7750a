// Gives names to x and to the truth of samples.
#pragma once
#include <concepts>
#include <cstdint>
#include <strata/base/node_name.hpp>
#include <strata/base/shape.hpp>
#include <strata/base/standard_function.hpp>
#include <strata/base/standard_ranges.hpp>
#include <strata/base/tensor.hpp>
#include <strata/base/text.hpp>
#include <strata/concepts/batch_source.hpp>
#include <strata/data/core/closure.hpp>
#include <strata/data/core/column.hpp>
#include <strata/data/core/named_sample.hpp>
#include <strata/data/core/rows_view.hpp>
#include <string>
#include <type_traits>
#include <utility>

namespace strata::data {

namespace detail {
/// The columns of samples of Base. An integer without a truth is the class of an output.
template <class Base, class X, class... Y>
struct names_of_samples {
  using T = shown_value_t<Base>;
  static constexpr bool x_is_label =
      Base::labels == label_kind::none && std::integral<T> && Base::sample_shape == shape{1} && !strata::detail::names_input<X>;
  using x = std::conditional_t<x_is_label, std::int32_t, tensor<const T, Base::sample_shape>>;
  using y = std::conditional_t<Base::labels == label_kind::sparse, std::int32_t, tensor<const T, Base::target_shape>>;
  using type = named_sample<column<X, x>, column<Y, y>...>;
};

template <row_source Base, class X, class... Y>
class rows_with_names : public rows_around<Base>, public named_form<typename names_of_samples<Base, X, Y...>::type> {
 public:
  static constexpr row_properties properties = Base::properties;

  explicit rows_with_names(Base base) : rows_around<Base>(std::move(base)) {}

  template <class Place>
  void write(sample_index i, sample_index ahead, const Place& to, std::identity) const {
    if constexpr (names_of_samples<Base, X, Y...>::x_is_label) {
      std::int64_t label = 0;
      this->base_.write(i, ahead, sample_place<std::int64_t>{.x = &label}, std::identity{});
      *data::get<X>(to) = label_number(label);
    } else {
      using T = std::remove_pointer_t<std::remove_cvref_t<decltype(data::get<X>(to))>>;
      sample_place<T> place{.x = data::get<X>(to)};
      if constexpr (Base::labels == label_kind::sparse) ((place.label = data::get<Y>(to)), ...);
      if constexpr (Base::labels == label_kind::dense) ((place.target = data::get<Y>(to)), ...);
      this->base_.write(i, ahead, place, std::identity{});
    }
  }
  std::string order() const {
    std::string names(strata::detail::node_name<X>);
    ((names += strata::detail::text_of({", ", strata::detail::node_name<Y>})), ...);
    return "named(" + names + ")";
  }
};

template <class X, class... Y>
struct named_fn {
  template <std::ranges::range V>
  auto operator()(V view) const {
    constexpr bool no_names = !has_names<V>, right_view = is_sample_view<V> || !no_names;
    static_assert(no_names, "data::named takes samples without names");
    static_assert(right_view, "data::named takes a view of samples: put it before batch");
    if constexpr (sample_view<V>) {
      constexpr bool has_truth = rows_t<V>::labels != label_kind::none;
      constexpr bool a_name_each = sizeof...(Y) == (has_truth ? 1 : 0), distinct = strata::detail::are_distinct<X, Y...>;
      constexpr bool takes_classes = rows_t<V>::labels != label_kind::sparse || !(strata::detail::names_input<Y> || ...);
      static_assert(a_name_each, "data::named takes a node for x of samples, and one for the label or target if they have one");
      static_assert(distinct, "data::named has a node twice");
      static_assert(takes_classes, "data::named: class numbers belong to an output of a graph, and this node is an input");
      if constexpr (a_name_each && distinct && takes_classes)
        return with_rows<rows_with_names<rows_t<V>, X, Y...>>(std::move(view));
    }
  }
};
}  // namespace detail

/// `mnist | named<image, kind>`: the names of x and of the label or target, for a graph. Stages that read x, such as scale,
/// random_flip and window, go before it; zip adds columns: `zip(images | named<image>, words | named<tags>)`. An integer without
/// a label is a class if its node is an output. Category and size are those of the view.
template <class X, class... Y>
inline constexpr closure<detail::named_fn<X, Y...>> named{};

}  // namespace strata::data
