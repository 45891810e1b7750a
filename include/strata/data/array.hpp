// Many samples of one shape, row after row: the shape is in the type, the number of samples is not.
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <strata/base/error.hpp>
#include <strata/base/shape.hpp>
#include <strata/base/tensor.hpp>
#include <string>
#include <utility>
#include <vector>

namespace strata::data {

namespace detail {
/// "(28, 28, 1)"
inline std::string text_of(shape s) {
  std::string text = "(";
  for (int i = 0; i < s.rank(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(s[i]);
  return text + ")";
}
}  // namespace detail

/// Rows of T: (size, S...). Copies share the numbers, which nobody may change. Made from
///  - a vector: owned, and freed with the last copy;
///  - a span: borrowed, and the user keeps the numbers alive and unchanged;
///  - a shared_ptr and the number of samples: shared with the user, e.g. a mapped file.
/// Throws strata::error unless the numbers make whole samples.
template <class T, shape S>
class array {
 public:
  using value_type = T;
  static constexpr shape extents = S;
  static constexpr bool any_thread_may_write = true;  // its rows into a batch, in any order: see row_source

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
  std::span<const T> values() const&& = delete;  // of an array that ends with the expression

 private:
  static std::size_t whole_samples(std::size_t values) {
    if (values % std::size_t{S.size()} != 0)
      throw error("data::array: " + std::to_string(values) + " values do not make whole samples of shape " + detail::text_of(S) +
                  ", " + std::to_string(S.size()) + " values each");
    return values / std::size_t{S.size()};
  }

  std::shared_ptr<const T> first_;
  std::size_t size_ = 0;
};

}  // namespace strata::data
