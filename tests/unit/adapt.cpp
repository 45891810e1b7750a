// trainer::adapt: mean and variance of each feature, as Keras' Normalization.adapt computes them.
#include <doctest/doctest.h>

#include <cmath>
#include <iostream>
#include <sstream>
#include <strata/data/views/shard.hpp>
#include <strata/strata.hpp>
#include <string>
#include <vector>

#include "error_of.hpp"
using namespace strata;
using namespace strata::core;
using test::error_of;

namespace {

using linear_model = sequential<input<3>, normalization, dense<1>>;

/// `count` samples of three features: one with mean 5, one far from 0, one constant.
std::vector<float> features(int count) {
  std::vector<float> x;
  for (int i = 0; i < count; ++i) {
    const float u = float(philox{1}.uniform(std::uint64_t(i)));
    x.insert(x.end(), {5 + 4 * u, 1e3F + u, 0.1F});
  }
  return x;
}

template <class Net, class P = precision::f32>
auto model_of(P p = {}) {
  return trainer{Net{}, sgd{.learning_rate = 0.1}, mean_squared_error{}, p};
}
auto array_of(const std::vector<float>& x) { return data::array<float, shape{3}>(x); }

/// A user's source that yields nothing.
struct no_batches {
  using value_type = samples<float>;
  static constexpr int batch_size = 4;
  static constexpr shape sample_shape{3}, target_shape{};
  static constexpr label_kind labels = label_kind::none;
  const value_type* begin() const { return nullptr; }
  const value_type* end() const { return nullptr; }
};

}  // namespace

TEST_CASE_TEMPLATE("adapt computes mean and variance of each feature, whatever the batches are", P, precision::f32,
                   precision::f64) {
  const std::vector<float> x = features(1001);
  const auto& layout = layout_of<linear_model::items>;
  const auto check = [&](auto batched) {
    auto model = model_of<linear_model>(P{});
    model.adapt(data::from_tensor_slices(array_of(x)) | batched);
    for (int c = 0; c < 3; ++c) {
      double mean = 0, variance = 0;
      for (std::size_t i = 0; i < 1001; ++i) mean += double(x[3 * i + std::size_t(c)]) / 1001;
      for (std::size_t i = 0; i < 1001; ++i) variance += std::pow(double(x[3 * i + std::size_t(c)]) - mean, 2) / 1001;
      CAPTURE(c);
      using T = typename P::value_type;
      const double precision = sizeof(T) == 4 ? 1e-6 : 1e-12;
      CHECK(double(model.parameters()[std::size_t(layout.slots[0].offset + c)]) == doctest::Approx(mean).epsilon(precision));
      CHECK(double(model.parameters()[std::size_t(layout.slots[1].offset + c)]) == doctest::Approx(variance).epsilon(precision));
    }
  };
  check(data::batch<1>);
  check(data::batch<100>);  // the last one has one sample
  check(data::batch<1001>);
  CHECK(std::string(layout.slots[0].what.name) == "mean");
  CHECK(std::string(layout.slots[1].what.name) == "variance");
}

TEST_CASE("the layer passes on features of mean 0 and variance 1, and a constant one as zeros") {
  using net = sequential<input<3>, normalization>;
  const std::vector<float> x = features(500);
  auto model = model_of<net>();
  CHECK(model.predict(data::from_tensor_slices(array_of(x)) | data::batch<64>).values == x);  // not adapted: the identity
  model.adapt(data::from_tensor_slices(array_of(x)) | data::batch<64>);
  const std::vector<float> y = model.predict(data::from_tensor_slices(array_of(x)) | data::batch<64>).values;
  for (std::size_t c = 0; c < 3; ++c) {
    double mean = 0, variance = 0;
    for (std::size_t i = 0; i < 500; ++i)
      mean += double(y[3 * i + c]) / 500, variance += double(y[3 * i + c] * y[3 * i + c]) / 500;
    CHECK(mean == doctest::Approx(0).epsilon(1e-3));
    CHECK(variance == doctest::Approx(c < 2 ? 1 : 0).epsilon(1e-3));
  }
}

TEST_CASE("a constant number of double has variance 0, although sums of it are rounded") {
  using net = sequential<input<1>, normalization, dense<1>>;
  const auto& layout = layout_of<net::items>;
  for (const double constant : {1700000000.3, 1e9 / 7, 0.1}) {
    trainer model{net{}, adam{}, mean_squared_error{}, precision::f64{}};
    const auto all = data::from_tensor_slices(data::array<double, shape{1}>(std::vector<double>(1001, constant)),
                                              std::vector<double>(1001, 0.0));
    model.adapt(all | data::batch<77, double>);
    CHECK(model.parameters()[std::size_t(layout.slots[0].offset)] == constant);
    CHECK(model.parameters()[std::size_t(layout.slots[1].offset)] == 0);
  }
}

TEST_CASE("training leaves mean and variance as they are, and diverges without adapt") {
  const std::vector<float> x = features(200);
  std::vector<float> y;
  for (std::size_t i = 0; i < 200; ++i) y.push_back(3 * (x[3 * i] - 7));
  auto model = model_of<linear_model>();
  model.adapt(data::from_tensor_slices(array_of(x)) | data::batch<20>);
  const auto offset = std::size_t(layout_of<linear_model::items>.slots[0].offset);
  const std::vector<float> before(model.parameters().begin() + std::ptrdiff_t(offset), model.parameters().end());
  const auto loss_of = [&](auto& trained) {
    return trained.fit(data::from_tensor_slices(array_of(x), y) | data::batch<20>, epochs(20), verbosity::off)["loss"].back();
  };
  CHECK(loss_of(model) < 1e-3);
  CHECK(before == std::vector<float>(model.parameters().begin() + std::ptrdiff_t(offset), model.parameters().end()));
  auto not_adapted = model_of<linear_model>();
  CHECK(error_of([&] { loss_of(not_adapted); }).find("the loss is inf") != std::string::npos);
}

TEST_CASE("an image has a mean per channel, and a flat one a mean per pixel; both adapt in one pass") {
  using net = sequential<input<2, 2, 1>, concat<branch<normalization, flatten>, branch<flatten, normalization>>, dense<1>>;
  const std::vector<float> x{0, 1, 2, 3, 4, 5, 6, 7};
  auto model = model_of<net>();
  model.adapt(data::from_tensor_slices(data::array<float, shape{2, 2, 1}>(x)) | data::batch<1>);
  const auto& layout = layout_of<net::items>;
  const auto at = [&](int slot, int i) { return model.parameters()[std::size_t(layout.slots[slot].offset + i)]; };
  CHECK(at(0, 0) == 3.5F);
  CHECK(at(1, 0) == 5.25F);
  for (int i = 0; i < 4; ++i) {
    CHECK(at(2, i) == float(i + 2));
    CHECK(at(3, i) == 4.F);
  }
}

TEST_CASE("columns of a sample have the mean of these features alone") {
  using net = sequential<input<2, 4>, concat<branch<columns<1, 2>, normalization>, branch<columns<0, 1>>>, flatten, dense<1>>;
  const std::vector<float> x{90, 0, 10, 80, 70, 2, 20, 60, 50, 4, 30, 40, 30, 6, 40, 20};
  auto model = model_of<net>();
  model.adapt(data::from_tensor_slices(data::array<float, shape{2, 4}>(x)) | data::batch<1>);
  const auto& layout = layout_of<net::items>;
  const auto at = [&](int slot, int i) { return model.parameters()[std::size_t(layout.slots[slot].offset + i)]; };
  CHECK(at(0, 0) == 3.F);
  CHECK(at(0, 1) == 25.F);
  CHECK(at(1, 0) == 5.F);
  CHECK(at(1, 1) == 125.F);
}

TEST_CASE("adapt says what is wrong with the data, and changes nothing") {
  std::vector<float> x = features(10);
  auto model = model_of<linear_model>();
  const std::vector<float> before(model.parameters().begin(), model.parameters().end());
  const auto adapt_to = [&](auto view) { return error_of([&] { model.adapt(view | data::batch<4>); }); };
  CHECK(adapt_to(data::from_tensor_slices(array_of(x)) | data::take(0)) == "batch<4>: the data set is empty");
  CHECK(adapt_to(data::from_tensor_slices(array_of(x)) | data::shard(2, 0)) ==
        "adapt: this process would read a share of the data: adapt before shard");
  CHECK(error_of([&] { model.adapt(no_batches{}); }) == "adapt: the data set has no samples");
  x[8] = 1e20F;  // its square is no float
  CHECK(adapt_to(data::from_tensor_slices(array_of(x))) == "adapt: feature 2 is nan, infinite or too large for the precision");
  x[7] = std::nanf("");
  CHECK(adapt_to(data::from_tensor_slices(array_of(x))) == "adapt: feature 1 is nan, infinite or too large for the precision");
  CHECK(before == std::vector<float>(model.parameters().begin(), model.parameters().end()));
}

TEST_CASE("what is too large for float is not for double") {
  std::vector<float> x = features(10);
  x[8] = 1e20F;
  auto model = model_of<linear_model>(precision::f64{});
  model.adapt(data::from_tensor_slices(array_of(x)) | data::batch<10>);
  const auto variance = std::size_t(layout_of<linear_model::items>.slots[1].offset + 2);
  CHECK(model.parameters()[variance] == doctest::Approx(0.09e40));
}

namespace {
/// The text that fit writes to std::clog for samples of `size` elements that are all `value`.
template <bool Adapts = false, class Net>
std::string said_by(Net net, float value = 1) {
  trainer model{net, sgd{.learning_rate = 0}, mean_squared_error{}};
  const std::vector<float> x(std::size_t(4 * Net::input_shape.size()), value), y(4);
  if constexpr (Adapts) model.adapt(data::from_tensor_slices(data::array<float, Net::input_shape>(x)) | data::batch<4>);
  std::ostringstream log, progress;
  std::streambuf *const clog = std::clog.rdbuf(log.rdbuf()), *const cout = std::cout.rdbuf(progress.rdbuf());
  for (int k = 0; k < 2; ++k) model.fit(x, y, verbosity::line);
  std::clog.rdbuf(clog), std::cout.rdbuf(cout);
  return log.str();
}
}  // namespace

TEST_CASE("fit says once which layer normalization changes nothing") {
  (void)said_by(sequential<input<1>, dense<1>>{});  // takes the notice of speed
  CHECK(said_by<true>(sequential<input<2>, normalization, dense<1>>{}).empty());
  CHECK(said_by(sequential<input<5>, normalization, dense<1>>{}) ==
        "normalization changes nothing, because its mean is 0 and its variance 1: adapt(data) of the trainer sets both, before "
        "fit\n");
  const std::string within = said_by(sequential<input<3>, dense<2>, normalization, dense<1>>{});
  CHECK(within.find("adapt sets only if a normalization receives the data unchanged") != within.npos);
}

TEST_CASE("fit says once that inputs look like pixels") {
  detail::pixel_notice_was_given = false;  // another file of this program may have set it
  (void)said_by(sequential<input<1>, dense<1>>{});
  CHECK(said_by(sequential<input<8, 8, 1>, flatten, dense<1>>{}, 0.5f).empty());
  CHECK(said_by(sequential<input<8, 8, 1>, flatten, dense<1>>{}, 100).empty());
  CHECK(said_by(sequential<input<7, 7, 1>, flatten, dense<1>>{}, 255).empty());
  CHECK(said_by(sequential<input<8, 8, 1>, batch_norm<>, flatten, dense<1>>{}, 255).empty());
  CHECK(said_by(sequential<input<8, 8, 1>, flatten, dense<1>>{}, 255) == std::string(detail::pixel_notice) + '\n');
  CHECK(said_by(sequential<input<8, 8, 1>, flatten, dense<1>>{}, 255).empty());
}
