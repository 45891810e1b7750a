// Batch normalization of the cpu backend against the reference backend in double precision, in two leaves.
#include <doctest/doctest.h>

#include <deque>

#include <strata/cpu/kernels/batch_norm.hpp>
#include <strata/reference/activations.hpp>
#include <strata/reference/batch_norm.hpp>

#include "cpu_compare.hpp"

using namespace strata;
using namespace strata::core;
using cpu_compare::difference;
using cpu_compare::number;

namespace {

/// All results of one step.
template <class T>
struct results {
  std::vector<T> y, inferred, dx;
  std::vector<double> statistics;
  std::vector<std::vector<T>> state, dw;
};

constexpr int total = 21;

/// Runs K, then the activation A unless it is void because K contains it; the leaves begin at samples 0 and `cut`.
template <class K, class A, class T, shape In>
results<T> step(int parameters, int cut, bool adds) {
  constexpr int size = In.size(), C = In.last();
  constexpr bool apart = !std::is_void_v<A>;
  buffer<T> x(total * size), dy(total * size), y(total * size), between(total * size), dz(total * size), dx(total * size);
  for (int i = 0; i < total * size; ++i) {
    x.data[i] = T(float(number(1, i) * (1 + i % C % 3) + 5 * (i % C % 2))), dy.data[i] = T(number(2, i));
    dx.data[i] = T(adds ? 1 : NAN);
  }
  std::deque<buffer<T>> w, dw;
  for (int p = 0; p < parameters; ++p) {
    w.emplace_back(C), dw.emplace_back(C, T(adds ? 1 : NAN));
    for (int c = 0; c < C; ++c) w.back().data[c] = T(float(number(3 + std::uint64_t(p), c) + 1.5));
  }
  buffer<T> saved(total * traits_of_kernel<K>.saved),
      scratch(traits_of_kernel<K>.scratch + total * traits_of_kernel<K>.scratch_per_sample, T(NAN));
  std::vector<double> statistics(std::size_t(2 * traits_of_kernel<K>.statistics));

  T* const second = apart ? between.data : y.data;
  const auto leaf = [&](int first, int count) {
    operands<T> o;
    o.count = count, o.total = total, o.first_sample = first;
    o.x[0] = x.data + first * size, o.y = second + first * size;
    o.dy = (apart ? dz.data : dy.data) + first * size, o.dx[0] = dx.data + first * size, o.adds_dx[0] = adds;
    for (int p = 0; p < parameters; ++p) {
      o.w[p] = w[std::size_t(p)].data;
      if (p < parameters - 2) o.dw[p] = dw[std::size_t(p)].data;
    }
    o.adds_dw = adds || first > 0;
    o.statistics = statistics.data(), o.scratch = scratch.data, o.saved = saved.data;
    return o;
  };
  const auto leaves = [&](auto&& f) { f(leaf(0, cut)), f(leaf(cut, total - cut)); };
  const auto activate = [&](auto&& f) {
    if constexpr (apart) {
      operands<T> o;
      o.count = total, o.x[0] = between.data, o.y = y.data, o.dy = dy.data, o.dx[0] = dz.data;
      f(kernel<reference, A, precision::f64, In>{}, o);
    }
  };
  results<T> r;
  leaves([](const operands<T>& o) {
    if constexpr (requires { &K::infer; }) K::infer(o);
  });
  activate([](auto k, const auto& o) { k.forward(o); });
  r.inferred.assign(y.data, y.data + y.size);
  leaves([](const operands<T>& o) { K::collect(o); });
  leaves([](const operands<T>& o) { K::forward(o); });
  activate([](auto k, const auto& o) { k.forward(o); });
  activate([](auto k, const auto& o) { k.backward(o); });
  leaves([](const operands<T>& o) { K::collect_backward(o); });
  leaves([](const operands<T>& o) { K::backward(o); });
  T* state[4] = {};
  for (std::size_t p = 0; p < w.size(); ++p) state[p] = w[p].data;
  K::update_state(leaf(0, cut), state);
  r.y.assign(y.data, y.data + y.size), r.dx.assign(dx.data, dx.data + dx.size), r.statistics = statistics;
  for (std::size_t p = 0; p < w.size(); ++p) {
    if (p + 2 < w.size())
      r.dw.emplace_back(dw[p].data, dw[p].data + C);
    else
      r.state.emplace_back(w[p].data, w[p].data + C);
  }
  return r;
}

template <class T, shape In, class A = void, batch_norm_settings S = batch_norm_settings{}>
void check() {
  using P = std::conditional_t<sizeof(T) == 4, precision::f32, precision::f64>;
  using O = batch_normalization<S>;
  using K = kernel<cpu, std::conditional_t<std::is_void_v<A>, O, fused<O, A>>, P, In>;
  constexpr int parameters = int(parameters_of<O>(In).size());
  CAPTURE(sizeof(T));
  CAPTURE(In.size());
  CAPTURE(In.last());
  const double tolerance = sizeof(T) == 4 ? 1e-5 : 1e-12;
  for (const bool adds : {false, true}) {
    const results<double> expected = step<kernel<reference, O, precision::f64, In>, A, double, In>(parameters, 13, adds);
    const results<T> r = step<K, void, T, In>(parameters, 13, adds);
    CHECK(difference(r.y.data(), expected.y) < tolerance);
    CHECK(difference(r.inferred.data(), expected.inferred) < tolerance);
    CHECK(difference(r.dx.data(), expected.dx) < tolerance);
    CHECK(difference(r.statistics.data(), expected.statistics) < 1e-6);
    for (std::size_t p = 0; p < expected.dw.size(); ++p) CHECK(difference(r.dw[p].data(), expected.dw[p]) < tolerance);
    for (std::size_t p = 0; p < 2; ++p) CHECK(difference(r.state[p].data(), expected.state[p]) < tolerance);
  }
}

template <class T>
void check_shapes() {
  check<T, shape{3}>();
  check<T, shape{5, 4, 16}, relu>();
  check<T, shape{3, 3, 1}, tanh_activation>();
  check<T, shape{2, 3, 67}, leaky_relu<>>();
  check<T, shape{7, 48}, relu, batch_norm_settings{decimal(9, -1), decimal(1, -5), true, false}>();
  check<T, shape{100}, void, batch_norm_settings{decimal(9, -1), decimal(1, -3), false, false}>();
}

}  // namespace

TEST_CASE("batch normalization, float") { check_shapes<float>(); }
TEST_CASE("batch normalization, double") { check_shapes<double>(); }

TEST_CASE("a gradient that is not wanted") {
  constexpr shape In{2, 2, 5};
  using K = kernel<cpu, batch_normalization<batch_norm_settings{}>, precision::f32, In>;
  float x[20], y[20] = {}, scratch[traits_of_kernel<K>.scratch], gamma[5] = {1, 1, 1, 1, 1}, dgamma[5] = {}, beta[5] = {},
               dbeta[5] = {};
  for (int i = 0; i < 20; ++i) x[i] = float(number(1, i));
  double statistics[2 * traits_of_kernel<K>.statistics] = {};
  operands<float> o;
  o.count = 1, o.total = 1, o.x[0] = x, o.y = y, o.dy = x, o.w[0] = gamma, o.w[1] = beta, o.dw[0] = dgamma, o.dw[1] = dbeta;
  o.statistics = statistics, o.scratch = scratch;
  K::collect(o);
  K::forward(o);
  K::collect_backward(o);
  K::backward(o);  // dx is null
  for (int c = 0; c < 5; ++c) CHECK(dbeta[c] == doctest::Approx(statistics[10 + c]));
}

namespace {

/// Runs one step over `total` samples whose element i is x(i), and checks that dgamma is exactly 0, y beta, and dx 0.
template <class K, class T, shape In>
void check_of_equal_elements(int total, auto&& x_at, bool is_dx_zero) {
  constexpr int C = In.last(), size = In.size();
  CAPTURE(sizeof(T));
  CAPTURE(total);
  CAPTURE(C);
  const int n = total * size;
  buffer<T> x(n), y(n), dy(n), dx(n, T(NAN)),
      scratch(traits_of_kernel<K>.scratch + total * traits_of_kernel<K>.scratch_per_sample, T(NAN));
  buffer<T> gamma(C), beta(C), dgamma(C, T(NAN)), dbeta(C, T(NAN));
  for (int i = 0; i < n; ++i) x.data[i] = T(x_at(i)), dy.data[i] = T(number(2, i));
  for (int c = 0; c < C; ++c) gamma.data[c] = T(number(3, c)), beta.data[c] = T(number(4, c));
  std::vector<double> statistics(std::size_t(2 * traits_of_kernel<K>.statistics));
  operands<T> o;
  o.count = total, o.total = total, o.x[0] = x.data, o.y = y.data, o.dy = dy.data, o.dx[0] = dx.data, o.scratch = scratch.data;
  o.w[0] = gamma.data, o.w[1] = beta.data, o.dw[0] = dgamma.data, o.dw[1] = dbeta.data, o.statistics = statistics.data();
  K::collect(o);
  K::forward(o);
  int unlike_beta = 0, gammas = 0, inputs = 0;
  for (int i = 0; i < n; ++i) unlike_beta += y.data[i] != beta.data[i % C];
  K::collect_backward(o);
  K::backward(o);
  for (int c = 0; c < C; ++c) gammas += dgamma.data[c] != 0;
  for (int i = 0; i < n; ++i) inputs += dx.data[i] != 0;
  CHECK(unlike_beta == 0);
  CHECK(gammas == 0);
  if (is_dx_zero) CHECK(inputs == 0);
}

template <class Backend, class T, shape In>
void check_equal_elements() {
  using P = std::conditional_t<sizeof(T) == 4, precision::f32, precision::f64>;
  using K = kernel<Backend, batch_normalization<batch_norm_settings{}>, P, In>;
  if (In.size() == In.last()) check_of_equal_elements<K, T, In>(1, [](int i) { return 3 + 10 * number(1, i); }, true);
  // Sums of doubles are rounded; those of floats are exact for up to 32 elements.
  if (sizeof(T) == 4) check_of_equal_elements<K, T, In>(7, [](int i) { return 3 + 10 * number(1, i % In.last()); }, false);
}

}  // namespace

TEST_CASE_TEMPLATE("where all elements of a channel are equal, gradients are exactly 0", T, float, double) {
  check_equal_elements<cpu, T, shape{67}>();
  check_equal_elements<cpu, T, shape{2, 2, 5}>();
  check_equal_elements<reference, T, shape{67}>();
  check_equal_elements<reference, T, shape{2, 2, 5}>();
}

TEST_CASE_TEMPLATE("rounding makes no moving variance negative", Backend, cpu, reference) {
  constexpr int C = 67, total = 7;
  using K = kernel<Backend, batch_normalization<batch_norm_settings{}>, precision::f64, shape{C}>;
  buffer<double> x(total * C), mean(C), variance(C);
  for (int i = 0; i < total * C; ++i) x.data[i] = 3 + 10 * number(1, i % C);
  for (int c = 0; c < C; ++c) mean.data[c] = variance.data[c] = 0;
  std::vector<double> statistics(std::size_t(2 * traits_of_kernel<K>.statistics));
  double* state[] = {nullptr, nullptr, mean.data, variance.data};
  operands<double> o;
  o.count = total, o.total = total, o.x[0] = x.data, o.statistics = statistics.data();
  K::collect(o);
  K::update_state(o, state);
  for (int c = 0; c < C; ++c) CHECK(variance.data[c] >= 0);
}
