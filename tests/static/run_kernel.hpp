// Runs a reference kernel inside a constant expression: forward, and one gradient at a time.
#pragma once
#include <array>
#include <initializer_list>
#include <strata/base/precision.hpp>
#include <strata/reference/reference.hpp>

namespace strata::test {
using namespace core;

using rows = std::initializer_list<std::initializer_list<double>>;

template <class Operation, shape... In>
struct run {
  using code = kernel<reference, Operation, precision::f64, In...>;
  static constexpr std::array<shape, sizeof...(In)> in{In...};
  static constexpr shape out = info_of<Operation>.output_shape(in).value;

  static constexpr operands<double> operands_for(int count, rows x, rows w) {
    operands<double> o;
    o.count = count;
    int k = 0;
    for (auto each : x) o.x[k++] = each.begin();
    k = 0;
    for (auto each : w) o.w[k++] = each.begin();
    o.random = philox{42};
    return o;
  }

  /// The output. x: the elements of each input; w: the elements of each parameter.
  template <int Count = 1>
  static constexpr auto forward(rows x, rows w = {}) {
    std::array<double, Count * out.size()> y{};
    operands<double> o = operands_for(Count, x, w);
    o.y = y.data();
    code::forward(o);
    return y;
  }

  /// Gradient of input K; with `start`, the kernel adds to that value, otherwise it stores.
  template <int K = 0, int Count = 1>
  static constexpr auto dx(rows x, std::initializer_list<double> dy, rows w = {}, double start = 0) {
    std::array<double, Count * in[K].size()> dx{};
    dx.fill(start != 0 ? start : 1e9);
    auto y = forward<Count>(x, w);
    operands<double> o = operands_for(Count, x, w);
    o.y = y.data(), o.dy = dy.begin(), o.dx[K] = dx.data(), o.adds_dx[K] = start != 0;
    code::backward(o);
    return dx;
  }

  /// Gradient of parameter K.
  template <int K = 0, int Count = 1>
  static constexpr auto dw(rows x, std::initializer_list<double> dy, rows w, double start = 0) {
    std::array<double, parameters_of<Operation>(in[0])[K].extents.size()> dw{};
    dw.fill(start != 0 ? start : 1e9);
    operands<double> o = operands_for(Count, x, w);
    o.dy = dy.begin(), o.dw[K] = dw.data(), o.adds_dw = start != 0;
    code::backward(o);
    return dw;
  }
};

template <class Layer>
using operation_of = detail::at_t<0, operations_of<Layer>>;

}  // namespace strata::test
