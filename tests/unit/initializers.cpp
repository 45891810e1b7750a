// Initializers: ranges, moments, and the same values for the same seed.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <strata/base/error.hpp>
#include <strata/initializers/constant.hpp>
#include <strata/initializers/glorot.hpp>
#include <strata/initializers/he.hpp>
#include <strata/initializers/lecun.hpp>
#include <strata/initializers/orthogonal.hpp>
#include <strata/initializers/random.hpp>
#include <vector>

#include "larger.hpp"

using namespace strata;
using namespace strata::core;

namespace {

template <initializer I>
std::vector<double> filled(shape s, std::uint64_t seed = 3) {
  std::vector<double> v(std::size_t(s.size()), 1e300);
  I::fill(v, s, philox{seed});
  return v;
}

struct moments {
  double mean = 0, variance = 0, lowest, highest;

  explicit moments(const std::vector<double>& v) : lowest(*std::ranges::min_element(v)), highest(*std::ranges::max_element(v)) {
    for (double x : v) mean += x / double(v.size());
    for (double x : v) variance += (x - mean) * (x - mean) / double(v.size());
  }
};

constexpr shape matrix{300, 200};      // fan_in 300, fan_out 200
constexpr shape image{3, 5, 40, 100};  // fan_in 600, fan_out 1500

/// For 60,000 draws: the mean is within 2 % of the standard deviation, the variance within 3 %.
void check_moments(const std::vector<double>& v, double mean, double variance, double lowest, double highest) {
  const moments m(v);
  CHECK(std::abs(m.mean - mean) < 0.02 * std::sqrt(variance));
  CHECK(m.variance == doctest::Approx(variance).epsilon(0.03));
  CHECK(m.lowest >= lowest);
  CHECK(m.highest <= highest);
  // The values reach both ends of the range.
  CHECK(m.lowest < mean + 0.98 * (lowest - mean));
  CHECK(m.highest > mean + 0.98 * (highest - mean));
}

template <initializer I>
void check_uniform(shape s, double variance) {
  const double limit = std::sqrt(3 * variance);
  check_moments(filled<I>(s), 0, variance, -limit, limit);
}

/// The values are truncated at two standard deviations of the original normal distribution.
template <initializer I>
void check_truncated(shape s, double variance, double mean = 0) {
  const double limit = 2 * std::sqrt(variance) / 0.87962566103423978;
  check_moments(filled<I>(s), mean, variance, mean - limit, mean + limit);
}

}  // namespace

TEST_CASE("fans are those of Keras") {
  CHECK(fans({7, 5}).in == 7);
  CHECK(fans({7, 5}).out == 5);
  CHECK(fans({3, 2, 4, 8}).in == 24);
  CHECK(fans({3, 2, 4, 8}).out == 48);
  CHECK(fans({6}).in == 6);
  CHECK(fans({6}).out == 6);
  CHECK(fans(shape{}).in == 1);
}

TEST_CASE("constants") {
  CHECK(filled<zeros>({2, 3}) == std::vector<double>(6, 0.0));
  CHECK(filled<ones>({4}) == std::vector<double>(4, 1.0));
  CHECK(filled<constant<0.25_r>>({2, 2}) == std::vector<double>(4, 0.25));
  CHECK(filled<constant<>>({2}) == std::vector<double>(2, 0.0));
}

TEST_CASE("variance scaling: uniform") {
  check_uniform<glorot_uniform>(matrix, 2.0 / 500);
  check_uniform<glorot_uniform>(image, 2.0 / 2100);
  check_uniform<he_uniform>(matrix, 2.0 / 300);
  check_uniform<he_uniform>(image, 2.0 / 600);
  check_uniform<lecun_uniform>(matrix, 1.0 / 300);
}

TEST_CASE("variance scaling: truncated normal") {
  check_truncated<glorot_normal>(matrix, 2.0 / 500);
  check_truncated<glorot_normal>(image, 2.0 / 2100);
  check_truncated<he_normal>(matrix, 2.0 / 300);
  check_truncated<lecun_normal>(matrix, 1.0 / 300);
  check_truncated<lecun_normal>(image, 1.0 / 600);
}

TEST_CASE("fixed distributions") {
  check_moments(filled<random_uniform<>>(matrix), 0, 0.1 * 0.1 / 12, -0.05, 0.05);
  check_moments(filled<random_uniform<1_r, 3_r>>(matrix), 2, 4.0 / 12, 1, 3);
  check_truncated<truncated_normal<>>(matrix, std::pow(0.05 * 0.87962566103423978, 2));
  check_truncated<truncated_normal<2_r, 0.5_r>>(matrix, std::pow(0.5 * 0.87962566103423978, 2), 2);

  const moments m(filled<random_normal<1_r, 2_r>>(matrix));
  CHECK(std::abs(m.mean - 1) < 0.04);
  CHECK(m.variance == doctest::Approx(4).epsilon(0.03));
  CHECK(m.highest > 1 + 3.5 * 2);  // it has tails
  CHECK(moments(filled<random_normal<>>(matrix)).variance == doctest::Approx(0.0025).epsilon(0.03));
}

TEST_CASE("a standard normal is normal in shape") {
  const auto v = filled<random_normal<0_r, 1_r>>(matrix);
  const auto below = [&](double z) {
    return double(std::ranges::count_if(v, [&](double x) { return x < z; })) / double(v.size());
  };
  for (double z : {-2.0, -1.0, -0.3, 0.0, 0.5, 1.5, 2.5}) CHECK(std::abs(below(z) - std::erfc(-z / std::sqrt(2.0)) / 2) < 0.01);
}

TEST_CASE("orthogonal") {
  const auto check = [](shape s, const std::vector<double>& v, double gain) {
    const auto columns = std::size_t(s.last()), rows = v.size() / columns, n = std::min(rows, columns);
    double worst = 0;
    for (std::size_t a = 0; a < n; ++a)
      for (std::size_t b = 0; b <= a; ++b) {
        double dot = 0;
        for (std::size_t i = 0; i < std::max(rows, columns); ++i)
          dot += rows < columns ? v[a * columns + i] * v[b * columns + i] : v[i * columns + a] * v[i * columns + b];
        worst = test::larger(worst, std::abs(dot - (a == b ? gain * gain : 0)));
      }
    CHECK(worst < 1e-13);
  };
  check({9, 5}, filled<orthogonal<>>({9, 5}), 1);
  check({5, 9}, filled<orthogonal<>>({5, 9}), 1);
  check({30, 30}, filled<orthogonal<0.5_r>>({30, 30}), 0.5);
  check({3, 3, 4, 8}, filled<orthogonal<>>({3, 3, 4, 8}), 1);
  CHECK_THROWS_WITH_AS(filled<orthogonal<>>({5}), "orthogonal needs a parameter with at least two axes; this one has 1",
                       strata_error);

  // Not only orthogonal but random: no axis is preferred.
  double sum = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) sum += filled<orthogonal<>>({3, 3}, seed)[0];
  CHECK(std::abs(sum / 200) < 0.15);
}

TEST_CASE_TEMPLATE("numbers depend on the generator only", I, glorot_uniform, glorot_normal, he_uniform, he_normal, lecun_uniform,
                   lecun_normal, random_uniform<>, random_normal<>, truncated_normal<>, orthogonal<>) {
  const auto first = filled<I>({5, 7}, 11);
  CHECK(first == filled<I>({5, 7}, 11));
  CHECK(first != filled<I>({5, 7}, 12));
  std::vector<double> sorted = first;
  std::ranges::sort(sorted);
  CHECK(std::ranges::adjacent_find(sorted) == sorted.end());
}
