// What predict returns: one row per sample.
#pragma once
#include <span>
#include <strata/base/shape.hpp>
#include <vector>

namespace strata {

/// One row of the network's output shape per sample; row(i) is a view of row i.
template <class T, shape Extents>
struct predictions {
  static constexpr shape extents = Extents;
  std::vector<T> values;

  std::size_t size() const { return values.size() / std::size_t(Extents.size()); }
  std::span<const T> row(std::size_t i) const {
    return std::span<const T>(values).subspan(i * std::size_t(Extents.size()), std::size_t(Extents.size()));
  }
};

}  // namespace strata
