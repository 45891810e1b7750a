// Losses: values computed by hand, gradients by differences, and the fused kernels that take logits.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>
#include <strata/losses/binary_focal_crossentropy.hpp>
#include <strata/losses/categorical_focal_crossentropy.hpp>
#include <strata/losses/categorical_hinge.hpp>
#include <strata/losses/cosine_similarity.hpp>
#include <strata/losses/given_gradient.hpp>
#include <strata/losses/hinge.hpp>
#include <strata/losses/huber.hpp>
#include <strata/losses/kl_divergence.hpp>
#include <strata/losses/log_cosh.hpp>
#include <strata/losses/mean_absolute_error.hpp>
#include <strata/losses/mean_absolute_percentage_error.hpp>
#include <strata/losses/mean_squared_error.hpp>
#include <strata/losses/mean_squared_logarithmic_error.hpp>
#include <strata/losses/poisson.hpp>
#include <strata/reference/activations.hpp>
#include <strata/reference/losses.hpp>
#include <unit/gradients.hpp>

using namespace strata;
using namespace strata::core;
using doctest::Approx;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

template <std::size_t N>
std::span<const double> of(const std::array<double, N>& values) {
  return values;
}

template <class L, std::size_t N>
std::array<double, N> gradient(const std::array<double, N>& p, auto truth) {
  std::array<double, N> dx;
  dx.fill(std::nan(""));
  L::gradient(of(p), truth, std::span<double>(dx));
  return dx;
}

}  // namespace

TEST_CASE("crossentropy of probabilities") {
  const std::array p{0.2, 0.5, 0.3};
  using loss = sparse_categorical_crossentropy<>;
  CHECK(loss::value(of(p), 0) == Approx(-std::log(0.2)));
  CHECK(loss::value(of(p), 2) == Approx(-std::log(0.3)));
  SUBCASE("predictions are divided by their sum") {
    CHECK(loss::value(of(std::array{2., 5., 3.}), 1) == Approx(std::log(2.)));
    const auto dx = gradient<loss>(std::array{2., 5., 3.}, 1);
    CHECK(dx[0] == Approx(0.1));
    CHECK(dx[1] == Approx(0.1 - 1 / 5.));
  }
  SUBCASE("probabilities are kept within [1e-7, 1 - 1e-7], where the gradient is zero") {
    CHECK(loss::value(of(std::array{1., 0.}), 1) == Approx(-std::log(1e-7)));
    CHECK(loss::value(of(std::array{1., 0.}), 0) == Approx(-std::log(1 - 1e-7)));
    CHECK(gradient<loss>(std::array{1., 0.}, 1) == std::array{0., 0.});
    CHECK(gradient<loss>(std::array{1., 0.}, 0) == std::array{0., 0.});
    const std::array certain{1.f, 0.f};
    CHECK(loss::value(std::span<const float>(certain), 1) == Approx(-std::log(1e-7)));
    CHECK(loss::value(std::span<const float>(certain), 0) > 0);
  }
  SUBCASE("one-hot rows say the same as classes, and rows may be soft") {
    CHECK(categorical_crossentropy<>::value(of(p), of(std::array{0., 1., 0.})) == Approx(loss::value(of(p), 1)));
    CHECK(categorical_crossentropy<>::value(of(p), of(std::array{0.5, 0.25, 0.})) ==
          Approx(-0.5 * std::log(0.2) - 0.25 * std::log(0.5)));
  }
  SUBCASE("label smoothing") {
    using smoothed = categorical_crossentropy<label_smoothing<0.3_r>>;
    CHECK(smoothed::value(of(p), of(std::array{0., 1., 0.})) ==
          Approx(-0.1 * std::log(0.2) - 0.8 * std::log(0.5) - 0.1 * std::log(0.3)));
  }
  SUBCASE("what is no number stays none") { CHECK(std::isnan(loss::value(of(std::array{0.5, std::nan("")}), 0))); }
}

TEST_CASE("crossentropy from logits") {
  using loss = sparse_categorical_crossentropy<from_logits>;
  const double sum = std::exp(1.) + std::exp(-2.) + std::exp(0.5);
  const std::array z{1., -2., 0.5};
  CHECK(loss::value(of(z), 1) == Approx(std::log(sum) + 2));
  CHECK(gradient<loss>(z, 1)[0] == Approx(std::exp(1.) / sum));
  CHECK(gradient<loss>(z, 1)[1] == Approx(std::exp(-2.) / sum - 1));
  SUBCASE("nothing overflows, nothing is clamped") {
    CHECK(loss::value(of(std::array{1000., -1000.}), 1) == 2000);
    CHECK(loss::value(of(std::array{1000., -1000.}), 0) == 0);
    CHECK(gradient<loss>(std::array{1000., -1000.}, 1) == std::array{1., -1.});
  }
  SUBCASE("a class with logit -infinity does not matter unless it is the label") {
    CHECK(categorical_crossentropy<from_logits>::value(of(std::array{0., -infinity}), of(std::array{1., 0.})) == 0);
    CHECK(loss::value(of(std::array{0., -infinity}), 1) == infinity);
  }
  SUBCASE("rows whose sum is not 1") {
    using dense = categorical_crossentropy<from_logits>;
    CHECK(dense::value(of(z), of(std::array{2., 0., 0.5})) == Approx(2.5 * std::log(sum) - 2 * 1 - 0.5 * 0.5));
    CHECK(gradient<dense>(z, of(std::array{2., 0., 0.5}))[2] == Approx(2.5 * std::exp(0.5) / sum - 0.5));
  }
  SUBCASE("options in any order") {
    using smoothed = categorical_crossentropy<from_logits, label_smoothing<0.3_r>>;
    using other = categorical_crossentropy<label_smoothing<0.3_r>, from_logits>;
    const double expected = 0.8 * std::log(sum) + 0.2 * std::log(sum) - 0.1 * 1 - 0.8 * -2 - 0.1 * 0.5;
    CHECK(smoothed::value(of(z), of(std::array{0., 1., 0.})) == Approx(expected));
    CHECK(other::value(of(z), of(std::array{0., 1., 0.})) == Approx(expected));
  }
}

TEST_CASE("binary crossentropy") {
  const std::array t{1., 0., 0.25};
  CHECK(binary_crossentropy<>::value(of(std::array{0.8, 0.4, 0.5}), of(t)) ==
        Approx(-(std::log(0.8) + std::log(0.6) + std::log(0.5)) / 3));
  CHECK(binary_crossentropy<>::value(of(std::array{0., 1.}), of(std::array{1., 0.})) == Approx(-std::log(1e-7)));
  CHECK(gradient<binary_crossentropy<>>(std::array{0., 1.}, of(std::array{1., 0.})) == std::array{0., 0.});
  SUBCASE("label smoothing is towards one half") {
    using smoothed = binary_crossentropy<label_smoothing<0.2_r>>;
    CHECK(smoothed::value(of(std::array{0.8}), of(std::array{1.})) == Approx(-0.9 * std::log(0.8) - 0.1 * std::log(0.2)));
  }
  SUBCASE("from logits") {
    using loss = binary_crossentropy<from_logits>;
    CHECK(loss::value(of(std::array{0.3}), of(std::array{1.})) == Approx(std::log(1 + std::exp(-0.3))));
    CHECK(loss::value(of(std::array{-0.3}), of(std::array{0.})) == Approx(std::log(1 + std::exp(-0.3))));
    CHECK(loss::value(of(std::array{-800., 800.}), of(std::array{1., 0.})) == 800);
    CHECK(gradient<loss>(std::array{-800., 800.}, of(std::array{1., 0.})) == std::array{-0.5, 0.5});
  }
}

TEST_CASE("losses of numbers") {
  const std::array p{1., -2., 0.5, 4.}, t{1., 1., 1., 1.};
  CHECK(mse::value(of(p), of(t)) == Approx((0 + 9 + 0.25 + 9) / 4));
  CHECK(mae::value(of(p), of(t)) == Approx((0 + 3 + 0.5 + 3) / 4));
  CHECK(huber<>::value(of(p), of(t)) == Approx((0 + 2.5 + 0.125 + 2.5) / 4));
  CHECK(huber<2>::value(of(p), of(t)) == Approx((0 + 4 + 0.125 + 4) / 4));
  CHECK(gradient<mse>(p, of(t)) == std::array{0., -1.5, -0.25, 1.5});
  CHECK(gradient<mae>(p, of(t)) == std::array{0., -0.25, -0.25, 0.25});
  CHECK(gradient<huber<>>(p, of(t)) == std::array{0., -0.25, -0.125, 0.25});
  SUBCASE("as metrics") {
    CHECK(mae::measure(of(p), of(t)) == mae::value(of(p), of(t)));
    CHECK(sparse_categorical_crossentropy<>::measure(of(std::array{0.5, 0.5}), 1) == Approx(std::log(2.)));
  }
}

TEST_CASE("hinges") {
  const std::array p{0.5, 2., -0.5, -3.}, t{1., 1., -1., 1.};
  CHECK(hinge::value(of(p), of(t)) == (0.5 + 0 + 0.5 + 4) / 4);
  CHECK(gradient<hinge>(p, of(t)) == std::array{-0.25, 0., 0.25, -0.25});
  CHECK(squared_hinge::value(of(p), of(t)) == (0.25 + 0 + 0.25 + 16) / 4);
  CHECK(gradient<squared_hinge>(p, of(t)) == std::array{-0.25, 0., 0.25, -2.});
  SUBCASE("a label of 0 is -1") {
    const std::array bits{1., 1., 0., 1.};
    CHECK(hinge::value(of(p), of(bits)) == hinge::value(of(p), of(t)));
    CHECK(gradient<squared_hinge>(p, of(bits)) == gradient<squared_hinge>(p, of(t)));
  }
  SUBCASE("of classes: the right score against the best of the others") {
    const std::array hot{0., 1., 0.}, scores{2., 1.5, -1.}, certain{0., 3., 1.};
    CHECK(categorical_hinge::value(of(scores), of(hot)) == 1.5);
    CHECK(gradient<categorical_hinge>(scores, of(hot)) == std::array{1., -1., 0.});
    CHECK(categorical_hinge::value(of(certain), of(hot)) == 0);
    CHECK(gradient<categorical_hinge>(certain, of(hot)) == std::array{0., 0., 0.});
  }
  SUBCASE("what is no number stays none") {
    CHECK(std::isnan(hinge::value(of(std::array{std::nan("")}), of(std::array{1.}))));
    CHECK(std::isnan(categorical_hinge::value(of(std::array{std::nan(""), 0.}), of(std::array{1., 0.}))));
  }
}

TEST_CASE("the gradient of given_gradient is the truth") {
  CHECK(given_gradient::value(of(std::array{2., 0.5}), of(std::array{3., -4.})) == 4);
  CHECK(gradient<given_gradient>(std::array{2., 0.5}, of(std::array{3., -4.})) == std::array{3., -4.});
}

TEST_CASE("losses with logarithms") {
  CHECK(log_cosh::value(of(std::array{3., 1.}), of(std::array{1., 1.})) == Approx(std::log(std::cosh(2.)) / 2));
  CHECK(log_cosh::value(of(std::array{-2000.}), of(std::array{0.})) == Approx(2000 - std::log(2.)));
  CHECK(poisson::value(of(std::array{2., 0.5}), of(std::array{3., 0.})) == Approx((2 - 3 * std::log(2.) + 0.5) / 2));
  CHECK(msle::value(of(std::array{3.}), of(std::array{1.})) == Approx(std::log(2.) * std::log(2.)));
  CHECK(msle::value(of(std::array{-3.}), of(std::array{0.})) == 0);
  CHECK(gradient<msle>(std::array{-3.}, of(std::array{1.})) == std::array{0.});
  const std::array p{0.5, 0.25, 0.25}, t{0.25, 0.75, 0.};
  CHECK(kl_divergence::value(of(p), of(t)) == Approx(0.25 * std::log(0.5) + 0.75 * std::log(3.)).epsilon(1e-5));
  CHECK(kl_divergence::value(of(p), of(p)) == 0);
  CHECK(gradient<kl_divergence>(std::array{0., 0.5}, of(std::array{0.5, 0.5})) == std::array{0., -1.});
  CHECK(gradient<kl_divergence>(std::array{2., 0.5}, of(std::array{0.5, 0.5})) == std::array{0., -1.});
}

TEST_CASE("percentages, and cosines of angles") {
  CHECK(mape::value(of(std::array{1., 5.}), of(std::array{2., -4.})) == Approx((50 + 225) / 2.));
  CHECK(mape::value(of(std::array{1e-9}), of(std::array{0.})) == Approx(1));
  CHECK(gradient<mape>(std::array{1., 2.}, of(std::array{4., 2.})) == std::array{-12.5, 0.});
  const std::array p{3., 4.}, t{1., 0.};
  CHECK(cosine_similarity::value(of(p), of(t)) == Approx(-0.6));
  CHECK(cosine_similarity::measure(of(p), of(t)) == Approx(0.6));
  CHECK(gradient<cosine_similarity>(p, of(t))[0] == Approx(-0.2 + 0.6 * 3 / 25));
  CHECK(cosine_similarity::value(of(std::array{0., 0.}), of(t)) == 0);
  CHECK(gradient<cosine_similarity>(std::array{0., 0.}, of(t)) == std::array{-1e7, 0.});
}

TEST_CASE("focal crossentropies") {
  const std::array p{0.8, 0.4}, t{1., 0.};
  const double of_one = 0.04 * -std::log(0.8), of_zero = 0.16 * -std::log(0.6);
  CHECK(binary_focal_crossentropy<>::value(of(p), of(t)) == Approx((of_one + of_zero) / 2));
  CHECK(binary_focal_crossentropy<apply_class_balancing>::value(of(p), of(t)) == Approx((0.25 * of_one + 0.75 * of_zero) / 2));
  CHECK(binary_focal_crossentropy<focal_gamma<0>>::value(of(p), of(t)) == Approx(binary_crossentropy<>::value(of(p), of(t))));
  CHECK(binary_focal_crossentropy<from_logits>::value(of(std::array{800., -800.}), of(std::array{0., 0.})) == 400);
  CHECK(gradient<binary_focal_crossentropy<from_logits>>(std::array{800.}, of(std::array{0.})) == std::array{1.});
  using focal = categorical_focal_crossentropy<focal_alpha<0.5_r>, focal_gamma<1>>;
  CHECK(focal::value(of(std::array{0.2, 0.8}), of(std::array{0., 1.})) == Approx(0.5 * 0.2 * -std::log(0.8)));
  CHECK(focal::value(of(std::array{2., 8.}), of(std::array{0., 1.})) == Approx(0.5 * 0.2 * -std::log(0.8)));
  using of_logits = categorical_focal_crossentropy<focal_alpha<0.5_r>, focal_gamma<1>, from_logits>;
  CHECK(of_logits::value(of(std::array{0., 1000.}), of(std::array{1., 0.})) == 500);
  CHECK(gradient<of_logits>(std::array{0., 1000.}, of(std::array{1., 0.})) == std::array{-0.5, 0.5});
}

TEST_CASE("gradients of all losses against differences") {
  using test::check_gradients;
  constexpr test::gradient_options probabilities{.low = 0.05, .high = 0.95};
  check_gradients<reference, sparse_categorical_crossentropy<>, shape{2}>(probabilities);
  check_gradients<reference, sparse_categorical_crossentropy<>, shape{10}>(probabilities);
  check_gradients<reference, sparse_categorical_crossentropy<from_logits>, shape{2}>();
  check_gradients<reference, sparse_categorical_crossentropy<from_logits>, shape{10}>();
  check_gradients<reference, categorical_crossentropy<>, shape{10}>(probabilities);
  check_gradients<reference, categorical_crossentropy<label_smoothing<0.1_r>>, shape{3}>(probabilities);
  check_gradients<reference, categorical_crossentropy<from_logits>, shape{17}>();
  check_gradients<reference, categorical_crossentropy<from_logits, label_smoothing<0.1_r>>, shape{3}>();
  check_gradients<reference, binary_crossentropy<>, shape{1}>(probabilities);
  check_gradients<reference, binary_crossentropy<>, shape{3, 2, 2}>(probabilities);
  check_gradients<reference, binary_crossentropy<label_smoothing<0.1_r>>, shape{5}>(probabilities);
  check_gradients<reference, binary_crossentropy<from_logits>, shape{5}>();
  check_gradients<reference, binary_crossentropy<from_logits, label_smoothing<0.1_r>>, shape{5}>();
  check_gradients<reference, mean_squared_error, shape{1}>();
  check_gradients<reference, mean_squared_error, shape{4, 3}>();
  check_gradients<reference, mean_absolute_error, shape{7}>();
  check_gradients<reference, huber<>, shape{7}>();
  check_gradients<reference, huber<0.25_r>, shape{2, 2, 2}>();
  check_gradients<reference, hinge, shape{7}>();
  check_gradients<reference, squared_hinge, shape{2, 3}>();
  check_gradients<reference, categorical_hinge, shape{5}>();
  check_gradients<reference, log_cosh, shape{3, 2}>();
  check_gradients<reference, given_gradient, shape{2, 3}>();
  check_gradients<reference, poisson, shape{7}>({.low = 0.1, .high = 3});
  check_gradients<reference, mean_absolute_percentage_error, shape{7}>();
  check_gradients<reference, mean_squared_logarithmic_error, shape{7}>();
  check_gradients<reference, kl_divergence, shape{6}>(probabilities);
  check_gradients<reference, cosine_similarity, shape{6}>();
  check_gradients<reference, binary_focal_crossentropy<>, shape{3, 2}>(probabilities);
  check_gradients<reference, binary_focal_crossentropy<apply_class_balancing, focal_gamma<1.5_r>>, shape{5}>(probabilities);
  check_gradients<reference, binary_focal_crossentropy<from_logits, label_smoothing<0.1_r>, focal_gamma<3>>, shape{5}>();
  check_gradients<reference, categorical_focal_crossentropy<>, shape{5}>(probabilities);
  check_gradients<reference, categorical_focal_crossentropy<label_smoothing<0.1_r>, focal_gamma<0.5_r>>, shape{5}>(probabilities);
  check_gradients<reference, categorical_focal_crossentropy<from_logits, focal_alpha<0.5_r>>, shape{5}>();
}

TEST_CASE("gradients of the fused losses against differences") {
  using test::check_gradients;
  check_gradients<reference, fused<softmax, sparse_categorical_crossentropy<>>, shape{2}>();
  check_gradients<reference, fused<softmax, sparse_categorical_crossentropy<>>, shape{10}>();
  check_gradients<reference, fused<softmax, categorical_crossentropy<>>, shape{10}>();
  check_gradients<reference, fused<softmax, categorical_crossentropy<label_smoothing<0.1_r>>>, shape{5}>();
  check_gradients<reference, fused<sigmoid, binary_crossentropy<>>, shape{1}>();
  check_gradients<reference, fused<sigmoid, binary_crossentropy<label_smoothing<0.1_r>>>, shape{2, 3}>();
}

namespace {

/// Applies an activation and a loss to x: with the kernels of both, and with the fused kernel.
template <class Activation, class Loss, shape In>
struct both_ways {
  static constexpr int N = In.size();
  std::array<double, std::size_t(N)> y{}, fused_y{}, dx{}, fused_dx{}, dy{}, scratch{};
  double loss[2] = {}, fused_loss[2] = {};

  both_ways(const double* x, const std::int32_t* labels, const double* targets) {
    using activation = kernel<reference, Activation, precision::f64, In>;
    using last = kernel<reference, Loss, precision::f64, In>;
    using whole = kernel<reference, fused<Activation, Loss>, precision::f64, In>;
    std::array<double, std::size_t(N)> middle{};
    operands<double> o;
    o.count = 1, o.labels = labels, o.targets = targets, o.loss = loss, o.scratch = scratch.data();
    operands<double> first = o, all = o;
    first.x[0] = x, first.y = middle.data();
    activation::forward(first);
    o.x[0] = middle.data(), o.y = y.data(), o.dx[0] = dy.data();
    last::forward(o);
    last::backward(o);
    first.dy = dy.data(), first.dx[0] = dx.data();
    activation::backward(first);
    all.x[0] = x, all.y = fused_y.data(), all.dx[0] = fused_dx.data(), all.loss = fused_loss;
    whole::forward(all);
    whole::backward(all);
  }
  void compare() const {
    CHECK(fused_loss[0] == Approx(loss[0]).epsilon(1e-12));
    CHECK(fused_loss[1] == 1);
    CHECK(loss[1] == 1);
    for (std::size_t i = 0; i < std::size_t(N); ++i) {
      CHECK(fused_y[i] == y[i]);
      CHECK(fused_dx[i] == Approx(dx[i]).epsilon(1e-9));
    }
  }
};

}  // namespace

TEST_CASE("a fused loss equals its parts") {
  const double x[] = {0.3, -1.2, 2.5, 0.9}, row[] = {0.1, 0.7, 0, 0.2};
  const std::int32_t label = 1;
  both_ways<softmax, sparse_categorical_crossentropy<>, shape{4}>(x, &label, nullptr).compare();
  both_ways<softmax, categorical_crossentropy<label_smoothing<0.1_r>>, shape{4}>(x, nullptr, row).compare();
  both_ways<sigmoid, binary_crossentropy<>, shape{4}>(x, nullptr, row).compare();
}

TEST_CASE("a fused loss has a gradient where its parts have none") {
  const double x[] = {60, -60};
  const std::int32_t label = 1;
  const both_ways<softmax, sparse_categorical_crossentropy<>, shape{2}> softmax_ways(x, &label, nullptr);
  CHECK(softmax_ways.dx[1] == 0);
  CHECK(softmax_ways.fused_dx[1] == Approx(-1));
  CHECK(softmax_ways.fused_loss[0] == Approx(120));
  const double truth[] = {0, 1};
  const both_ways<sigmoid, binary_crossentropy<>, shape{2}> sigmoid_ways(x, nullptr, truth);
  CHECK(sigmoid_ways.dx[0] == 0);
  CHECK(sigmoid_ways.fused_dx[0] == Approx(0.5));
  CHECK(sigmoid_ways.fused_loss[0] == Approx(60));
}

TEST_CASE("softmax is not fused with a loss that takes logits") {
  static_assert(has_kernel<reference, fused<softmax, sparse_categorical_crossentropy<>>, precision::f32, shape{4}>);
  static_assert(!has_kernel<reference, fused<softmax, sparse_categorical_crossentropy<from_logits>>, precision::f32, shape{4}>);
  static_assert(!has_kernel<reference, fused<softmax, categorical_crossentropy<from_logits>>, precision::f32, shape{4}>);
  static_assert(!has_kernel<reference, fused<softmax, mean_squared_error>, precision::f32, shape{4}>);
  static_assert(!has_kernel<reference, fused<sigmoid, binary_crossentropy<from_logits>>, precision::f32, shape{4}>);
  static_assert(!has_kernel<reference, fused<sigmoid, mean_squared_error>, precision::f32, shape{4}>);
}

TEST_CASE("without a place for the loss there need be no labels") {
  const float x[] = {1, 2, 3};
  float y[3] = {};
  operands<float> o;
  o.count = 1, o.x[0] = x, o.y = y;
  kernel<reference, mean_squared_error, precision::f32, shape{3}>::forward(o);
  CHECK(y[2] == 3);
  kernel<reference, fused<softmax, sparse_categorical_crossentropy<>>, precision::f32, shape{3}>::forward(o);
  CHECK(y[0] + y[1] + y[2] == Approx(1));
  kernel<reference, fused<sigmoid, binary_crossentropy<>>, precision::f32, shape{3}>::forward(o);
  CHECK(y[0] == Approx(1 / (1 + std::exp(-1.))));
}
