#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <map>
#include <strata/data/image/random_contrast.hpp>
#include <strata/data/image/random_flip.hpp>
#include <strata/data/image/random_rotation.hpp>
#include <strata/data/image/random_translation.hpp>
#include <strata/data/image/random_zoom.hpp>
#include <strata/data/sources/from_tensor_slices.hpp>
#include <strata/data/views/batch.hpp>
#include <strata/data/views/cache.hpp>
#include <strata/data/views/one_hot.hpp>
#include <strata/data/views/repeat.hpp>
#include <strata/data/views/scale.hpp>
#include <strata/data/views/shuffle.hpp>
#include <strata/data/views/skip.hpp>
#include <strata/data/views/zip.hpp>
#include <thread>

#include "error_of.hpp"
using namespace strata;
using namespace strata::core;
using namespace strata::data;
using strata::test::error_of;

namespace {

constexpr shape small{5, 7, 3};

/// Images with different elements; the label of an image is its index.
template <shape S = small>
auto images(int n) {
  std::vector<std::uint8_t> values;
  for (std::uint32_t i = 0; i < std::uint32_t(n * S.size()); ++i) values.push_back(std::uint8_t(i * 2654435761u >> 23));
  std::vector<int> labels;
  for (int i = 0; i < n; ++i) labels.push_back(i);
  return from_tensor_slices(array<std::uint8_t, S>(values), labels);
}

/// The pixels of each sample, by label. (Without batch, which would make this file slow to compile.)
template <class V>
std::map<int, std::vector<float>> pixels_of(V view, int epoch = 0) {
  view.set_epoch(epoch);
  std::map<int, std::vector<float>> all;
  for (const sample_index i : view) {
    std::vector<float> x(std::size_t{rows_t<V>::sample_shape.size()});
    std::int32_t label = -1;
    view.rows().write(i, i, sample_place<float>{x.data(), &label, nullptr}, std::identity{});
    all[label] = std::move(x);
  }
  return all;
}

/// One image after it has passed a stage.
template <shape S, class Stage>
std::vector<float> after(const std::vector<float>& image, Stage stage) {
  return pixels_of(from_tensor_slices(array<float, S>(image), std::vector{0}) | stage).at(0);
}

/// Calls f with every stage, in a mode that uses all its random numbers.
template <class F>
void with_each_stage(F f) {
  f(random_flip(), random_flip(flip_mode::horizontal_and_vertical, {.seed = 1}));
  f(random_translation(0.4, 0.4), random_translation(0.4, 0.4, {.seed = 1}));
  f(random_rotation(0.3), random_rotation(0.3, {.seed = 1}));
  f(random_zoom(0.4, 0.2), random_zoom(0.4, 0.2, {.seed = 1}));
  f(random_zoom(0.4), random_zoom(0.4, {.seed = 1}));
  f(random_contrast(0.5), random_contrast(0.5, {.seed = 1}));
}

}  // namespace

TEST_CASE("what a sample becomes depends on seed, epoch and sample alone") {
  with_each_stage([](auto stage, auto other_seed) {
    const auto first = pixels_of(images(30) | stage);
    CHECK(first.size() == 30);
    CHECK(first == pixels_of(images(30) | data::shuffle(30, {.seed = 3}) | stage));
    CHECK(first == pixels_of(images(30) | stage | data::shuffle(30, {.seed = 3})));
    CHECK(first != pixels_of(images(30) | stage, 1));
    CHECK(first != pixels_of(images(30) | other_seed));
    CHECK(pixels_of(images(30) | stage, 5) == pixels_of(images(30) | data::shuffle(9) | stage, 5));
  });
}

TEST_CASE("the description of a data set has the numbers of a stage") {
  const auto order = [](auto stage) { return data::detail::order_of(images(30) | stage); };
  with_each_stage([&](auto stage, auto other_seed) {
    CHECK(order(stage) == order(stage));
    CHECK(order(stage) != order(other_seed));
  });
  CHECK(order(random_flip(flip_mode::vertical)) != order(random_flip(flip_mode::horizontal)));
  CHECK(order(random_zoom(0.4, 0.2)) != order(random_zoom(0.4, 0.3)));
  CHECK(order(random_zoom(0.4)) != order(random_zoom(0.4, 0.4)));
  CHECK(order(random_translation(0.4, 0.1)) != order(random_translation(0.4, 0.2)));
  CHECK(order(random_rotation(0.3, {.fill_value = 1})) != order(random_rotation(0.3)));
  CHECK(order(random_rotation(0.3, {.fill_mode = fill_mode::wrap})) != order(random_rotation(0.3)));
  CHECK(order(random_contrast(0.5, {.value_range = {0, 1}})) != order(random_contrast(0.5)));
}

TEST_CASE("epoch after epoch, in batches") {
  const auto view = images(30) | random_flip() | random_rotation(0.1);
  auto batches = view | batch<8>;
  for (int epoch = 0; epoch < 3; ++epoch) {
    const auto expected = pixels_of(view, epoch);
    for (const auto& b : batches)
      for (int i = 0; i < b.count; ++i) {
        const std::vector<float>& values = expected.at(b.labels()[i]);
        REQUIRE(std::equal(values.begin(), values.end(), b.x() + i * small.size()));
      }
  }
}

TEST_CASE("several threads write the same pixels") {
  with_each_stage([](auto stage, auto) {
    const auto view = images(64) | stage;
    const auto expected = pixels_of(view);
    std::atomic<int> wrong = 0;
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        std::vector<float> x(std::size_t{small.size()});
        for (std::uint32_t k = 0; k < 64; ++k) {
          const std::uint32_t row = (k * 17 + t * 5) % 64;
          std::int32_t label = -1;
          view.rows().write({row, 0}, {row, 0}, sample_place<float>{x.data(), &label, nullptr}, std::identity{});
          if (label != int(row) || x != expected.at(int(row))) ++wrong;
        }
      });
    for (std::thread& t : threads) t.join();
    CHECK(wrong == 0);
  });
}

TEST_CASE("labels stay; what comes later sees the numbers of the result") {
  with_each_stage([](auto stage, auto) {
    const auto plain = pixels_of(images(16) | stage);
    auto doubled = pixels_of(images(16) | stage | scale(2));
    for (auto& [label, values] : doubled)
      for (float& v : values) v /= 2;
    CHECK(doubled == plain);

    const auto dense = images(16) | one_hot<16> | stage;
    for (std::uint32_t i = 0; i < 16; ++i) {
      std::vector<float> x(std::size_t{small.size()}), target(16), expected(16);
      expected[i] = 1;
      dense.rows().write({i, 0}, {i, 0}, sample_place<float>{x.data(), nullptr, target.data()}, std::identity{});
      CHECK(x == plain.at(int(i)));
      CHECK(target == expected);
    }
  });
  // Two stages: the second changes the output of the first.
  const auto turned =
      pixels_of(images(8) | random_flip(flip_mode::horizontal) | random_translation(0.3, 0.3) | random_contrast(0.4));
  CHECK(turned != pixels_of(images(8) | random_translation(0.3, 0.3) | random_contrast(0.4)));
  CHECK(turned.size() == 8);
}

TEST_CASE("types, and what a cache must not keep") {
  using source = decltype(images(1));
  using flipped = rows_t<decltype(images(1) | random_flip())>;
  using moved = rows_t<decltype(images(1) | random_zoom(0.1) | scale(2))>;
  static_assert(std::same_as<flipped::value_type, std::uint8_t> && std::same_as<moved::value_type, float>);
  static_assert(flipped::properties.is_random && moved::properties.is_random && !rows_t<source>::properties.is_random);
  static_assert(sample_view<decltype(images(1) | random_contrast(0.1))>);
  static_assert(std::ranges::random_access_range<decltype(images(1) | random_flip())>);
  CHECK((images(9) | random_flip() | random_rotation(0.1)).size() == 9);
}

TEST_CASE("random_flip: half of all, each way by itself") {
  std::vector<float> image(6);
  for (std::size_t i = 0; i < 6; ++i) image[i] = float(i);
  constexpr shape s{2, 3, 1};
  const std::vector<float> across{2, 1, 0, 5, 4, 3}, down{3, 4, 5, 0, 1, 2}, both{5, 4, 3, 2, 1, 0};
  std::vector<float> many;
  for (int i = 0; i < 4000; ++i) many.insert(many.end(), image.begin(), image.end());
  const auto count = [&](flip_mode mode) {
    std::map<std::vector<float>, int> found;
    for (const auto& b : from_tensor_slices(array<float, s>(many)) | random_flip(mode) | batch<1>)
      ++found[std::vector<float>(b.x(), b.x() + 6)];
    return found;
  };
  auto horizontal = count(flip_mode::horizontal), vertical = count(flip_mode::vertical),
       all = count(flip_mode::horizontal_and_vertical);
  CHECK(horizontal.size() == 2);
  CHECK(std::abs(horizontal[across] - 2000) < 150);
  CHECK(vertical.size() == 2);
  CHECK(std::abs(vertical[down] - 2000) < 150);
  CHECK(all.size() == 4);
  for (const auto& kind : {image, across, down, both}) CHECK(std::abs(all[kind] - 1000) < 130);
}

TEST_CASE("flips of images of any number of channels") {
  const auto check = []<int Channels>() {
    constexpr shape s{3, 9, Channels};
    std::vector<float> in(std::size_t{s.size()}), out(std::size_t{s.size()} + 1, -1.0f);
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = float(i);
    flip_left_right(tensor<const float, s>{in.data()}, tensor<float, s>{out.data()});
    const tensor<const float, s> from{in.data()};
    const tensor<float, s> to{out.data()};
    for (int y = 0; y < 3; ++y)
      for (int x = 0; x < 9; ++x)
        for (int c = 0; c < Channels; ++c) REQUIRE(to(y, x, c) == from(y, 8 - x, c));
    CHECK(out.back() == -1);  // nothing after the image is written
  };
  check.operator()<1>();
  check.operator()<2>();
  check.operator()<3>();
  check.operator()<4>();
  check.operator()<5>();
}

TEST_CASE("factors mean what they mean in Keras") {
  constexpr shape s{4, 4, 1};
  std::vector<float> image;
  for (int i = 0; i < 16; ++i) image.push_back(float(i * i));
  const auto at = [&](const std::vector<float>& v, int y, int x) { return v[std::size_t(y * 4 + x)]; };

  // Moves by half the height down, and by a quarter of the width to the left.
  const auto moved =
      after<s>(image, random_translation({0.5, 0.5}, {-0.25, -0.25}, {.fill_mode = fill_mode::constant, .fill_value = -1}));
  for (int y = 0; y < 4; ++y)
    for (int x = 0; x < 4; ++x) CHECK(at(moved, y, x) == (y < 2 || x == 3 ? -1 : at(image, y - 2, x + 1)));
  // Rotates by 90 degrees, counter-clockwise.
  const auto turned = after<s>(image, random_rotation({0.25, 0.25}));
  for (int y = 0; y < 4; ++y)
    for (int x = 0; x < 4; ++x) CHECK(at(turned, y, x) == doctest::Approx(at(image, x, 3 - y)).epsilon(1e-4));
  // Zooms out by a factor of two: the middle becomes half as large.
  const auto smaller = after<s>(image, random_zoom({1, 1}, {.fill_mode = fill_mode::constant, .fill_value = -1}));
  CHECK(at(smaller, 0, 0) == -1);
  CHECK(at(smaller, 1, 1) == doctest::Approx((at(image, 0, 0) + at(image, 0, 1) + at(image, 1, 0) + at(image, 1, 1)) / 4));
  CHECK(after<s>(image, random_zoom({0, 0})) == image);
  // Only the height, if the width has a factor of its own.
  const auto flat = after<s>(image, random_zoom({1, 1}, {0, 0}, {.fill_mode = fill_mode::nearest}));
  CHECK(at(flat, 1, 2) == doctest::Approx((at(image, 0, 2) + at(image, 1, 2)) / 2));
  // Contrast: no factor, nothing happens; {1, 0} goes down to the mean of the image.
  CHECK(after<s>(image, random_contrast({0, 0})) == image);

  // The drawn values fill the range, and do not exceed it.
  std::vector<float> many;
  for (int i = 0; i < 3000; ++i) many.insert(many.end(), {0, 0, 0, 0, 0, 100, 0, 0, 0, 0});
  double least = 9, most = -9, sum = 0;
  for (const auto& b : from_tensor_slices(array<float, shape{1, 10, 1}>(many)) | random_translation(0, {-0.2, 0.3}) | batch<1>) {
    double mass = 0, place = 0;
    for (int x = 0; x < 10; ++x) mass += b.x()[x], place += double(b.x()[x]) * x;
    CHECK(mass == doctest::Approx(100));
    const double shift = place / mass - 5;
    least = std::min(least, shift), most = std::max(most, shift), sum += shift;
  }
  CHECK(least == doctest::Approx(-2).epsilon(0.01));
  CHECK(least >= -2.0001);
  CHECK(most == doctest::Approx(3).epsilon(0.01));
  CHECK(most <= 3.0001);
  CHECK(sum / 3000 == doctest::Approx(0.5).epsilon(0.2));

  least = 9, most = -9;
  many.clear();
  for (int i = 0; i < 3000; ++i) many.insert(many.end(), {1, -1});
  for (const auto& b : from_tensor_slices(array<float, shape{1, 2, 1}>(many)) |
                           random_contrast({0.25, 0.5}, {.value_range = {-2, 2}}) | batch<1>) {
    least = std::min(least, double(b.x()[0])), most = std::max(most, double(b.x()[0]));
    CHECK(b.x()[1] == -b.x()[0]);
  }
  CHECK(least == doctest::Approx(0.75).epsilon(0.01));
  CHECK(least >= 0.7499);
  CHECK(most == doctest::Approx(1.5).epsilon(0.01));
  CHECK(most <= 1.5001);
}

TEST_CASE("around an image of one colour is nothing but that colour") {
  const auto check = []<shape S>() {
    const std::vector<float> image(std::size_t{S.size()}, 3.5f);
    for (const auto mode : {fill_mode::nearest, fill_mode::reflect, fill_mode::wrap})
      for (const auto between : {interpolation::nearest, interpolation::bilinear})
        for (std::uint64_t seed = 0; seed < 8; ++seed) {
          const random_affine_options options{mode, between, seed, 99};
          CHECK(after<S>(image, random_translation(1, 1, options)) == image);
          CHECK(after<S>(image, random_rotation(1, options)) == image);
          CHECK(after<S>(image, random_zoom(0.9, options)) == image);
        }
    // A periodic image that is shifted by a whole period is unchanged.
    std::vector<float> picture(std::size_t{S.size()}), out = picture;
    for (std::size_t i = 0; i < picture.size(); ++i) picture[i] = float(i * 7 % 11);
    for (const int times : {-3, 1, 1000}) {
      affine_transform(tensor<const float, S>{picture.data()}, affine_matrix::translation(times * S[1], -times * S[0]),
                       tensor<float, S>{out.data()}, {.fill_mode = fill_mode::wrap});
      CHECK(out == picture);
    }
    // Whole pixels need no weights, so both interpolations agree exactly.
    std::vector<float> nearest(picture.size());
    for (const auto mode : {fill_mode::constant, fill_mode::nearest, fill_mode::reflect, fill_mode::wrap})
      for (int right = -12; right <= 12; ++right) {
        const affine_matrix m = affine_matrix::translation(right, right / 3);
        affine_transform(tensor<const float, S>{picture.data()}, m, tensor<float, S>{out.data()},
                         {.fill_mode = mode, .fill_value = 5});
        affine_transform(tensor<const float, S>{picture.data()}, m, tensor<float, S>{nearest.data()},
                         {mode, interpolation::nearest, 5});
        CHECK(out == nearest);
      }
  };
  check.operator()<shape{1, 1, 1}>();
  check.operator()<shape{1, 6, 2}>();
  check.operator()<shape{6, 1, 3}>();
  check.operator()<shape{5, 8, 1}>();
}

TEST_CASE("integers are rounded") {
  constexpr shape s{1, 3, 1};
  const std::array<std::uint8_t, 3> in{10, 20, 255};
  std::array<std::uint8_t, 3> out{};
  affine_transform(tensor<const std::uint8_t, s>{in.data()}, affine_matrix::translation(-0.25, 0),
                   tensor<std::uint8_t, s>{out.data()}, {.fill_value = 1000});
  CHECK(out == std::array<std::uint8_t, 3>{13, 79, 255});
}

TEST_CASE("what is refused") {
  const auto view = images(2);
  CHECK(error_of([&] { random_translation(view, 1.5, 0); }) == "random_translation: height_factor -1.5 is not in [-1, 1]");
  CHECK(error_of([&] { random_translation(view, 0, {-0.5, 2}); }) == "random_translation: width_factor 2 is not in [-1, 1]");
  CHECK(error_of([&] { random_rotation(view, -3); }) == "random_rotation: factor -3 is not in [-1, 1]");
  CHECK(error_of([&] { random_zoom(view, -1); }) == "random_zoom: height_factor -1 is not in (-1, 1]");
  CHECK(error_of([&] { random_zoom(view, 0.5, factor_range{-2, 0.5}); }) == "random_zoom: width_factor -2 is not in (-1, 1]");
  CHECK(error_of([&] { random_contrast(view, -0.5); }) == "random_contrast: factor -0.5 is not in [0, 1]");
  CHECK(error_of([&] { random_contrast(view, {0.5, 1.5}); }) == "random_contrast: factor 1.5 is not in [0, 1]");
  CHECK(error_of([&] { random_contrast(view, 0.5, {.value_range = {1, 1}}); }) == "random_contrast: value_range [1, 1] is empty");
  std::array<float, 4> a{}, b{};
  for (const double far : {1e9, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()})
    CHECK(error_of([&] {
            affine_transform(tensor<const float, shape{2, 2, 1}>{a.data()}, affine_matrix::translation(far, 0),
                             tensor<float, shape{2, 2, 1}>{b.data()});
          }) == "affine_transform: the matrix maps pixels too far outside of the image");
}

TEST_CASE("samples lie in memory, scaled and mirrored, up to a number of stages and only if they are numbered as they lie") {
  const auto lie_in_memory = [](const auto& view) { return view.rows().stored().has_value(); };
  const auto four = images(3) | scale(2) | scale(3) | scale(4) | scale(5);
  CHECK(lie_in_memory(four));
  CHECK_FALSE(lie_in_memory(four | scale(6)));
  const auto twice = images(3) | random_flip() | random_flip();
  CHECK(lie_in_memory(twice));
  CHECK_FALSE(lie_in_memory(twice | random_flip()));

  const auto x = from_tensor_slices(array<std::uint8_t, small>(std::vector<std::uint8_t>(3 * small.size())));
  const auto of_pairs = [&](auto part) {
    const auto kept = data::zip(part, from_tensor_slices(std::vector{0, 1, 2})) | cache;
    CHECK_FALSE(lie_in_memory(kept));
    std::vector<float> image(std::size_t(small.size()));
    float target = 0;
    for (const sample_index i : kept)
      kept.rows().write(i, i, sample_place<float>{image.data(), nullptr, &target}, std::identity{});
    CHECK(lie_in_memory(kept));
    return lie_in_memory(kept | random_flip());
  };
  CHECK(of_pairs(x));
  CHECK_FALSE(of_pairs(x | skip(1)));
}
