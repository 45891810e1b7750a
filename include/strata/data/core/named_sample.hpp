// Samples whose parts have names: the inputs and outputs of a graph.
#pragma once
#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <strata/base/meta.hpp>
#include <strata/base/node_name.hpp>
#include <strata/base/shape.hpp>
#include <strata/base/standard_function.hpp>
#include <strata/base/tensor.hpp>
#include <strata/concepts/batch_source.hpp>
#include <strata/data/core/column.hpp>
#include <strata/data/core/sample.hpp>
#include <strata/layers/input.hpp>
#include <type_traits>
#include <utility>

namespace strata::data {

/// A sample with a value for each of some nodes of a graph. `get<image>(sample)` is that of one.
template <class... Columns>
struct named_sample : Columns... {
  named_sample() = default;
  constexpr named_sample(Columns... columns)
    requires(sizeof...(Columns) > 0)
      : Columns(std::move(columns))... {}
};

/// The value of a node in a sample with names.
template <class Node, class Value>
constexpr const std::remove_reference_t<Value>& get(const core::column<Node, Value>& of) {
  return of.values;
}

namespace detail {

template <class E>
inline constexpr bool is_named_sample = false;
template <class... Columns>
inline constexpr bool is_named_sample<named_sample<Columns...>> = true;

/// What the values V of a node are in a batch: an input has numbers; an integer for an output is a class.
template <class Node, class V>
inline constexpr label_kind kind_of_column = strata::detail::names_input<Node> ? label_kind::none
                                             : std::integral<V>                ? label_kind::sparse
                                                                               : label_kind::dense;
template <class Node, class V, label_kind Kind = kind_of_column<Node, V>>
struct column_traits {
  static constexpr shape extents = numbers<V>::extents;
  using value_type = typename numbers<V>::value_type;
  using shown = column<Node, tensor<const value_type, extents>>;
};
template <class Node, class V>
struct column_traits<Node, V, label_kind::sparse> {
  static constexpr shape extents{};
  using value_type = std::int32_t;
  using shown = column<Node, std::int32_t>;
};

/// The form of a sample with names whose values lie in the memory of others: tensors, and class numbers.
template <class E>
struct shown_names;
template <class... Node, class... V>
struct shown_names<named_sample<column<Node, V>...>> {
  using type = named_sample<typename column_traits<Node, V>::shown...>;
};

/// Base of rows of samples with names.
template <class Named>
struct named_form;
template <class... Node, class... V>
struct named_form<named_sample<column<Node, V>...>> {
  using named = named_sample<column<Node, V>...>;  // tensors, and class numbers
  using columns = type_list<column_of<Node, column_traits<Node, V>::extents, kind_of_column<Node, V>>...>;
};

/// The destination of a sample with names: a pointer for each column, to T or to the label.
template <class T, class Columns>
struct named_place;
template <class T, class... Node, shape... S, label_kind... Kind>
struct named_place<T, type_list<column_of<Node, S, Kind>...>> {
  using type = named_sample<column<Node, std::conditional_t<Kind == label_kind::sparse, std::int32_t, T>*>...>;
};

/// A function, because clang applies __restrict only to parameters.
template <class U, class T, class Then>
inline void convert(const U* __restrict from, int n, T* __restrict to, Then then) {
  for (int i = 0; i < n; ++i) to[i] = then(static_cast<T>(from[i]));
}

/// Offsets of columns in bytes, and the size of all.
template <std::size_t N>
struct column_places {
  std::size_t at[N + 1] = {};
};
template <std::size_t N>
constexpr column_places<N> places_of_columns(const std::size_t (&bytes)[N], const std::size_t (&alignments)[N]) {
  column_places<N> places;
  std::size_t end = 0, most = 8;
  const auto round_up = [](std::size_t n, std::size_t to) { return (n + to - 1) / to * to; };
  for (std::size_t k = 0; k < N; ++k) {
    places.at[k] = round_up(end, alignments[k]);
    end = places.at[k] + bytes[k];
    most = alignments[k] > most ? alignments[k] : most;
  }
  places.at[N] = round_up(end, most);
  return places;
}
/// How a sample with names is stored: the columns one after the other, each at a multiple of its alignment if the sample is.
template <class Named>
struct named_layout;
template <class... Node, class... V>
struct named_layout<named_sample<column<Node, V>...>> {
  template <class N, class U>
  using value_t = typename column_traits<N, U>::value_type;

  static constexpr auto places = places_of_columns(
      {std::size_t{column_traits<Node, V>::extents.size()} * sizeof(value_t<Node, V>)...}, {alignof(value_t<Node, V>)...});
  static constexpr std::size_t bytes = places.at[sizeof...(Node)];

  static auto place(std::byte* at) {
    int k = 0;
    return named_sample<column<Node, value_t<Node, V>*>...>{
        column<Node, value_t<Node, V>*>{reinterpret_cast<value_t<Node, V>*>(at + places.at[k++])}...};
  }
  /// Calls f(std::type_identity<type of its numbers>, its offset, extents, name) for each column.
  template <class F>
  static void each(F&& f) {
    int k = 0;
    (f(std::type_identity<value_t<Node, V>>{}, places.at[k++], column_traits<Node, V>::extents, strata::detail::node_name<Node>),
     ...);
  }
  /// Copies a stored sample to a place.
  template <class Place>
  static void copy(const std::byte* at, const Place& to) {
    int k = 0;
    ((convert(reinterpret_cast<const value_t<Node, V>*>(at + places.at[k]), column_traits<Node, V>::extents.size(),
              data::get<Node>(to), std::identity{}),
      ++k),
     ...);
  }
  /// The stored sample, which must outlive the result.
  static named_sample<column<Node, V>...> shown(const std::byte* at) {
    int k = 0;
    return {column<Node, V>{shown_value<V>(reinterpret_cast<const value_t<Node, V>*>(at + places.at[k++]))}...};
  }

 private:
  template <class S, class U>
  static S shown_value(const U* from) {
    if constexpr (std::same_as<S, std::int32_t>)
      return *from;
    else
      return {from};
  }
};

template <class... Node, class... V>
struct stored<named_sample<column<Node, V>...>> {
  using type = named_sample<column<Node, stored_t<std::remove_cvref_t<V>>>...>;
};
template <class... Columns>
auto store(const named_sample<Columns...>& e) -> stored_t<named_sample<Columns...>> {
  return {{store(static_cast<const Columns&>(e).values)}...};
}

/// What data::columns returns for a node that comes twice, or for a column that has no numbers: data::map reports it, since an
/// error in a function of the user would be many lines long.
template <bool AreDistinct>
struct wrong_columns {};
template <class E>
inline constexpr bool is_wrong_columns = false;
template <bool AreDistinct>
inline constexpr bool is_wrong_columns<wrong_columns<AreDistinct>> = true;
}  // namespace detail

/// `data::columns(of<image>(pixels), of<kind>(3))`: a sample with names, the result of a function of data::map. It owns its
/// values: numbers, std::arrays of numbers or tensors (which refer to the memory of others).
template <class... Node, class... V>
constexpr auto columns(core::column<Node, V>... parts) {
  constexpr bool distinct = strata::detail::are_distinct<Node...>, fit = (detail::numbers<std::remove_cvref_t<V>>::valid && ...);
  if constexpr (distinct && fit)
    return named_sample<core::column<Node, std::remove_cvref_t<V>>...>{{std::forward<V>(parts.values)}...};
  else
    return detail::wrong_columns<distinct>{};
}

}  // namespace strata::data
