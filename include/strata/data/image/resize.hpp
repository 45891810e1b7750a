// Resizes images as tf.image.resize does.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <strata/base/error.hpp>
#include <strata/base/multiply_add.hpp>
#include <strata/base/rounded.hpp>
#include <strata/base/shape.hpp>
#include <strata/base/tensor.hpp>
#include <strata/data/core/scratch.hpp>
#include <strata/data/image/affine_transform.hpp>
#include <string>

namespace strata::data {

/// The interpolation between pixels. Only `area` reads all pixels when an image becomes smaller (antialias = false).
enum class resize_method {
  bilinear,  // from the four pixels around
  nearest,   // the pixel that contains the place
  bicubic,   // from the sixteen around, with the weights of Keys (a = -0.5)
  area,      // the mean of the area of the new pixel
};

/// The treatment of an image with another aspect ratio.
enum class aspect_ratio {
  distort,  // stretches it
  crop,     // what does not fit is cut off on both sides
  pad,      // zeros are added on both sides
};

/// A rectangle of pixels, `Channels` values each, in rows that begin `stride` values apart.
template <class T, int Channels>
struct pixels {
  T* first;
  int height, width;
  std::ptrdiff_t stride;

  T* row(int y) const { return first + y * stride; }
  pixels part(int top, int left, int rows, int columns) const { return {row(top) + left * Channels, rows, columns, stride}; }
};

namespace detail {
using strata::detail::multiply_add, strata::detail::rounded;

/// The input pixels along an axis from which each output pixel is computed, and their weights.
class resize_axis {
 public:
  /// The largest number of input pixels for an output pixel.
  static int most_taps(resize_method method, int in, int out) {
    if (method == resize_method::nearest) return 1;
    if (method == resize_method::area)
      return std::min(in, static_cast<int>(static_cast<float>(in) / static_cast<float>(out)) + 3);
    return std::min(in, method == resize_method::bilinear ? 2 : 4);
  }

  resize_axis(resize_method method, int in, int out)
      : in_(in),
        taps_(most_taps(method, in, out)),
        first_(static_cast<std::size_t>(out)),
        weights_(static_cast<std::size_t>(out) * static_cast<std::size_t>(taps_)) {
    std::fill_n(weights_.data(), out * taps_, 0.0f);
    // In float, as in TensorFlow: for some sizes, double would round to another pixel.
    const float scale = static_cast<float>(in) / static_cast<float>(out);
    for (int i = 0; i < out; ++i) {
      const auto scaled = [&](float place) { return rounded(place * scale); };
      const float begin = scaled(static_cast<float>(i)), middle = scaled(static_cast<float>(i) + 0.5f);
      switch (method) {
        case resize_method::nearest:
          start(i, std::min(static_cast<int>(middle), in - 1));
          add(i, first(i), 1);
          break;
        case resize_method::bilinear:
          make_bilinear(i, middle - 0.5f);
          break;
        case resize_method::bicubic:
          make_bicubic(i, middle - 0.5f);
          break;
        case resize_method::area:
          make_area(i, begin, scaled(static_cast<float>(i + 1)));
          break;
      }
    }
  }

  int taps() const { return taps_; }
  int first(int i) const { return first_.data()[i]; }
  const float* weights(int i) const { return weights_.data() + i * taps_; }

 private:
  /// The input pixels of i begin at `place`, or earlier near the end.
  void start(int i, int place) { first_.data()[i] = std::clamp(place, 0, in_ - taps_); }
  void add(int i, int place, float weight) { weights_.data()[i * taps_ + place - first(i)] += weight; }
  static float keys(float x) {
    const float d = std::abs(x);
    return d <= 1 ? multiply_add(multiply_add(1.5f, d, -2.5f) * d, d, 1.f)
                  : multiply_add(multiply_add(multiply_add(-0.5f, d, 2.5f), d, -4.f), d, 2.f);
  }

  void make_bilinear(int i, float at) {
    const int place = static_cast<int>(std::floor(at));
    const float beyond = at - std::floor(at);
    start(i, place);
    add(i, std::max(place, 0), 1 - beyond);
    add(i, std::min(place + 1, in_ - 1), beyond);
  }
  void make_bicubic(int i, float at) {
    const int place = static_cast<int>(std::floor(at));
    start(i, place - 1);
    // Pixels beyond the edge are left out: the weights of the others are scaled up.
    const int begin = std::max(place - 1, 0), end = std::min(place + 3, in_);
    float sum = 0;
    for (int k = begin; k < end; ++k) sum += keys(static_cast<float>(k) - at);
    for (int k = begin; k < end; ++k) add(i, k, keys(static_cast<float>(k) - at) / sum);
  }
  void make_area(int i, float begin, float end) {
    const int from = std::min(static_cast<int>(begin), in_ - 1), to = std::min(static_cast<int>(std::ceil(end)), in_);
    start(i, from);
    for (int k = from; k < to; ++k) {
      const float covered = std::min(end, static_cast<float>(k + 1)) - std::max(begin, static_cast<float>(k));
      add(i, k, covered / (end - begin));
    }
  }

  int in_, taps_;
  scratch<int> first_;
  scratch<float> weights_;
};

/// The weighted sum of rows.
template <class U>
void mix_rows(const U* __restrict row, std::ptrdiff_t stride, const float* weights, int taps, int n, float* __restrict line) {
  if (taps == 2) {
    const U* __restrict next = row + stride;
    const float weight = weights[1];
    for (int k = 0; k < n; ++k) {
      const float a = static_cast<float>(row[k]), b = static_cast<float>(next[k]);
      line[k] = multiply_add(weight, b - a, a);
    }
    return;
  }
  for (int k = 0; k < n; ++k) line[k] = weights[0] * static_cast<float>(row[k]);
  for (int t = 1; t < taps; ++t) {
    const U* __restrict next = row + t * stride;
    for (int k = 0; k < n; ++k) line[k] = multiply_add(weights[t], static_cast<float>(next[k]), line[k]);
  }
}

}  // namespace detail

/// Resizes `in` to the size of `out`; both have at least one pixel. Each value passes through `then`. Integers are rounded.
/// https://www.tensorflow.org/api_docs/python/tf/image/resize
template <int Channels, class U, class T, class Then = std::identity>
void resize(pixels<const U, Channels> in, pixels<T, Channels> out, resize_method method, Then then = {}) {
  if (in.height < 1 || in.width < 1) throw_error("resize: the image has no pixels");
  if (method == resize_method::nearest || (in.height == out.height && in.width == out.width)) {
    const detail::resize_axis down(resize_method::nearest, in.height, out.height),
        across(resize_method::nearest, in.width, out.width);
    for (int y = 0; y < out.height; ++y) {
      const U* from = in.row(down.first(y));
      T* to = out.row(y);
      if (in.width == out.width)
        for (int k = 0; k < out.width * Channels; ++k) to[k] = then(static_cast<T>(from[k]));
      else
        for (int x = 0; x < out.width; ++x)
          for (int c = 0; c < Channels; ++c) to[x * Channels + c] = then(static_cast<T>(from[across.first(x) * Channels + c]));
    }
    return;
  }
  // First vertically: whole rows are mixed, which vectorises.
  const detail::resize_axis down(method, in.height, out.height), across(method, in.width, out.width);
  const detail::scratch<float> line(static_cast<std::size_t>(in.width * Channels));
  const int taps = across.taps();
  for (int y = 0; y < out.height; ++y) {
    detail::mix_rows(in.row(down.first(y)), in.stride, down.weights(y), down.taps(), in.width * Channels, line.data());
    T* to = out.row(y);
    for (int x = 0; x < out.width; ++x, to += Channels) {
      const float *from = line.data() + across.first(x) * Channels, *weights = across.weights(x);
      for (int c = 0; c < Channels; ++c) {
        float sum = 0;
        if (taps == 2)
          sum = detail::multiply_add(weights[1], from[Channels + c] - from[c], from[c]);
        else
          for (int t = 0; t < taps; ++t) sum = detail::multiply_add(weights[t], from[t * Channels + c], sum);
        to[c] = then(detail::number_of<T>(sum));
      }
    }
  }
}

/// The overload for another aspect ratio. crop and pad give the same pixels as image_dataset_from_directory of Keras.
template <int Channels, class U, class T, class Then = std::identity>
void resize(pixels<const U, Channels> in, pixels<T, Channels> out, resize_method method, aspect_ratio proportion,
            Then then = {}) {
  // In float and rounded down, as in TensorFlow.
  const auto f = [](int n) { return static_cast<float>(n); };
  if (proportion == aspect_ratio::crop) {
    const int height = std::clamp(static_cast<int>(f(in.width) * f(out.height) / f(out.width)), 1, in.height);
    const int width = std::clamp(static_cast<int>(f(in.height) * f(out.width) / f(out.height)), 1, in.width);
    in = in.part((in.height - height) / 2, (in.width - width) / 2, height, width);
  } else if (proportion == aspect_ratio::pad) {
    const float ratio = std::max(f(in.width) / f(out.width), f(in.height) / f(out.height));
    const float height = f(in.height) / ratio, width = f(in.width) / ratio;
    const int top = std::max(0, static_cast<int>(std::floor((f(out.height) - height) / 2)));
    const int left = std::max(0, static_cast<int>(std::floor((f(out.width) - width) / 2)));
    const int rows = std::clamp(static_cast<int>(height), 1, out.height - top);
    const int columns = std::clamp(static_cast<int>(width), 1, out.width - left);
    const T zero = then(T(0));
    for (int y = 0; y < out.height; ++y) {
      const bool beside = y < top || y >= top + rows;
      T* to = out.row(y);
      std::fill_n(to, (beside ? out.width : left) * Channels, zero);
      if (!beside) std::fill_n(to + (left + columns) * Channels, (out.width - left - columns) * Channels, zero);
    }
    out = out.part(top, left, rows, columns);
  }
  resize(in, out, method, then);
}

}  // namespace strata::data
