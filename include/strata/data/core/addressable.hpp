// Views with access to indices by place: their slices, zip, concatenate, enumerate and window have random access, too.
#pragma once
#include <cstddef>
#include <cstdint>
#include <strata/base/standard_ranges.hpp>
#include <strata/data/core/sample_view.hpp>

namespace strata::data::detail {

/// A view with random access and a size that can be read while const, and whose indices need no release.
template <class V>
concept addressable = element_view<V> && std::ranges::random_access_range<const V> && sized<V> && !releasable<rows_t<V>>;

/// The index at a place of the view in an epoch.
template <addressable V>
sample_index index_at(const V& view, std::size_t place, std::uint32_t epoch) {
  const sample_index i = std::ranges::begin(view)[static_cast<std::ranges::range_difference_t<const V>>(place)];
  return {i.row, epoch};
}

}  // namespace strata::data::detail
