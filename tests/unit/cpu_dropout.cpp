// Dropout of the cpu backend: the masks of the reference backend, bit by bit.
#include <doctest/doctest.h>

#include <strata/cpu/kernels/dropout.hpp>
#include <strata/reference/dropout.hpp>

#include "cpu_compare.hpp"

using namespace strata;
using namespace strata::core;
using cpu_compare::number;

namespace {

template <class T, shape In, decimal Rate, shape Noise = shape{}>
void check() {
  using P = std::conditional_t<sizeof(T) == 4, precision::f32, precision::f64>;
  using K = kernel<cpu, dropout<Rate, Noise>, P, In>;
  using R = kernel<reference, dropout<Rate, Noise>, P, In>;
  CAPTURE(In.size());
  CAPTURE(sizeof(T));
  constexpr int count = 7, size = count * In.size();
  for (const bool adds : {false, true}) {
    buffer<T> x(size), dy(size), y(size), expected_y(size), saved(count * traits_of_kernel<K>.saved);
    buffer<T> dx(size, adds ? T(1) : T(NAN)), expected_dx(size, T(1));
    for (int i = 0; i < size; ++i) x.data[i] = T(number(1, i)), dy.data[i] = T(number(2, i));
    operands<T> o;
    o.count = count, o.x[0] = x.data, o.y = y.data, o.dy = dy.data, o.dx[0] = dx.data, o.adds_dx[0] = adds, o.saved = saved.data;
    o.random = philox{0x123456789abcdef0u}, o.first_sample = (std::int64_t(1) << 32) - 3;
    operands<T> e = o;
    e.y = expected_y.data, e.dx[0] = expected_dx.data;
    R::forward(e), R::backward(e);
    for (int first = 0; first < count; first += 3) {  // in micro-batches
      operands<T> part = o;
      part.count = std::min(3, count - first), part.first_sample += first;
      part.x[0] += first * In.size(), part.y += first * In.size(), part.dy += first * In.size(), part.dx[0] += first * In.size();
      K::forward(part), K::backward(part);
    }
    for (int i = 0; i < size; ++i) {
      CHECK(y.data[i] == expected_y.data[i]);
      CHECK(dx.data[i] == doctest::Approx(double(expected_dx.data[i])).epsilon(1e-6));
    }
    K::infer(o);
    for (int i = 0; i < size; ++i) CHECK(y.data[i] == x.data[i]);
  }
}

}  // namespace

TEST_CASE_TEMPLATE("dropout", T, float, double) {
  check<T, shape{3}, decimal(5, -1)>();
  check<T, shape{32}, decimal(25, -2)>();
  check<T, shape{7, 11}, decimal(9, -1)>();
  check<T, shape{5}, decimal(0)>();
}

TEST_CASE_TEMPLATE("dropout with a noise shape", T, float, double) {
  check<T, shape{3, 5, 9}, decimal(5, -1), shape{1, 1, 9}>();
  check<T, shape{3, 5, 9}, decimal(5, -1), shape{3, 1, 9}>();
  check<T, shape{3, 5, 9}, decimal(5, -1), shape{3, 5, 1}>();
  check<T, shape{3, 5, 9}, decimal(5, -1), shape{1, 1, 1}>();
  check<T, shape{3, 5, 9}, decimal(5, -1), shape{3, 5, 9}>();
  check<T, shape{70}, decimal(25, -2), shape{1}>();
}

TEST_CASE("elements that share an element of the noise are kept or dropped together") {
  using operation = dropout<decimal(5, -1), shape{3, 1, 2}>;
  constexpr shape in{3, 4, 2};
  for (int row = 0; row < 3; ++row)
    for (int column = 0; column < 4; ++column)
      for (int channel = 0; channel < 2; ++channel)
        CHECK(operation::noise_of<in>((row * 4 + column) * 2 + channel) == row * 2 + channel);
}

TEST_CASE("random words come in the order of the generator") {
  const philox generator{0xfedcba9876543210u};
  std::uint32_t words[simd::words_at_a_time];
  simd::philox_words(generator, 77, 0x900000001u, words);
  for (int i = 0; i < simd::words_at_a_time; ++i)
    CHECK(words[i] == generator(77 + std::uint64_t(i) / 4, 0x900000001u)[std::size_t(i) % 4]);
}
