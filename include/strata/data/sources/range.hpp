// The integers between two bounds, as elements.
#pragma once
#include <cstddef>
#include <cstdint>
#include <strata/base/error.hpp>
#include <strata/base/text.hpp>
#include <strata/data/core/indexed_view.hpp>
#include <strata/data/core/rows_view.hpp>
#include <string>

namespace strata::data {

namespace detail {
/// start, start + step ...
class integer_rows : public elements_of<integer_rows, std::int64_t> {
 public:
  static constexpr row_properties properties{};

  integer_rows(std::int64_t start, std::int64_t step, std::size_t size) : start_(start), step_(step), size_(size) {}

  std::size_t size() const { return size_; }
  std::int64_t get(sample_index i) const {  // unsigned: the product may exceed int64_t although the sum does not
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(start_) + static_cast<std::uint64_t>(step_) * i.row);
  }
  std::string order() const {
    return strata::detail::text_of({"range(", size_, " samples, from ", start_, " in steps of ", step_, ")"});
  }

 private:
  std::int64_t start_, step_;
  std::size_t size_;
};

struct range_fn {
  auto operator()(std::int64_t start, std::int64_t stop, std::int64_t step = 1) const {
    if (step == 0) throw_error("range: the step is 0");
    const auto [low, high] = step > 0 ? bounds{start, stop} : bounds{stop, start};
    // Unsigned: the distance of two int64_t may need 64 bits.
    const auto distance = low < high ? static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low) : 0;
    const auto width = step > 0 ? static_cast<std::uint64_t>(step) : -static_cast<std::uint64_t>(step);
    return indexed_view("range", integer_rows(start, step, distance / width + (distance % width != 0)));
  }
  auto operator()(std::int64_t stop) const { return (*this)(0, stop); }

 private:
  struct bounds {
    std::int64_t low, high;
  };
};
}  // namespace detail

/// `range(5)`: 0, 1, 2, 3, 4; `range(1, 10, 4)`: 1, 5, 9; `range(10, 1, -3)`: 10, 7, 4. Elements std::int64_t; random access and
/// sized. Throws strata_error if the range is empty or the step is 0.
/// https://www.tensorflow.org/api_docs/python/tf/data/Dataset#range
inline constexpr detail::range_fn range{};

}  // namespace strata::data
