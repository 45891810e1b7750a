// An initializer fills a new parameter with values that depend on (seed, parameter) only.
#pragma once
#include <concepts>
#include <span>
#include <strata/base/numbers_of.hpp>
#include <strata/base/random.hpp>
#include <strata/base/shape.hpp>

namespace strata::core {

/// `fill` receives the parameter's elements (row-major), its extents, and a generator for this parameter.
template <class I>
concept initializer = requires(std::span<double> values, shape extents, philox random) {
  { I::name } -> std::convertible_to<const char*>;
  I::fill(values, extents, random);
};

/// An initializer with its type erased.
struct initializer_info {
  const char* name;
  void (*fill)(std::span<double>, shape, philox);
  std::span<const double> settings;
};

template <initializer I>
inline constexpr initializer_info info_of_initializer = {I::name, &I::fill, detail::numbers_of<I>};

}  // namespace strata::core
