// All rows of a source in order: the view of a source whose number of rows is known in advance.
#pragma once
#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <strata/base/error.hpp>
#include <strata/base/standard_ranges.hpp>
#include <strata/base/text.hpp>
#include <strata/data/core/checksum.hpp>
#include <strata/data/core/index_iterator.hpp>
#include <strata/data/core/sample_view.hpp>
#include <string>
#include <utility>

namespace strata::data {

namespace detail {
/// The iterator of rows 0, 1, 2 ... (clang 14 cannot compile libstdc++'s iota_view).
struct counter : index_iterator<counter> {
  std::uint32_t at = 0, epoch = 0;

  sample_index operator*() const { return {at, epoch}; }
  counter& operator+=(difference_type n) {
    at = static_cast<std::uint32_t>(at + n);
    return *this;
  }
  friend difference_type operator-(counter a, counter b) { return difference_type{a.at} - difference_type{b.at}; }
  friend auto operator<=>(const counter&, const counter&) = default;
  friend bool operator==(const counter&, const counter&) = default;  // nvcc needs the name
};
}  // namespace detail

/// The indices 0 ... rows.size() - 1. Random access and sized. Copies share the rows.
template <class Rows>
class indexed_view : public std::ranges::view_base {
  static_assert(detail::checked_rows<Rows>::value);
  static_assert(detail::sized<Rows>, "rows of an indexed_view need size()");

 public:
  static constexpr view_properties properties{};

  /// Throws strata_error, naming the source, if there are no rows or more than 2^32 - 1.
  indexed_view(const char* source, Rows rows) : source_(source), rows_(std::move(rows)) {
    const std::size_t n = rows_.size();
    if (n == 0) throw_error({source, ": the data set is empty"});
    if (n > std::numeric_limits<std::uint32_t>::max())
      throw_error({source, ": ", n, " samples are more than a sample_index can represent"});
  }

  detail::counter begin() const { return {{}, 0, epoch_}; }
  detail::counter end() const { return {{}, static_cast<std::uint32_t>(rows_.size()), epoch_}; }
  std::size_t size() const { return rows_.size(); }
  const Rows& rows() const { return rows_; }
  void set_epoch(int epoch) { epoch_ = static_cast<std::uint32_t>(epoch); }
  /// Rows that read other views have order(), which describes these; rows that hold samples have a checksum() of some of them.
  std::string order() const {
    if constexpr (requires { rows_.order(); })
      return rows_.order();
    else if constexpr (requires { rows_.checksum(); })
      return strata::detail::text_of({source_, "(", size(), " samples, ", detail::text_of_checksum(rows_.checksum()), ")"});
    else
      return strata::detail::text_of({source_, "(", size(), " samples)"});
  }

 private:
  const char* source_;
  Rows rows_;
  std::uint32_t epoch_ = 0;
};

}  // namespace strata::data

template <class Rows>
inline constexpr bool std::ranges::enable_borrowed_range<strata::data::indexed_view<Rows>> = true;
