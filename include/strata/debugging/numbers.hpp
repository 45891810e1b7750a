// numbers: the operands of assertions with their element type erased, so that each assertion is compiled once.
#pragma once
#include <array>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <ranges>
#include <strata/base/error.hpp>
#include <strata/base/shape.hpp>
#include <strata/base/tensor.hpp>
#include <strata/base/text.hpp>
#include <string>
#include <type_traits>
#include <vector>

namespace strata::debugging {

namespace detail {
using strata::detail::text_of;

template <class E>
struct element {
  using type = E;
  static void add_extents(std::vector<std::size_t>&) {}
};
template <class E, std::size_t N>
struct element<std::array<E, N>> {
  using type = typename element<E>::type;
  static void add_extents(std::vector<std::size_t>& to) {
    to.push_back(N);
    element<E>::add_extents(to);
  }
};
template <class E>
concept number = std::integral<E> || std::floating_point<E>;
template <class X>
using element_of = typename element<std::remove_cv_t<std::ranges::range_value_t<X>>>::type;
template <class X>
concept numbers_in_a_row = std::ranges::contiguous_range<X> && number<element_of<X>>;

/// The result of predict.
template <class X>
concept rows_of_numbers = requires(const X& x) {
  requires numbers_in_a_row<decltype(x.values)>;
  { X::extents } -> std::convertible_to<shape>;
};
}  // namespace detail

/// A view of contiguous elements and their extents: of a number, a std::vector, std::span or std::array, also of std::arrays, a
/// tensor, or the result of predict. Each element is read as long double, which holds every 64-bit integer on x86.
class numbers {
  const void* first_ = nullptr;  // null: a single number
  long double single_ = 0;
  long double (*read_)(const void*, std::size_t) = nullptr;
  std::string (*write_)(long double) = nullptr;
  std::size_t size_ = 1;
  std::vector<std::size_t> extents_;

  template <class E>
  static long double read(const void* first, std::size_t i) {
    return static_cast<long double>(static_cast<const E*>(first)[i]);
  }
  /// The shortest text that reads back to the same value.
  template <class E>
  static std::string write(long double value) {
    if (value != value) return "nan";
    char text[64];
    if constexpr (std::same_as<E, bool>)
      return value != 0 ? "true" : "false";
    else if constexpr (std::integral<E>)
      return {text, std::to_chars(text, text + sizeof text, static_cast<long long>(value)).ptr};
    else
      return {text, std::to_chars(text, text + sizeof text, static_cast<E>(value)).ptr};
  }
  template <class E>
  void view(const E* first, std::size_t size) {
    first_ = first, size_ = size, read_ = read<E>, write_ = write<E>;
  }
  void append(const shape& s) {
    for (int i = 0; i < s.rank(); ++i) extents_.push_back(std::size_t(s[i]));
  }

 public:
  template <detail::number E>
  numbers(E value) : single_(static_cast<long double>(value)), write_(write<E>) {}

  template <detail::numbers_in_a_row X>
  numbers(const X& x) {
    using outer = std::remove_cv_t<std::ranges::range_value_t<X>>;
    using inner = detail::element_of<X>;
    const auto count = static_cast<std::size_t>(std::ranges::size(x));
    static constexpr inner none[1] = {};
    view(count > 0 ? reinterpret_cast<const inner*>(std::ranges::data(x)) : none, count * (sizeof(outer) / sizeof(inner)));
    extents_.push_back(count);
    detail::element<outer>::add_extents(extents_);
  }

  template <class E, shape S>
  numbers(const tensor<E, S>& x) {
    view(static_cast<const E*>(x.data), std::size_t(S.size()));
    append(S);
  }

  template <detail::rows_of_numbers X>
  numbers(const X& x) {
    view(std::ranges::data(x.values), std::ranges::size(x.values));
    extents_.push_back(size_ / std::size_t(X::extents.size()));
    append(X::extents);
  }

  /// A view with other extents, row-major: numbers(pixels, {60'000, 28, 28}). Throws strata_error if the size differs.
  template <detail::numbers_in_a_row X>
  numbers(const X& x, std::initializer_list<std::size_t> extents) : numbers(x) {
    extents_.assign(extents);
    std::size_t product = 1;
    for (const std::size_t each : extents) product *= each;
    if (product != size_) throw_error({"numbers: ", size_, " numbers do not have shape ", shape_text()});
  }

  bool is_single() const { return !first_; }
  std::size_t size() const { return size_; }
  const std::vector<std::size_t>& extents() const { return extents_; }
  long double operator[](std::size_t i) const { return first_ ? read_(first_, i) : single_; }
  std::string text(std::size_t i) const { return write_((*this)[i]); }

  /// (2, 3); (): a single number
  std::string shape_text() const { return list(extents_); }
  /// element 5 (1, 2); without a second index for a list, and empty for a single number
  std::string place(std::size_t i) const {
    if (is_single()) return {};
    std::vector<std::size_t> index(extents_.size());
    for (std::size_t axis = extents_.size(), rest = i; axis-- > 0; rest /= extents_[axis]) index[axis] = rest % extents_[axis];
    return detail::text_of({"element ", i, extents_.size() > 1 ? " " : "", extents_.size() > 1 ? list(index) : std::string()});
  }

 private:
  static std::string list(const std::vector<std::size_t>& values) {
    std::string out = "(";
    for (const std::size_t each : values) out += detail::text_of({out.size() > 1 ? ", " : "", each});
    return out + ")";
  }
};

}  // namespace strata::debugging
