// The meaning of a sample index: rows of samples that are written into a batch, or elements of any other type.
#pragma once
#include <concepts>
#include <cstddef>
#include <strata/base/error.hpp>
#include <strata/base/shape.hpp>
#include <strata/base/standard_function.hpp>
#include <strata/concepts/batch_source.hpp>
#include <strata/data/core/named_sample.hpp>
#include <strata/data/core/sample.hpp>
#include <string>
#include <type_traits>
#include <utility>

namespace strata::data {

/// Compile-time properties of rows that stages need. Rows list the differences from the defaults, which are always safe:
/// `static constexpr row_properties properties{.is_random = true};`
struct row_properties {
  bool is_random = false;             // a sample depends on a seed and the epoch
  bool leaves_out = false;            // writing a sample may throw detail::left_out: the batch omits it
  bool any_thread_may_write = false;  // writing calls no function of the user's, and the order of the calls does not matter
};

/// Rows of samples. `write(i, ahead, place, then)` converts sample i to the type of the place and passes each value of x through
/// `then`, so that element-wise stages such as scale need no pass of their own. Meanwhile it may prefetch the sample `ahead`,
/// which is written a little later. Several threads may write at once.
template <class R>
concept row_source = std::copyable<R> && requires(const R& rows, sample_index i, sample_place<float> place) {
  typename R::value_type;  // of x, before the batch converts it
  { R::sample_shape } -> std::convertible_to<shape>;
  { R::labels } -> std::convertible_to<label_kind>;
  { R::target_shape } -> std::convertible_to<shape>;
  { R::properties } -> std::convertible_to<row_properties>;
  rows.write(i, i, place, std::identity{});
};

/// Rows of samples with names, as detail::named_form<named> describes them. `write(i, ahead, place, std::identity{})` converts
/// each column of sample i to the type of its place, which may have more columns. Otherwise the same as row_source.
template <class R>
concept named_source = std::copyable<R> && requires(const R& rows, sample_index i,
                                                    typename detail::named_place<float, typename R::columns>::type place) {
  typename R::named;
  { R::properties } -> std::convertible_to<row_properties>;
  rows.write(i, i, place, std::identity{});
};

namespace detail {
/// Takes an element and does nothing. nvcc does not compile a lambda in its place.
template <class Element>
struct takes_element {
  void operator()(const Element&) const {}
};
}  // namespace detail

/// Rows of any other type: records, paths, structs. `map` makes samples of them. `visit(i, f)` calls f with element i, which
/// need not outlive the call; detail::elements_of makes it from a member get(i). Several threads may visit at once.
template <class R>
concept element_source = std::copyable<R> && requires(const R& rows, sample_index i) {
  typename R::element;
  { R::properties } -> std::convertible_to<row_properties>;
  rows.visit(i, detail::takes_element<typename R::element>{});
};

namespace detail {

/// Reports the member that rows lack. Views that hold rows check them at class scope.
template <class R>
struct checked_rows {
  static constexpr bool value = std::copyable<R>;
  static_assert(value, "rows are copied with their view: they need copy construction and assignment");

  static constexpr bool has_properties = requires { requires std::convertible_to<decltype(R::properties), row_properties>; };
  static_assert(has_properties, "rows need `static constexpr data::row_properties properties`");

  static constexpr bool of_elements = requires { typename R::element; }, of_samples = requires { typename R::value_type; },
                        of_names = requires { typename R::named; };
  static constexpr bool has_a_type = of_elements || of_samples || of_names;
  static_assert(has_a_type, "rows need `element`, the type of an element, or `value_type`, that of x of a sample");

  static constexpr bool has_visit =
      !of_elements || requires(const R& rows, sample_index i) { rows.visit(i, detail::takes_element<typename R::element>{}); };
  static_assert(has_visit, "rows of elements need visit(i, f), which calls f with element i");

  static constexpr bool has_constants = !of_samples || requires {
    requires std::convertible_to<decltype(R::sample_shape), shape> && std::convertible_to<decltype(R::target_shape), shape> &&
                 std::convertible_to<decltype(R::labels), label_kind>;
  };
  static_assert(has_constants, "rows of samples need the constants sample_shape, labels and target_shape");

  static constexpr bool has_write = !of_samples || requires(const R& rows, sample_index i, sample_place<float> place) {
    rows.write(i, i, place, std::identity{});
  };
  static_assert(has_write, "rows of samples need write(i, ahead, place, then), which writes sample i into a batch");
};

// Optional members of rows.

/// The number of rows, if it is known before they are read.
template <class R>
concept sized = requires(const R& rows) {
  { rows.size() } -> std::convertible_to<std::size_t>;
};
/// The label of a sample, if it can be read without x.
template <class R>
concept has_label = requires(const R& rows, sample_index i) { rows.label(i); };
/// The weight of a sample in the loss, which `batch` reads.
template <class R>
concept has_weight = requires(const R& rows, sample_index i) { rows.weight(i); };
/// A pointer to x of a sample, if x lies in memory as value_type.
template <class R>
concept has_direct = requires(const R& rows, sample_index i) { rows.direct(i); };
/// Rows that may lie in memory in the form of stored_samples: `std::optional<stored_samples> stored() const`.
template <class R>
concept has_stored = requires(const R& rows) { rows.stored()->count; };
/// Rows of a stream: an index may be read until it is released, and its memory is reused afterwards.
template <class R>
concept releasable = requires(const R& rows, sample_index i) {
  rows.release(i);
  rows.release_all();
};

/// Declares that index i will not be read any more.
template <class Rows>
void release(const Rows& rows, sample_index i) {
  if constexpr (releasable<Rows>) rows.release(i);
}
/// Declares that no index will be read any more.
template <class Rows>
void release_all(const Rows& rows) {
  if constexpr (releasable<Rows>) rows.release_all();
}
/// The place of a sample in its data set; rows may have ordinal(i) if that is not i.row.
template <class Rows>
std::size_t ordinal(const Rows& rows, sample_index i) {
  if constexpr (requires { rows.ordinal(i); })
    return rows.ordinal(i);
  else
    return i.row;
}
/// A sample's name for errors: "sample 17"; rows may have a more specific describe(i): "record 17 of train.tfrecord".
template <class Rows>
std::string describe(const Rows& rows, sample_index i) {
  if constexpr (requires { rows.describe(i); })
    return rows.describe(i);
  else
    return "sample " + std::to_string(ordinal(rows, i));
}
/// The number of threads that the user requests for writing samples; 0: autotune.
template <class Rows>
int parallelism(const Rows& rows) {
  if constexpr (requires { rows.parallelism(); })
    return rows.parallelism();
  else
    return 1;
}

/// The properties of rows that read two others, whose threads are not coordinated.
constexpr row_properties both(row_properties a, row_properties b) {
  return {.is_random = a.is_random || b.is_random, .leaves_out = a.leaves_out || b.leaves_out};
}
/// The properties of rows that wrap others: any_thread_may_write is off unless they set it themselves.
constexpr row_properties around(row_properties base) { return both(base, {}); }

/// The type of dense targets before the batch converts them; rows may have target_value_type. The default can hold fractions.
template <class Rows>
struct target_value {
  using type = std::conditional_t<std::floating_point<typename Rows::value_type>, typename Rows::value_type, float>;
};
template <class Rows>
  requires requires { typename Rows::target_value_type; }
struct target_value<Rows> {
  using type = typename Rows::target_value_type;
};
/// Base of rows with the target type of other rows.
template <class Base>
struct target_type_of {};
template <class Base>
  requires requires { typename Base::target_value_type; }
struct target_type_of<Base> {
  using target_value_type = typename Base::target_value_type;
};

/// A type that represents every value of A and of B.
template <class A, class B>
using common_value_t =
    std::conditional_t<std::same_as<A, B>, A,
                       std::conditional_t<sizeof(A) <= 2 || sizeof(B) <= 2 || (std::floating_point<A> && std::floating_point<B>),
                                          std::common_type_t<A, B>, double>>;
/// The type in which functions of the user receive a sample, and cache stores it: that of x, unless targets need more.
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

/// Throws strata_error if the label does not fit into 32 bits.
std::int32_t label_number(std::integral auto label) {
  if (!std::in_range<std::int32_t>(+label)) throw_error({"label ", +label, " does not fit into 32 bits"});
  return static_cast<std::int32_t>(label);
}

}  // namespace detail
}  // namespace strata::data
