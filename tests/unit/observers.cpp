// Observers of kernels: check_numerics detects values that are not finite, profiler measures time and writes a trace.
#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <strata/base/json.hpp>
#include <strata/callbacks/check_numerics.hpp>
#include <strata/callbacks/profiler.hpp>
#include <strata/distribute/mirrored.hpp>
#include <strata/strata.hpp>
#include <string>
#include <vector>

#include "error_of.hpp"
#include "scratch_folder.hpp"
using namespace strata;
using namespace strata::core;
using strata::test::contains;
using strata::test::error_of;

namespace {

using net = sequential<input<6, 6, 1>, conv2d<4, 3, relu>, batch_norm<>, max_pool2d<2>, flatten, dense<5, relu>, dense<3>>;
constexpr std::size_t count = 48;

std::vector<float> pixels() {
  std::vector<float> x(count * 36);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(philox{3}.uniform(i));
  return x;
}
auto batches_of(std::vector<float> x) {
  std::vector<int> y(count);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = int(i % 3);
  return data::from_tensor_slices(data::array<float, shape{6, 6, 1}>(std::move(x)), y) | data::batch<24>;
}
auto make(auto... options) {
  return trainer{net{}, sgd{.learning_rate = 0.05}, sparse_categorical_crossentropy<from_logits>{}, options...};
}
/// The error of check_numerics for a training that begins with these weights.
std::string complaint_about(auto&& model, std::vector<float> x = pixels()) {
  const auto batches = batches_of(std::move(x));
  return error_of([&] { model.fit(batches, verbosity::off, check_numerics{}); });
}
/// The trainer with one weight replaced.
auto with_weight(std::size_t slot, float value) {
  auto model = make(one_device{{.threads = 1}});
  std::vector<float> weights(model.parameters().begin(), model.parameters().end());
  weights[std::size_t(layout_of<net::items>.slots[slot].offset) + 1] = value;
  model.set_parameters(weights);
  return model;
}
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();

}  // namespace

TEST_CASE("check_numerics: bad data, with sample and place, whatever the number of threads") {
  std::vector<float> x = pixels();
  x[(24 + 17) * 36 + 5] = not_a_number;
  x[(24 + 20) * 36 + 1] = infinity;
  for (const int threads : {1, 2})
    CHECK(complaint_about(make(one_device{{.threads = threads}}), x) ==
          "check_numerics: epoch 1, update 2: the data is nan at sample 17 of the batch, number 5 (in the data: sample 41)");
  CHECK(complaint_about(make(mirrored{cpus(2), {.leaves = 4}}), x)
            .ends_with("the data is nan at sample 17 of the batch, number 5 (in the data: sample 41)"));
}

TEST_CASE("check_numerics names the row of data that are shuffled") {
  std::vector<float> x = pixels();
  x[41 * 36 + 5] = not_a_number;
  auto model = make(one_device{{.threads = 1}});
  CHECK(error_of([&] {
          model.fit(x, std::vector<int>(count), batch_size(7), verbosity::off, check_numerics{});
        }).ends_with(", number 5 (in the data: sample 41)"));
}

TEST_CASE("check_numerics: the first layer whose output is bad, and the weight that is the reason") {
  CHECK(complaint_about(with_weight(0, infinity)) ==
        "check_numerics: epoch 1, update 1: the output of conv2d (convolution + relu) is inf at sample 0 of the batch, element 1 "
        "of "
        "(4, 4, 4); not finite before this step: conv2d/kernel");
  const std::string dense = complaint_about(with_weight(6, not_a_number));
  CAPTURE(dense);
  CHECK(contains(dense, "the output of dense "));
  CHECK(dense.ends_with("not finite before this step: dense/kernel"));
}

TEST_CASE("check_numerics: a gradient that overflows although all outputs are finite") {
  // The gradient of a weight is the sum of x / 2 over four samples.
  const std::vector<float> x(24, 3e38f), y(24, 0.0f);
  const auto data = data::from_tensor_slices(data::array<float, shape{2}>(x), data::array<float, shape{2}>(y)) | data::batch<4>;
  // The loss of the first step is finite, so that several steps of one execution end later, where outputs are bad, too.
  for (const long steps : {3, 1}) {
    trainer model{sequential<input<2>, dense<2, no_bias>>{}, sgd{.learning_rate = 1e-30}, mean_absolute_error{},
                  one_device{{.threads = 1, .leaves = 1}}};
    model.set_parameters(std::vector<float>(model.parameters().size(), 1e-30f));
    CHECK(
        error_of([&] { model.fit(data, steps_per_execution(steps), verbosity::off, check_numerics{}); }) ==
        "check_numerics: epoch 1, update 1: the gradient of dense/kernel is inf at element 0, after samples 0 to 3 of the batch");
  }
}

TEST_CASE("observers change no bit, and a fit that ended with an error leaves none") {
  const auto batches = batches_of(pixels());
  auto plain = make(), observed = make();
  plain.fit(batches, epochs(2), verbosity::off);
  observed.fit(batches, epochs(2), verbosity::off, check_numerics{}, profiler{.prints = false});
  CHECK(std::ranges::equal(plain.parameters(), observed.parameters()));

  auto broken = with_weight(0, not_a_number);
  {
    check_numerics checks;
    CHECK(error_of([&] { broken.fit(batches, verbosity::off, checks); }) != "no error");
  }
  CHECK(contains(error_of([&] { broken.fit(batches, verbosity::off); }), "loss is nan"));
}

TEST_CASE("profiler: each kernel, as often as it runs") {
  const auto batches = batches_of(pixels());
  profiler profile{.skipped_steps = 2, .prints = false};
  auto model = make(one_device{{.threads = 2}});
  model.fit(batches, epochs(3), verbosity::off, profile);
  CHECK(profile.steps() == 4);
  CHECK(profile.peak() > 0);
  REQUIRE(profile.kernels().size() == 5);
  double multiply_adds = 0;
  for (std::size_t k = 0; k < profile.kernels().size(); ++k) {
    INFO(profile.kernels()[k].layers);
    for (const pass_direction direction : {pass_direction::forward, pass_direction::backward}) {
      CHECK(profile.time_of(k, direction).samples == 4 * 24);
      CHECK(profile.time_of(k, direction).seconds > 0);
    }
    multiply_adds += profile.kernels()[k].multiply_adds;
  }
  CHECK(multiply_adds == 4 * 4 * 4 * 9 + 16 * 5 + 5 * 3);
  CHECK(profile.kernels()[0].flops(false) == 2 * 4 * 4 * 4 * 9);
  CHECK(profile.kernels()[0].flops(true) == 2 * 4 * 4 * 4 * 9);  // no gradient of the data
  CHECK(profile.kernels()[3].flops(true) == 2 * 2 * 16 * 5);
  CHECK(profile.kernels()[3].elements(false, 10, 2) == 10 * (16 + 5) + 2 * (16 * 5 + 5));
  CHECK(contains(profile.text(), "profile of 4 steps of "));
  CHECK(contains(profile.text(), "dense_1"));
}

TEST_CASE("profiler: the trace has the steps that were asked for, and their kernels on rows of their threads") {
  const test::scratch_folder folder("profiler");
  const std::filesystem::path path = folder.path / "trace.json";
  auto model = make(one_device{{.threads = 1}});
  model.fit(batches_of(pixels()), epochs(4), verbosity::off,
            profiler{.skipped_steps = 1, .trace = path, .traced_steps = 3, .prints = false});
  std::ifstream in(path);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const auto occurrences = [&](const std::string& part) {
    int n = 0;
    for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++n;
    return n;
  };
  CHECK(occurrences("\"cat\":\"step\"") == 3);
  CHECK(occurrences("\"name\":\"update 2\"") == 1);
  CHECK(occurrences("\"name\":\"dense_1\",\"cat\":\"backward\"") >= 3);
  CHECK(occurrences("\"thread_name\"") == 1);
  CHECK(text.ends_with("]}\n"));
  CHECK(contains(error_of([&] {
                   make().fit(batches_of(pixels()), verbosity::off,
                              profiler{.trace = folder.path / "no" / "folder" / "t.json", .prints = false});
                 }),
                 "t.json"));
}
