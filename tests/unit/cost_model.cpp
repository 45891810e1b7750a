// The cost model of bench/large_models.cpp: its arithmetic is that of strata's plans and timetables, and of the papers.
#include <doctest/doctest.h>

#include <cmath>
#include <strata/distribute/process_memory.hpp>
#include <strata/program/timetable.hpp>
#include <strata/strata.hpp>
#include <string_view>

#include "../../bench/large_models/published.hpp"

using namespace strata;
using bench::mesh;

namespace {
doctest::Approx about(double value, double share = 1e-3) { return doctest::Approx(value).epsilon(share); }

using squares = sequential<input<1024>, dense<1024, relu>, dense<1024, relu>, dense<1024, relu>, dense<1024>>;
using training = program<squares, mean_squared_error, adam, type_list<>>;
constexpr bench::dense_network squares_in_the_model{4, 1024};
constexpr bench::bytes_of_parameter in_float{4, 4, 8};

template <int Stage>
constexpr process_memory planned = process_memory_of<training, zero<Stage>>({.batch = 64, .processes = 4, .leaves = 4});
constexpr bench::state_memory modelled(int stage) {
  return bench::state_memory_of(squares_in_the_model.parameters(), in_float, stage, 4);
}
}  // namespace

TEST_CASE("memory of parameters and slots is that of process_memory_of") {
  CHECK(squares_in_the_model.parameters() == layout_of_program<training>.trainable);
  CHECK(double(planned<0>.parameters) == modelled(0).parameters);
  CHECK(double(planned<0>.slots) == modelled(0).slots);
  CHECK(double(planned<1>.parameters) == modelled(1).parameters);
  CHECK(double(planned<1>.slots) == about(modelled(1).slots));
  // Each segment is cut by itself, in whole pieces.
  CHECK(double(planned<2>.slots) == about(modelled(2).slots, 0.005));
  CHECK(double(planned<3>.slots) == about(modelled(3).slots, 0.005));
  // Two segments are there whole, besides the slice.
  constexpr long window = plan_of<training, zero<3>::backend<default_backend>>.largest_segment();
  CHECK(double(planned<3>.parameters - 2 * window * 4) == about(modelled(3).parameters, 0.005));
}

TEST_CASE("strata keeps the gradient of a leaf besides the sum") {
  CHECK(double(planned<0>.gradients) == 2 * modelled(0).gradients);
  CHECK(double(planned<1>.gradients) == about(modelled(1).gradients + modelled(2).gradients));
}

TEST_CASE("the bubble is that of the timetables") {
  CHECK(bench::bubble(2, 4) == about(one_forward_one_backward::table<2, 4>().bubble(), 1e-9));
  CHECK(bench::bubble(4, 8) == about(one_forward_one_backward::table<4, 8>().bubble(), 1e-9));
  CHECK(bench::bubble(4, 8) == about(gpipe::table<4, 8>().bubble(), 1e-9));
  CHECK(bench::bubble(4, 8, 2) == about(interleaved<2>::table<8, 8>().bubble(), 1e-9));
  // predict() waits for so long, where nothing but the pipeline takes time
  const mesh by{.pipeline = 4, .micro_batch = 1, .computed_again = mesh::nothing};
  const bench::prediction p = predict(squares_in_the_model, 8, by, bench::a100);
  CHECK(p.waiting / (p.waiting + p.computing) == about(bench::bubble(4, 8), 1e-9));
}

TEST_CASE("parameters and operations are those of the papers") {
  // Narayanan et al., table 1, in billions
  CHECK(bench::transformer{24, 2304, 24}.parameters() / 1e9 == about(1.7, 0.02));
  CHECK(bench::transformer{80, 12288, 96}.parameters() / 1e9 == about(145.6));
  CHECK(bench::transformer{128, 25600, 160}.parameters() / 1e9 == about(1008.0));
  // Their equation 3: 96 B s l h^2 (1 + s / 6h + V / 16lh)
  const double l = 48, h = 8192, s = 2048, V = 51200, B = 3;
  CHECK(bench::transformer{l, h, 64}.operations_with_recomputation(B) ==
        about(96 * B * s * l * h * h * (1 + s / (6 * h) + V / (16 * l * h)), 1e-12));
  // Chowdhery et al.: 540.35 billion
  for (const bench::measurement& m : bench::published)
    if (m.on == &bench::tpu_v4) CHECK(m.network.parameters() / 1e9 == about(540.35));
}

TEST_CASE("memory of the stages of zero is that of Rajbhandari et al., table 1") {
  const auto gigabytes = [](double billions, int stage, int data) {
    return bench::state_memory_of(billions * 1e9, {}, stage, data).total() / 1e9;
  };
  CHECK(gigabytes(7.5, 0, 64) == about(120));
  CHECK(gigabytes(7.5, 1, 64) == about(31.4, 0.005));
  CHECK(gigabytes(7.5, 2, 64) == about(16.6, 0.005));
  CHECK(gigabytes(7.5, 3, 64) == about(1.88, 0.005));
  CHECK(gigabytes(128, 2, 16) == about(368));
  CHECK(gigabytes(1000, 3, 1024) == about(15.6, 0.005));
}

TEST_CASE("a ring sends all bytes twice, less a share") {
  CHECK(bench::ring(1, 1e9, {1e9, 1}) == 0);
  CHECK(bench::ring(2, 1e9, {1e9, 0}) == about(1));
  CHECK(bench::ring(1000, 1e9, {1e9, 0}) == about(2));
  CHECK(bench::ring(4, 0, {1e9, 1e-6}) == about(6e-6));
}

TEST_CASE("predictions are within 13 % of the papers on Megatron-LM, and within 28 % of others") {
  for (const bench::measurement& m : bench::published) {
    CAPTURE(m.source);
    CAPTURE(m.name);
    const std::string_view source = m.source;
    CHECK(std::abs(bench::error(m, {})) < (source.starts_with("M21") || source.starts_with("K22") ? 0.13 : 0.28));
  }
}
