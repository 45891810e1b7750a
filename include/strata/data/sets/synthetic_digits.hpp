// Generated handwritten digits, for machines without MNIST: with the same type, and about as hard for a linear classifier.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numbers>
#include <span>
#include <strata/base/aligned_memory.hpp>
#include <strata/base/random.hpp>
#include <strata/base/random_draws.hpp>
#include <strata/data/sets/digits.hpp>
#include <utility>
#include <vector>

namespace strata::data {

namespace detail {
/// A point of a pen stroke, in percent of the height of the digit, y downwards. The line is smooth except at corners; a lift ends
/// the stroke; `end` marks the last point of a variant of a digit.
struct knot {
  enum kind : char { smooth, corner, lift, end };
  signed char x, y;
  kind then = smooth;
};

/// The variants of 0, 1, ..., one after another.
namespace pen {
inline constexpr auto corner = knot::corner, lift = knot::lift, end = knot::end;
inline constexpr knot strokes[] = {
    {50, 2},          {24, 18},         {14, 50},         {24, 84},         {50, 98},        {76, 82},         {86, 50},
    {76, 18},         {50, 2, end},     {60, 6},          {34, 10},         {16, 44},        {24, 86},         {52, 98},
    {78, 74},         {80, 34},         {60, 8},          {44, 16, end},    {50, 0},         {50, 50},         {50, 100, end},
    {50, 0},          {50, 50},         {50, 100, end},   {30, 22},         {52, 0, corner}, {52, 50},         {52, 100, end},
    {30, 22},         {52, 0, corner},  {52, 50},         {52, 100, lift},  {26, 100},       {78, 100, end},   {15, 26},
    {30, 5},          {56, 0},          {80, 12},         {80, 34},         {56, 64},        {15, 98, corner}, {50, 96},
    {90, 98, end},    {18, 22},         {40, 2},          {72, 6},          {78, 30},        {56, 64},         {28, 90},
    {12, 90},         {18, 78},         {38, 82},         {62, 95},         {90, 90, end},   {18, 12},         {45, 0},
    {76, 10},         {74, 36},         {40, 48, corner}, {76, 58},         {82, 80},        {54, 100},        {14, 90, end},
    {16, 4},          {80, 2, corner},  {44, 42, corner}, {78, 56},         {80, 84},        {50, 100},        {14, 90, end},
    {28, 2},          {22, 36},         {16, 60, corner}, {52, 58},         {90, 56, lift},  {68, 10},         {66, 50},
    {64, 100, end},   {64, 2, corner},  {12, 66, corner}, {92, 66, lift},   {64, 2},         {64, 50},         {64, 100, end},
    {24, 6},          {18, 36},         {32, 54},         {60, 52},         {76, 38, lift},  {78, 4},          {74, 50},
    {66, 100, end},   {80, 3},          {28, 3, corner},  {22, 44, corner}, {50, 37},        {80, 54},         {78, 84},
    {50, 99},         {14, 90, end},    {26, 8},          {22, 44, corner}, {52, 38},        {80, 58},         {74, 88},
    {46, 99},         {14, 88, lift},   {26, 8},          {56, 5},          {86, 2, end},    {70, 2},          {38, 24},
    {18, 60},         {26, 90},         {52, 99},         {78, 84},         {74, 60},        {48, 52},         {22, 70, end},
    {58, 0},          {30, 40},         {18, 74},         {36, 97},         {64, 93},        {72, 72},         {54, 56},
    {24, 72, end},    {12, 6},          {84, 4, corner},  {56, 46},         {38, 100, end},  {12, 6},          {84, 4, corner},
    {56, 46},         {38, 100, lift},  {32, 50},         {72, 48, end},    {14, 20},        {16, 4, corner},  {86, 4, corner},
    {60, 40},         {48, 100, end},   {72, 16},         {50, 0},          {26, 14},        {34, 36},         {62, 56},
    {76, 80},         {50, 100},        {24, 80},         {38, 56},         {64, 36},        {72, 12, end},    {50, 0},
    {28, 22},         {50, 46},         {72, 22},         {50, 0, lift},    {50, 46},        {22, 74},         {50, 100},
    {78, 74},         {50, 46, end},    {74, 22},         {50, 2},          {22, 18},        {26, 44},         {54, 48},
    {74, 22, corner}, {72, 60},         {62, 100, end},   {76, 20},         {48, 2},         {22, 22},         {32, 46},
    {60, 44},         {76, 20, corner}, {78, 60},         {66, 90},         {32, 98, end},   {72, 16},         {44, 2},
    {20, 24},         {40, 48},         {72, 30, lift},   {76, 2},          {72, 50},        {68, 100, end},
};
}  // namespace pen
inline constexpr int ways_to_write[10] = {2, 4, 2, 2, 3, 2, 2, 3, 2, 3};

constexpr std::span<const knot> pen_stroke(int label, int way) {
  for (int digit = 0; digit < label; ++digit) way += ways_to_write[digit];
  const knot* first = pen::strokes;
  for (; way > 0; ++first) way -= first->then == knot::end;
  const knot* last = first;
  while (last->then != knot::end) ++last;
  return {first, last + 1};
}

/// Draws sample number `sample` of digit `label`. All random numbers depend on (generator, sample) only. Coordinates are rounded
/// to 1/256 pixel and pixels are computed exactly from them, so that the bytes are the same for all compilers and processors.
/// `size`: pixels of a row and of a column. A template, so that programs with other data do not compile it.
template <int size>
class digit_writer {
 public:
  digit_writer(philox generator, std::uint64_t sample, int label) : generator_(generator), sample_(sample) {
    follow(pen_stroke(label, static_cast<int>(uniform(0, ways_to_write[label]))));
    bend();
    place();
  }

  void draw(std::uint8_t* image) {
    std::array<double, size * size> nearest;  // squared distance to the line, in 1/256 pixels
    nearest.fill(1e9);
    const std::int64_t half_width = std::llround(one * std::clamp(1.3 + 0.35 * normal(), 0.6, 2.3));
    const std::int64_t reach = half_width + 2 * one;
    for (const auto& [a, b] : lines_) spread(a, b, reach, nearest);

    // The pressure of the pen changes over the image, the ink is uneven, and some images have specks.
    const std::int64_t slope_x = std::llround(4 * normal()), slope_y = std::llround(4 * normal());
    const int blackness = static_cast<int>(uniform(200, 300)), grain = static_cast<int>(uniform(0, 90));
    const int dirt = uniform(0, 1) < 0.15 ? static_cast<int>(uniform(1, 12)) : 0;
    philox::block words{};
    for (std::size_t i = 0; i < nearest.size(); ++i) {
      if (i % 4 == 0) words = generator_(i / 4, sample_ << 1 | 1);
      const int noise = static_cast<int>(words[i % 4] & 255), chance = static_cast<int>(words[i % 4] >> 8 & 1023);
      const std::int64_t x = static_cast<std::int64_t>(i % size) - size / 2, y = static_cast<std::int64_t>(i / size) - size / 2;
      const std::int64_t half = half_width + slope_x * x + slope_y * y + one / 2;
      const int cover = std::clamp(static_cast<int>(static_cast<double>(half) - std::sqrt(nearest[i])), 0, one);
      int ink = cover * (blackness - (noise * grain >> 8)) / one;
      if (dirt > 0 && chance < dirt) ink = std::max(ink, noise);
      image[i] = static_cast<std::uint8_t>(std::clamp(ink, 0, 255));
    }
  }

 private:
  static constexpr int one = 256;  // subdivisions of a pixel
  struct point {
    double x, y;
  };
  struct grid_point {
    std::int64_t x, y;
  };

  double uniform(double low, double high) { return low + (high - low) * generator_.uniform(drawn_++, sample_ << 1); }
  /// Approximately normal: mean 0, standard deviation 1, within +-3.5.
  double normal() {
    double sum = -2;
    for (int i = 0; i < 4; ++i) sum += uniform(0, 1);
    return sum * std::numbers::sqrt3;
  }

  /// Catmull-Rom splines through the knots, moved by a small random distance.
  void follow(std::span<const knot> knots) {
    std::array<point, 16> at;
    for (std::size_t i = 0; i < knots.size(); ++i)
      at[i] = {knots[i].x / 100.0 + 0.028 * normal(), knots[i].y / 100.0 + 0.028 * normal()};
    for (std::size_t i = 0; i + 1 < knots.size(); ++i) {
      if (knots[i].then == knot::lift) {
        piece_ends_.push_back(path_.size());
        continue;
      }
      const bool first = i == 0 || knots[i].then == knot::corner || knots[i - 1].then == knot::lift;
      const bool last = i + 2 == knots.size() || knots[i + 1].then != knot::smooth;
      const point p = at[i], q = at[i + 1], before = first ? p : at[i - 1], after = last ? q : at[i + 2];
      for (int k = 0; k < parts; ++k) path_.push_back(spline(before, p, q, after, k / double{parts}));
      if (i + 2 == knots.size() || knots[i + 1].then == knot::lift) path_.push_back(q);
    }
    piece_ends_.push_back(path_.size());
  }
  static point spline(point a, point p, point q, point b, double t) {
    const auto blend = [t](double v0, double v1, double v2, double v3) {
      return v1 + 0.5 * t * (v2 - v0 + t * (2 * v0 - 5 * v1 + 4 * v2 - v3 + t * (3 * (v1 - v2) + v3 - v0)));
    };
    return {blend(a.x, p.x, q.x, b.x), blend(a.y, p.y, q.y, b.y)};
  }

  /// Elastic distortion: a few long waves in random directions.
  void bend() {
    for (int wave = 0; wave < 3; ++wave) {
      const double fx = uniform(-7, 7), fy = uniform(-7, 7), phase = uniform(0, 2 * std::numbers::pi);
      const double dx = 0.024 * normal(), dy = 0.024 * normal();
      for (point& p : path_) {
        const double s = std::sin(fx * p.x + fy * p.y + phase);
        p.x += dx * s, p.y += dy * s;
      }
    }
  }

  /// Applies slant, rotation and proportions, then scales into a box of 20 pixels, with the centre of mass near the centre of the
  /// image, as in MNIST.
  void place() {
    const double angle = 0.13 * normal(), slant = 0.14 + 0.2 * normal(), width = std::clamp(0.8 + 0.15 * normal(), 0.45, 1.2);
    const double c = std::cos(angle), s = std::sin(angle);
    point low{1e9, 1e9}, high{-1e9, -1e9}, centre{0, 0};
    for (point& p : path_) {
      const double x = width * p.x - slant * p.y, y = p.y;
      p = {c * x - s * y, s * x + c * y};
      low = {std::min(low.x, p.x), std::min(low.y, p.y)};
      high = {std::max(high.x, p.x), std::max(high.y, p.y)};
      centre.x += p.x, centre.y += p.y;
    }
    const double n = static_cast<double>(path_.size());
    const double scale = std::clamp(17.8 + 1.1 * normal(), 14.5, 20.0) / std::max(high.x - low.x, high.y - low.y);
    const double shift_x = size / 2 + 0.7 * normal(), shift_y = size / 2 + 0.7 * normal();
    const auto on_grid = [&](point p) {
      return grid_point{std::llround(one * (shift_x + scale * (p.x - centre.x / n))),
                        std::llround(one * (shift_y + scale * (p.y - centre.y / n)))};
    };
    std::size_t begin = 0;
    for (const std::size_t end : piece_ends_) {
      for (std::size_t i = begin; i + 1 < end; ++i) lines_.emplace_back(on_grid(path_[i]), on_grid(path_[i + 1]));
      begin = end;
    }
  }

  /// Exact except for one division: all products of coordinates are integers below 2^53.
  static void spread(grid_point a, grid_point b, std::int64_t reach, std::array<double, size * size>& nearest) {
    const auto pixel = [](std::int64_t v) { return std::clamp<std::int64_t>(v / one, 0, size - 1); };
    const std::int64_t x0 = pixel(std::min(a.x, b.x) - reach), x1 = pixel(std::max(a.x, b.x) + reach);
    const std::int64_t y0 = pixel(std::min(a.y, b.y) - reach), y1 = pixel(std::max(a.y, b.y) + reach);
    const double dx = static_cast<double>(b.x - a.x), dy = static_cast<double>(b.y - a.y), length2 = dx * dx + dy * dy;
    for (std::int64_t row = y0; row <= y1; ++row)
      for (std::int64_t column = x0; column <= x1; ++column) {
        const double px = static_cast<double>(column * one + one / 2 - a.x), py = static_cast<double>(row * one + one / 2 - a.y);
        const double along = px * dx + py * dy, across = px * dy - py * dx;
        const double qx = px - dx, qy = py - dy;
        const double d = along <= 0 ? px * px + py * py : along >= length2 ? qx * qx + qy * qy : across * across / length2;
        double& best = nearest[static_cast<std::size_t>(row * size + column)];
        best = std::min(best, d);
      }
  }

  static constexpr int parts = 5;  // line segments per knot

  philox generator_;
  std::uint64_t sample_, drawn_ = 0;
  std::vector<point> path_;
  std::vector<std::size_t> piece_ends_;
  std::vector<std::pair<grid_point, grid_point>> lines_;
};
}  // namespace detail

/// Generated digits: `samples` images (28, 28, 1) in [0, 1], with balanced labels 0 ... 9 in random order. Deterministic: sample
/// i depends on (samples, seed, i). Different seeds give different sets. 60,000 images take about a second on one core. Throws
/// strata_error if `samples` is 0. Byte is not for callers: since the types in the body depend on it, they are compiled
/// only in programs that call the function.
template <std::integral Count, class Byte = std::uint8_t>
digits synthetic_digits(Count samples, std::uint64_t seed = 0) {
  const std::size_t count = samples < 0 ? 0 : std::size_t(samples);
  const core::philox generator = core::philox{seed}.fork(0x646967697473);  // "digits"
  std::vector<Byte> labels(count);
  for (std::size_t i = 0; i < count; ++i) labels[i] = static_cast<Byte>(i % 10);
  strata::detail::random_draws(generator.fork(0), 0).shuffle(labels);

  constexpr std::size_t pixels = digit_shape.size();
  const std::shared_ptr<std::uint8_t> images = strata::detail::allocate_shared_aligned<std::uint8_t>(count * pixels);
  for (std::size_t i = 0; i < count; ++i)
    detail::digit_writer<digit_shape.d0>(generator, i, labels[i]).draw(images.get() + i * pixels);
  return from_tensor_slices(array<Byte, digit_shape>(images, count), labels) | scale(1.0 / 255);
}

}  // namespace strata::data
