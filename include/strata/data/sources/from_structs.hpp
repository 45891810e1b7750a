// Samples with names from structs in memory.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <strata/base/standard_ranges.hpp>
#include <strata/data/core/checksum.hpp>
#include <strata/data/core/closure.hpp>
#include <strata/data/core/column.hpp>
#include <strata/data/core/indexed_view.hpp>
#include <strata/data/core/named_sample.hpp>
#include <strata/data/core/rows_view.hpp>
#include <strata/data/sources/from_range.hpp>
#include <tuple>
#include <type_traits>
#include <utility>

namespace strata::data {

namespace detail {
template <class Member>
struct member_of {
  static constexpr bool fits = false;
};
template <class Struct, class Member>
struct member_of<Member Struct::*> {
  static constexpr bool fits = numbers<Member>::valid;
  using owner = Struct;
  using type = Member;
};

/// Some members of the structs of a range. Pointers: pointers to those members.
template <indexable R, class... Columns>
class struct_rows;
template <indexable R, class... Node, class... Pointer>
class struct_rows<R, column<Node, Pointer>...>
    : public elements_of<struct_rows<R, column<Node, Pointer>...>,
                         typename shown_names<named_sample<column<Node, typename member_of<Pointer>::type>...>>::type> {
 public:
  static constexpr row_properties properties{.any_thread_may_write = std::ranges::contiguous_range<const R>};

  struct_rows(R records, column<Node, Pointer>... columns)
      : records_(std::make_shared<const R>(std::move(records))), columns_(std::move(columns)...) {}

  std::size_t size() const { return static_cast<std::size_t>(std::ranges::size(*records_)); }
  std::uint64_t checksum() const { return checksum_of(*this); }
  /// Throws strata_error if a class number does not fit into 32 bits.
  typename struct_rows::element get(sample_index i) const {
    const auto& record = std::ranges::begin(*records_)[static_cast<std::ranges::range_difference_t<const R>>(i.row)];
    return {shown<Node>(record.*std::get<column<Node, Pointer>>(columns_).values)...};
  }

 private:
  template <class N, class Member>
  static typename column_traits<N, Member>::shown shown(const Member& value) {
    if constexpr (kind_of_column<N, Member> == label_kind::sparse)
      return {label_number(value)};
    else
      return {{numbers<Member>::data(value)}};
  }

  std::shared_ptr<const R> records_;
  std::tuple<column<Node, Pointer>...> columns_;
};

struct from_structs_fn {
  template <std::ranges::input_range R, class... Node, class... Pointer>
  auto operator()(R records, column<Node, Pointer>... columns) const {
    constexpr bool lie_in_memory = indexable<R> && in_memory<R>, distinct = strata::detail::are_distinct<Node...>;
    constexpr bool members = (member_of<std::remove_cvref_t<Pointer>>::fits && ... && (sizeof...(Node) > 0));
    static_assert(lie_in_memory, "data::from_structs takes a vector or a span of structs");
    static_assert(distinct, "data::from_structs has a node twice");
    static_assert(members,
                  "columns of data::from_structs are members that are numbers or std::arrays of numbers: "
                  "of<image>(&ticket::pixels)");
    if constexpr (lie_in_memory && distinct && members)
      return indexed_view("from_structs", struct_rows<R, column<Node, std::remove_cvref_t<Pointer>>...>(
                                              std::move(records), column<Node, std::remove_cvref_t<Pointer>>{columns.values}...));
    else
      return refused_view{};
  }
};
}  // namespace detail

/// `from_structs(tickets, of<image>(&ticket::pixels), of<kind>(&ticket::kind))`: samples with names from the members of structs,
/// which are numbers or std::arrays of numbers (of arrays ...). An integer for an output of a graph is a class. A vector is moved
/// in, a span borrowed; borrowed structs must not change while a fit reads them.
/// out: a view of sample indices, random access and sized. Throws strata_error if there are no structs.
inline constexpr detail::from_structs_fn from_structs{};

}  // namespace strata::data
