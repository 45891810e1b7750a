// The parts of a sample: values that can become rows of a batch, and their destination in a batch.
#pragma once
#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <strata/base/shape.hpp>
#include <strata/base/tensor.hpp>
#include <strata/concepts/batch_source.hpp>
#include <type_traits>
#include <utility>

namespace strata::data {

using strata::core::sample_index;

template <class... Columns>
struct named_sample;

/// Input x with its label or target: an integer is a class; a floating-point number, or several numbers, are a target.
template <class X, class Y>
struct sample {
  X x;
  Y y;
};
template <class X, class Y>
sample(X, Y) -> sample<X, Y>;

/// The destination of a sample: x, and label or target if the data set has one.
template <class T>
struct sample_place {
  T* x = nullptr;
  std::int32_t* label = nullptr;
  T* target = nullptr;
};

/// A tensor that owns its values, row-major.
template <class T, shape S>
struct stored_tensor {
  std::array<T, std::size_t{S.size()}> values;

  stored_tensor() = default;
  stored_tensor(tensor<const T, S> from) { std::copy_n(from.data, values.size(), values.begin()); }
  stored_tensor(tensor<T, S> from) : stored_tensor(tensor<const T, S>{from.data}) {}

  operator tensor<const T, S>() const { return {values.data()}; }
  operator tensor<T, S>() { return {values.data()}; }
  T& operator()(std::same_as<int> auto... index) { return tensor<T, S>{values.data()}(index...); }
  const T& operator()(std::same_as<int> auto... index) const { return tensor<const T, S>{values.data()}(index...); }
};

namespace detail {

/// Types with a fixed number of values: a number has shape (1), an array of arrays shape (N, M).
template <class E>
struct numbers {
  static constexpr bool valid = false;
};
template <class E>
  requires std::is_arithmetic_v<E>
struct numbers<E> {
  static constexpr bool valid = true;
  using value_type = E;
  static constexpr shape extents{1};
  static const E* data(const E& e) { return &e; }
};
template <class E, std::size_t N>
  requires(numbers<E>::valid && numbers<E>::extents.rank() < 4)
struct numbers<std::array<E, N>> {
  static constexpr bool valid = true;
  using value_type = typename numbers<E>::value_type;
  static constexpr shape extents = [] {
    constexpr shape inner = numbers<E>::extents;
    if constexpr (std::is_arithmetic_v<E>)
      return shape{int(N)};
    else if constexpr (inner.rank() == 1)
      return shape{int(N), inner[0]};
    else if constexpr (inner.rank() == 2)
      return shape{int(N), inner[0], inner[1]};
    else
      return shape{int(N), inner[0], inner[1], inner[2]};
  }();
  static const value_type* data(const std::array<E, N>& e) { return numbers<E>::data(e[0]); }
};
template <class T, shape S>
struct numbers<tensor<T, S>> {
  static constexpr bool valid = true;
  using value_type = std::remove_const_t<T>;
  static constexpr shape extents = S;
  static const value_type* data(const tensor<T, S>& e) { return e.data; }
};

template <class T, shape S>
struct numbers<stored_tensor<T, S>> : numbers<tensor<T, S>> {
  static const T* data(const stored_tensor<T, S>& e) { return e.values.data(); }
};

/// Traits of types that are a label or target of a sample.
template <class Y>
struct label_of {
  static constexpr bool valid = numbers<Y>::valid;
  static constexpr label_kind kind = label_kind::dense;
  static constexpr shape extents = numbers<Y>::extents;
};
template <std::integral Y>
struct label_of<Y> {
  static constexpr bool valid = true;
  static constexpr label_kind kind = label_kind::sparse;
  static constexpr shape extents{};
};

template <class T, class E, class Then>
void write_numbers(const E& e, T* to, Then then) {
  const auto* from = numbers<E>::data(e);
  for (int k = 0; k < numbers<E>::extents.size(); ++k) to[k] = then(static_cast<T>(from[k]));
}

/// Traits of types that are samples.
template <class E>
struct sample_traits {
  static constexpr bool valid = numbers<E>::valid, is_pair = false;
  using x_type = E;
  static constexpr label_kind labels = label_kind::none;
  static constexpr shape target_shape{};
  static const E& x(const E& e) { return e; }
};
template <class Y>
struct target_type_of_label {};
template <class Y>
  requires(label_of<Y>::valid && label_of<Y>::kind == label_kind::dense)
struct target_type_of_label<Y> {
  using target_value_type = typename numbers<Y>::value_type;
};
template <class X, class Y>
struct pair_traits : target_type_of_label<Y> {
  static constexpr bool valid = numbers<X>::valid && label_of<Y>::valid, is_pair = true;
  using x_type = X;
  static constexpr label_kind labels = label_of<Y>::kind;
  static constexpr shape target_shape = label_of<Y>::extents;
};
template <class X, class Y>
  requires(numbers<X>::valid && label_of<Y>::valid)
struct sample_traits<sample<X, Y>> : pair_traits<X, Y> {
  static const X& x(const sample<X, Y>& e) { return e.x; }
  static const Y& y(const sample<X, Y>& e) { return e.y; }
};
template <class X, class Y>
  requires(numbers<X>::valid && label_of<Y>::valid)
struct sample_traits<std::pair<X, Y>> : pair_traits<X, Y> {
  static const X& x(const std::pair<X, Y>& e) { return e.first; }
  static const Y& y(const std::pair<X, Y>& e) { return e.second; }
};

/// The type in which an element is stored so that it outlives its source.
template <class E>
struct stored {
  using type = E;
};
template <class T, shape S>
struct stored<tensor<T, S>> {
  using type = stored_tensor<std::remove_const_t<T>, S>;
};
template <class X, class Y>
struct stored<sample<X, Y>> {
  using type = sample<typename stored<std::remove_const_t<X>>::type, typename stored<std::remove_const_t<Y>>::type>;
};
template <class X, class Y>
struct stored<std::pair<X, Y>> {
  using type = std::pair<typename stored<std::remove_const_t<X>>::type, typename stored<std::remove_const_t<Y>>::type>;
};
template <class E>
using stored_t = typename stored<E>::type;

template <class... Columns>
auto store(const named_sample<Columns...>& e) -> stored_t<named_sample<Columns...>>;
template <class E>
stored_t<E> store(const E& e) {
  if constexpr (std::same_as<stored_t<E>, E>)
    return e;
  else if constexpr (requires { e.first; })
    return {store(e.first), store(e.second)};
  else if constexpr (requires { e.y; })
    return {store(e.x), store(e.y)};
  else
    return e;
}

}  // namespace detail

/// A value that can be a sample of a batch: a number, a std::array of them (of arrays ...) or a tensor, alone or as a pair or
/// `sample` with a label: an integer (sparse), or a floating-point number, array or tensor (dense).
template <class E>
concept sample_like = detail::sample_traits<E>::valid;

}  // namespace strata::data
