// Samples of one shape, row after row. The shape is in the type, the number of samples is not.
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <strata/base/error.hpp>
#include <strata/base/shape.hpp>
#include <strata/base/shape_text.hpp>
#include <strata/base/tensor.hpp>
#include <strata/data/core/rows.hpp>
#include <string>
#include <utility>
#include <vector>

namespace strata::data {

/// Rows of T: (size, S...). Copies share the values, which must not change. Made from
///  - a vector: owned, and freed with the last copy;
///  - a span: borrowed; the caller keeps the values alive and unchanged;
///  - a shared_ptr and the number of samples: shared with the user, for example a mapped file.
/// Throws strata_error if the values do not make whole samples.
template <class T, shape S>
class array {
 public:
  using value_type = T;
  static constexpr shape extents = S;
  static constexpr row_properties properties{.any_thread_may_write = true};

  array() = default;
  explicit array(std::vector<T> values) {
    size_ = whole_samples(values.size());
    auto owner = std::make_shared<const std::vector<T>>(std::move(values));
    first_ = std::shared_ptr<const T>(owner, owner->data());
  }
  explicit array(std::span<const T> values)
      : first_(std::shared_ptr<const T>(), values.data()), size_(whole_samples(values.size())) {}
  array(std::shared_ptr<const T> first, std::size_t samples) : first_(std::move(first)), size_(samples) {}

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T* row(std::size_t i) const { return first_.get() + i * std::size_t{S.size()}; }
  tensor<const T, S> operator[](std::size_t i) const { return {row(i)}; }
  std::span<const T> values() const& { return {first_.get(), size_ * std::size_t{S.size()}}; }
  std::span<const T> values() const&& = delete;  // a temporary array may be the only owner

 private:
  static std::size_t whole_samples(std::size_t values) {
    if (values % std::size_t{S.size()} != 0)
      throw_error({"data::array: ", values, " values are not a whole number of samples of shape ", strata::detail::shape_text(S),
                   ", ", S.size(), " values each"});
    return values / std::size_t{S.size()};
  }

  std::shared_ptr<const T> first_;
  std::size_t size_ = 0;
};

}  // namespace strata::data
