// Products of dense layers that skip zeros have the bits of those that multiply every element.
#include <doctest/doctest.h>

#include <cstring>
#include <limits>
#include <strata/cpu/kernels/dense.hpp>
#include <string>

#include "cpu_compare.hpp"
#include "repetitions.hpp"

using namespace strata;
using namespace strata::core;
using namespace strata::simd;
using strata::test::is_sanitized;

namespace {

template <class T>
bool same_bits(const buffer<T>& a, const buffer<T>& b) {
  return std::memcmp(a.data, b.data, sizeof(T) * std::size_t(a.size)) == 0;
}

template <class T>
void fill(buffer<T>& to, std::uint64_t stream) {
  for (int i = 0; i < to.size; ++i) to.data[i] = T(float(cpu_compare::number(stream, i)));
}

/// Inputs of `count` samples with K elements each, most of which are zero, some of them negative zeros.
struct pattern {
  const char* name;
  double density;
  bool (*zero)(int sample, int k);
};
constexpr pattern patterns[] = {
    {"nothing but zeros", 0, [](int, int) { return false; }},
    {"few numbers", 0.05, [](int, int) { return false; }},
    {"a third", 0.33, [](int, int) { return false; }},
    {"most numbers", 0.9, [](int, int) { return false; }},
    {"no zeros", 1, [](int, int) { return false; }},
    {"empty samples", 0.5, [](int sample, int) { return sample % 3 != 1; }},
    {"empty columns", 0.5, [](int, int k) { return k % 28 < 20; }},
    {"one number per sample", 1, [](int sample, int k) { return k != sample * 7 % 64; }},
    {"only the last column", 1, [](int, int k) { return k % 64 != 63; }},
};
template <class T>
void fill(buffer<T>& x, int K, const pattern& p) {
  for (int i = 0; i < x.size; ++i) {
    const bool zero = p.zero(i / K, i % K) || philox{17}.uniform(std::uint64_t(i)) >= p.density;
    x.data[i] = zero ? (i % 5 == 0 ? T(-0.0) : T(0)) : T(float(cpu_compare::number(1, i)));
  }
}

template <class T, int K, int N, class Activation = linear>
struct products {
  using epilogue = of_unsigned_zeros<Activation>;
  int count;
  buffer<T> x{count * K}, w{K * N}, bias{N}, dz{count * N}, scratch{dense_products<T, K, N>::scratch, T(NAN)};

  explicit products(int samples) : count(samples) { fill(w, 2), fill(bias, 3), fill(dz, 4); }

  void check_forward() {
    buffer<T> expected(count * N), y(count * N, T(NAN));
    product<T> p{count, x.data, {K}, one_run, 1, K, 1, w.data, N, expected.data, {N}, bias.data};
    simd::multiply<N, 0, epilogue>(p);
    p.c = y.data;
    multiply_skipping<N, epilogue>(p, scratch.data);
    CHECK(same_bits(y, expected));
    p.bias = nullptr;
    multiply_skipping<N, epilogue>(p, scratch.data);
    p.c = expected.data;
    simd::multiply<N, 0, epilogue>(p);
    CHECK(same_bits(y, expected));
  }

  /// Checks the whole gradient, and its rows from a later one on. `before`: the value that is added to.
  void check_weight_gradient(T before = T(2)) {
    for (const bool add : {false, true})
      for (const int first : {0, 13}) {
        buffer<T> expected(K * N, before), dw(K * N, before);
        const int rows = K - first;
        simd::multiply<N, 0, of_unsigned_zeros<linear>>(
            product<T>{rows, x.data + first, {1}, one_run, 1, count, K, dz.data, N, expected.data, {N}, nullptr, add});
        weight_gradient_skipping<N>(x.data + first, K, rows, dz.data, count, dw.data, add, scratch.data);
        CHECK(same_bits(dw, expected));
      }
  }
};

template <class T, int K, int N, class Activation = linear>
void check(std::initializer_list<int> counts) {
  CAPTURE(K);
  CAPTURE(N);
  for (const int count : counts)
    for (const pattern& p : patterns) {
      if (is_sanitized && count > 40) continue;
      CAPTURE(count);
      CAPTURE(std::string(p.name));
      products<T, K, N, Activation> all(count);
      fill(all.x, K, p);
      all.check_forward();
      all.check_weight_gradient();
    }
}

template <class T, int K, int N>
using dense_layer =
    kernel<cpu, affine<dense_settings{N}>, std::conditional_t<sizeof(T) == 4, precision::f32, precision::f64>, shape{K}>;

}  // namespace

TEST_CASE_TEMPLATE("zeros are passed over", T, float, double) {
  check<T, 64, 32>({1, 2, 31, 64});
  check<T, 131, 70, relu>({1, 3, 16, 65});
  check<T, 200, 130>({1, 33});
  check<T, 70, 300, relu>({1, 19, 131});
}

TEST_CASE_TEMPLATE("products that underflow", T, float, double) {
  // Each sum is -0 before it meets zeros of x, which would make it 0.
  constexpr int K = 70, N = 40;
  constexpr T tiny = std::numeric_limits<T>::min();
  products<T, K, N> all(40);
  for (int i = 0; i < all.x.size; ++i) all.x.data[i] = i % K < 5 && i / K < 5 ? tiny : T(-0.0);
  for (buffer<T>* b : {&all.w, &all.dz}) std::fill_n(b->data, b->size, -tiny);
  std::fill_n(all.bias.data, N, T(-0.0));
  all.check_forward();
  all.check_weight_gradient(T(-0.0));
}

TEST_CASE_TEMPLATE("a look at the input", T, float, double) {
  for (const int columns : {32, 64, 512})
    for (const int size : {64, 784, 784 * 32, 1000 * 100}) {
      CAPTURE(columns);
      CAPTURE(size);
      buffer<T> x(size);
      const auto many = [&](double density) {
        fill(x, size, pattern{"", density, [](int, int) { return false; }});
        return many_zeros(x.data, size, columns);
      };
      CHECK(many(0));
      CHECK_FALSE(many(1));
      if (size >= 784 * 32) {
        CHECK(many(0.15));
        CHECK_FALSE(many(0.7));
      }
    }
  const buffer<T> nan(784, T(NAN));
  CHECK_FALSE(many_zeros(nan.data, nan.size, 64));
}

TEST_CASE_TEMPLATE("a layer passes over weights that nothing multiplies", T, float, double) {
  constexpr int K = 300, N = 64, count = 24;
  using kernel = dense_layer<T, K, N>;
  buffer<T> x(count * K), w(K * N), b(N), y(count * N), dw(K * N), db(N);
  buffer<T> scratch(traits_of_kernel<kernel>.scratch + count * traits_of_kernel<kernel>.scratch_per_sample, T(NAN));
  for (int i = 0; i < x.size; ++i) x.data[i] = i % K % 28 < 6 ? T(float(cpu_compare::number(1, i))) : T(0);
  fill(w, 2), fill(y, 4);
  operands<T> o;
  o.count = count, o.x[0] = x.data, o.w[0] = w.data, o.w[1] = b.data, o.scratch = scratch.data;
  o.dy = y.data, o.dw[0] = dw.data, o.dw[1] = db.data;
  kernel::backward(o);
  buffer<T> outputs(count * N), expected(count * N);
  o.y = expected.data;
  kernel::forward(o);
  for (int k = 0; k < K; ++k)  // shows that zeros were found
    if (k % 28 >= 6) std::fill_n(w.data + k * N, N, std::numeric_limits<T>::infinity());
  o.y = outputs.data;
  kernel::forward(o);
  CHECK(same_bits(outputs, expected));
  for (int k = 0; k < K; ++k)
    for (int j = 0; j < N; ++j) {
      double sum = 0, size = 0;
      for (int n = 0; n < count; ++n) {
        const double term = double(x.data[n * K + k]) * double(y.data[n * N + j]);
        sum += term, size += std::abs(term);
      }
      CAPTURE(k);
      CAPTURE(j);
      REQUIRE(std::abs(double(dw.data[k * N + j]) - sum) <= 1e-6 * size);
    }

  // NaNs are propagated.
  fill(w, 2);
  x.data[5 * K + 100] = T(NAN);
  kernel::forward(o);
  for (int j = 0; j < N; ++j) CHECK(std::isnan(outputs.data[5 * N + j]));
  CHECK_FALSE(std::isnan(outputs.data[4 * N]));
}

TEST_CASE_TEMPLATE("leaves in parts, with zeros in some of them only", T, float, double) {
  constexpr int K = 80, N = 48, count = 60;
  using kernel = dense_layer<T, K, N>;
  buffer<T> x(count * K), dy(count * N),
      scratch(traits_of_kernel<kernel>.scratch + count * traits_of_kernel<kernel>.scratch_per_sample, T(NAN)), db(N);
  fill(x, 1), fill(dy, 2);
  std::fill_n(x.data + 20 * K, 20 * K, T(0));
  for (int i = 0; i < 20 * K; i += 9) x.data[20 * K + i] = T(1);
  CHECK((kernel::products::looks_for_zeros && many_zeros(x.data + 20 * K, 20 * K, N)));
  CHECK_FALSE(many_zeros(x.data, x.size, N));
  buffer<T> whole(K * N, T(NAN)), parts(K * N, T(NAN));
  operands<T> o;
  o.count = count, o.x[0] = x.data, o.dy = dy.data, o.scratch = scratch.data, o.dw[0] = whole.data, o.dw[1] = db.data;
  kernel::backward(o);
  o.dw[0] = parts.data, o.count = 20;
  for (int first = 0; first < count; first += 20) {
    o.x[0] = x.data + first * K, o.dy = dy.data + first * N, o.adds_dw = first > 0;
    kernel::backward(o);
  }
  CHECK(same_bits(whole, parts));
}
