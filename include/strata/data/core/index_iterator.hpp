// The common part of random access iterators over indices of samples.
#pragma once
#include <compare>
#include <cstddef>
#include <iterator>
#include <strata/data/core/sample.hpp>
#include <utility>

namespace strata::data::detail {

/// The base of an iterator Self that has *i, i += n, i - j and comparisons: the other operators.
template <class Self>
struct index_iterator {
  using iterator_concept = std::random_access_iterator_tag;
  using iterator_category = std::input_iterator_tag;
  using value_type = sample_index;
  using difference_type = std::ptrdiff_t;

  sample_index operator[](difference_type n) const { return *(static_cast<const Self&>(*this) + n); }
  friend Self& operator++(Self& i) { return i += 1; }
  friend Self& operator--(Self& i) { return i += -1; }
  friend Self operator++(Self& i, int) { return std::exchange(i, i + 1); }
  friend Self operator--(Self& i, int) { return std::exchange(i, i - 1); }
  friend Self& operator-=(Self& i, difference_type n) { return i += -n; }
  friend Self operator+(Self i, difference_type n) { return i += n; }
  friend Self operator+(difference_type n, Self i) { return i += n; }
  friend Self operator-(Self i, difference_type n) { return i -= n; }
  /// Needed by the defaulted comparisons of Self.
  friend auto operator<=>(const index_iterator&, const index_iterator&) = default;
};

}  // namespace strata::data::detail
