// The common part of the tests of losses: compares a loss of the cpu backend with the reference backend in double precision.
#pragma once
#include <doctest/doctest.h>

#include <algorithm>
#include <strata/cpu/kernels/losses.hpp>
#include <string_view>

#include "cpu_compare.hpp"

namespace compare_losses {
using namespace strata;
using namespace strata::core;
using cpu_compare::difference;
using cpu_compare::number;

template <class T>
struct results {
  std::vector<T> y, predicted, dx;
  double loss[2] = {};
};

/// The predictions are between 0 and 1 if `probabilities`, else arbitrary.
template <class K, class T, class L, int N>
results<T> run(int count, bool probabilities, bool adds, bool weighted) {
  const auto all = std::size_t(count * N);
  results<T> r{std::vector<T>(all, T(NAN)), std::vector<T>(all, T(NAN)), std::vector<T>(all, adds ? T(1) : T(NAN))};
  buffer<T> x(count * N), truth(count * N), scratch(traits_of_kernel<K>.scratch + count * traits_of_kernel<K>.scratch_per_sample);
  std::vector<std::int32_t> labels(static_cast<std::size_t>(count));
  for (int i = 0; i < count * N; ++i) {
    x.data[i] = T(float(probabilities ? number(1, i) / 2 + 0.5 : 8 * number(1, i)));
    truth.data[i] = T(float(i % 3 == 0 ? number(2, i) / 2 + 0.5 : i % 3 - 1));
  }
  if (probabilities) x.data[0] = 0;  // outside the range that the logarithm gets
  for (int n = 0; n < count; ++n) labels[std::size_t(n)] = n % N;
  std::vector<T> weights;
  for (int n = 0; n < count; ++n) weights.push_back(T(float(n % 3) / 2));
  operands<T> o;
  if (weighted) o.weights = weights.data();
  o.count = count, o.x[0] = x.data, o.y = r.predicted.data(), o.scratch = scratch.data;
  o.dx[0] = r.dx.data(), o.adds_dx[0] = adds;
  K::forward(o);
  o.y = r.y.data(), o.targets = truth.data, o.labels = labels.data(), o.loss = r.loss;
  K::forward(o);
  K::backward(o);
  o.dx[0] = nullptr;
  K::backward(o);
  return r;
}

/// Whether predictions below 0 or above 1 are meaningless.
template <class L>
inline constexpr bool wants_probabilities =
    traits_of<L>.takes == value_range::from_0_to_1 || traits_of<L>.takes == value_range::distribution ||
    std::string_view(L::name) == "poisson" || std::string_view(L::name) == "kl_divergence";

template <class T, class L, int N, class Before = void>
void check() {
  using P = std::conditional_t<sizeof(T) == 4, precision::f32, precision::f64>;
  using Op = std::conditional_t<std::is_void_v<Before>, L, fused<Before, L>>;
  const double tolerance = sizeof(T) == 4 ? 1e-5 : 1e-12;
  const bool probabilities = wants_probabilities<L> && std::is_void_v<Before>;
  CAPTURE(L::name);
  CAPTURE(N);
  CAPTURE(sizeof(T));
  for (const int count : {1, 5})
    for (const int way : {0, 1, 2, 3}) {
      const bool adds = way % 2 == 1, weighted = way >= 2;
      const auto expected =
          run<kernel<reference, Op, precision::f64, shape{N}>, double, L, N>(count, probabilities, adds, weighted);
      const auto r = run<kernel<cpu, Op, P, shape{N}>, T, L, N>(count, probabilities, adds, weighted);
      CHECK(difference(r.y.data(), expected.y) < tolerance);
      CHECK(difference(r.predicted.data(), expected.predicted) < tolerance);
      CHECK(difference(r.dx.data(), expected.dx) < tolerance);
      if (weighted && !adds) CHECK(std::all_of(r.dx.begin(), r.dx.begin() + N, [](T slope) { return slope == 0; }));
      CHECK(std::abs(r.loss[0] - expected.loss[0]) <= tolerance * std::abs(expected.loss[0]));
      CHECK(r.loss[1] == count);
    }
}

}  // namespace compare_losses
