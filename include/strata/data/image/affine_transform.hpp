// Affine transforms of images: an affine map gives the place at which each pixel of the result is read.
#pragma once
#include <algorithm>
#include <cmath>
#include <concepts>
#include <functional>
#include <limits>
#include <strata/base/error.hpp>
#include <strata/base/multiply_add.hpp>
#include <strata/base/shape.hpp>
#include <strata/base/tensor.hpp>
#include <type_traits>
#include <utility>

namespace strata::data {

/// The continuation of an image a b c d beyond its edges.
enum class fill_mode {
  constant,  // k k k k | a b c d | k k k k
  nearest,   // a a a a | a b c d | d d d d
  reflect,   // d c b a | a b c d | d c b a
  wrap,      // a b c d | a b c d | a b c d
};

/// The value between pixels: that of the nearest pixel (of two, the later), or the weighted mean of the four around.
enum class interpolation { nearest, bilinear };

/// Pixel (x, y) of the result is read at (a0 x + a1 y + a2, b0 x + b1 y + b2): the first six numbers of a Keras transform.
struct affine_matrix {
  double a0 = 1, a1 = 0, a2 = 0, b0 = 0, b1 = 1, b2 = 0;

  /// Moves the content to the right and down, in pixels.
  static constexpr affine_matrix translation(double right, double down) { return {.a2 = -right, .b2 = -down}; }
  /// Rotates the content around the centre of an image of shape (height, width, channels), counter-clockwise, in radians.
  static affine_matrix rotation(double angle, shape image) {
    const double cosine = std::cos(angle), sine = std::sin(angle);
    const double x = (image[1] - 1) / 2.0, y = (image[0] - 1) / 2.0;
    const auto sum = [](double start, double p, double c, double q, double s) {
      return strata::detail::multiply_add(p, c, strata::detail::multiply_add(q, s, start));
    };
    return {cosine, -sine, sum(x, -x, cosine, y, sine), sine, cosine, sum(y, -x, sine, -y, cosine)};
  }
  /// Shows multiples of width and height around the centre: above 1, the content becomes smaller.
  static constexpr affine_matrix zoom(double width, double height, shape image) {
    return {.a0 = width, .a2 = (image[1] - 1) / 2.0 * (1 - width), .b1 = height, .b2 = (image[0] - 1) / 2.0 * (1 - height)};
  }
};

struct affine_options {
  data::fill_mode fill_mode = data::fill_mode::constant;
  data::interpolation interpolation = data::interpolation::bilinear;
  double fill_value = 0;
};

namespace detail {
using strata::detail::multiply_add;

/// The index of the pixel, of n, that continues the row at place i; -1: the fill value.
inline int pixel_at(fill_mode mode, int i, int n) {
  if (i >= 0 && i < n) return i;
  const auto remainder = [i](int period) { return (i % period + period) % period; };
  switch (mode) {
    case fill_mode::nearest:
      return i < 0 ? 0 : n - 1;
    case fill_mode::reflect:
      return std::min(remainder(2 * n), 2 * n - 1 - remainder(2 * n));
    case fill_mode::wrap:
      return remainder(n);
    default:
      return -1;
  }
}

/// x rounded down, and the remainder, in operations that vectorise.
template <class F>
struct rounded_down {
  int place;
  F beyond;

  explicit rounded_down(F x) : place(static_cast<int>(x)) {
    place -= x < static_cast<F>(place) ? 1 : 0;
    beyond = x - static_cast<F>(place);
  }
};

/// Converts to T; integers are rounded and clamped.
template <class T, class F>
T number_of(F value) {
  if constexpr (std::floating_point<T>) {
    return static_cast<T>(value);
  } else {
    constexpr F low = static_cast<F>(std::numeric_limits<T>::min()), high = static_cast<F>(std::numeric_limits<T>::max());
    return !(value > low)  ? std::numeric_limits<T>::min()
           : value >= high ? std::numeric_limits<T>::max()
                           : T(std::floor(value + F(0.5)));
  }
}

/// One call of affine_transform. F is the type of coordinates and weights.
template <class T, shape S>
class affine_sampler {
  static constexpr int height = S[0], width = S[1], channels = S[2], row_size = width * channels;
  using F = std::conditional_t<std::floating_point<T>, T, float>;

  tensor<const T, S> in_;
  affine_matrix m_;
  affine_options options_;
  F fill_;

 public:
  affine_sampler(tensor<const T, S> in, const affine_matrix& m, const affine_options& options)
      : in_(in), m_(m), options_(options), fill_(static_cast<F>(options.fill_value)) {
    // Checks the places of the corners, between which all others lie.
    for (const int x : {0, width - 1})
      for (const int y : {0, height - 1})
        for (const double place :
             {multiply_add(m.a0, x, multiply_add(m.a1, y, m.a2)), multiply_add(m.b0, x, multiply_add(m.b1, y, m.b2))})
          if (!(std::abs(place) < 1 << 28)) throw_error("affine_transform: the matrix maps pixels too far outside of the image");
  }

  template <class Then>
  void write(T* out, Then then) const {
    const bool upright = m_.a1 == 0 && m_.b0 == 0;
    if (options_.interpolation == interpolation::nearest)
      upright ? nearest_upright(out, then) : nearest_turned(out, then);
    else
      upright ? bilinear_upright(out, then) : bilinear_turned(out, then);
  }

 private:
  const T* row(int y) const { return in_.data + y * row_size; }
  int column_at(int x) const { return pixel_at(options_.fill_mode, x, width); }
  int row_at(int y) const { return pixel_at(options_.fill_mode, y, height); }
  F value(const T* row, int x, int c) const { return x < 0 ? fill_ : static_cast<F>(row[x * channels + c]); }

  /// The places at which pixels of a row are read; the same for all rows. Without a zoom, pixels `begin` to `end` are read one
  /// after the other, `shift` pixels further: this needs no table, and the loop vectorises.
  struct columns {
    int left[width], right[width];
    F weight[width];  // weight of the right pixel
    int begin = 0, end = 0, shift = 0;
    F weight_of_all = 0;
  };
  columns make_columns(F offset, int reach) const {
    columns c;
    if (m_.a0 == 1) {
      const rounded_down x(static_cast<F>(m_.a2) + offset);
      c.shift = x.place;
      c.begin = std::clamp(-c.shift, 0, width);
      c.end = std::clamp(width - c.shift - reach, c.begin, width);
      c.weight_of_all = x.beyond;
    }
    each_outside(c, [&](int j) {
      const rounded_down x(static_cast<F>(multiply_add(m_.a0, j, m_.a2)) + offset);
      c.left[j] = column_at(x.place), c.right[j] = column_at(x.place + 1);
      c.weight[j] = x.beyond;
    });
    return c;
  }
  /// Calls f for the pixels of a row before `begin` and from `end` on.
  template <class Row, class Pixel>
  static void each_outside(const Row& row, Pixel f) {
    for (int j = 0; j < row.begin; ++j) f(j);
    for (int j = row.end; j < width; ++j) f(j);
  }

  template <class Then>
  void nearest_upright(T* out, Then then) const {
    const columns c = make_columns(F(0.5), 0);
    const T filling = number_of<T>(fill_);
    for (int i = 0; i < height; ++i, out += row_size) {
      const int y = row_at(rounded_down(static_cast<F>(multiply_add(m_.b1, i, m_.b2)) + F(0.5)).place);
      if (y < 0) {
        for (int k = 0; k < row_size; ++k) out[k] = then(filling);
        continue;
      }
      const T* from = row(y);
      each_outside(c, [&](int j) {
        const int x = c.left[j];
        for (int k = 0; k < channels; ++k) out[j * channels + k] = then(x < 0 ? filling : from[x * channels + k]);
      });
      if (c.begin == c.end) continue;
      const T* moved = from + c.shift * channels;
      for (int k = c.begin * channels; k < c.end * channels; ++k) out[k] = then(moved[k]);
    }
  }

  /// Reads a row with `columns`; y = -1: a row of fill values.
  void read_row(int y, const columns& c, F* __restrict line) const {
    if (y < 0) {
      std::fill_n(line, row_size, fill_);
      return;
    }
    const T* from = row(y);
    each_outside(c, [&](int j) {
      for (int k = 0; k < channels; ++k) {
        const F left = value(from, c.left[j], k), right = value(from, c.right[j], k);
        line[j * channels + k] = multiply_add(c.weight[j], right - left, left);
      }
    });
    if (c.begin == c.end) return;
    const T* moved = from + c.shift * channels;
    const F weight = c.weight_of_all;
    for (int k = c.begin * channels; k < c.end * channels; ++k) {
      const F left = static_cast<F>(moved[k]);
      line[k] = multiply_add(weight, static_cast<F>(moved[k + channels]) - left, left);
    }
  }

  template <class Then>
  static void write_row(const F* __restrict top, const F* __restrict bottom, F weight, T* __restrict out, Then then) {
    for (int k = 0; k < row_size; ++k) out[k] = then(number_of<T>(multiply_add(weight, bottom[k] - top[k], top[k])));
  }
  template <class Then>
  void bilinear_upright(T* out, Then then) const {
    const columns c = make_columns(0, 1);
    // Two rows are kept, so that each is read once: the lower one for a pixel is the upper one for the pixel below.
    struct line {
      int row = -2;  // none
      F values[row_size];
    };
    line lines[2], *upper = &lines[0], *lower = &lines[1];
    for (int i = 0; i < height; ++i, out += row_size) {
      const rounded_down y(static_cast<F>(multiply_add(m_.b1, i, m_.b2)));
      const int top = row_at(y.place), bottom = row_at(y.place + 1);
      if (lower->row == top) std::swap(upper, lower);
      for (const auto& [held, wanted] : {std::pair{upper, top}, std::pair{lower, bottom}})
        if (held->row != wanted) read_row(held->row = wanted, c, held->values);
      write_row(upper->values, lower->values, y.beyond, out, then);
    }
  }

  /// The places at which the pixels of one row of the result are read: rounded down, and the remainders. All pixels from `begin`
  /// to `end` are read inside the image.
  struct places {
    int x[width], y[width];
    F beyond_x[width], beyond_y[width];
    int begin = 0, end = 0;
  };
  void find(int i, F offset, int reach, places& p) const {
    const F a = static_cast<F>(m_.a0), b = static_cast<F>(m_.b0);
    const F a_row = static_cast<F>(multiply_add(m_.a1, i, m_.a2)), b_row = static_cast<F>(multiply_add(m_.b1, i, m_.b2));
    for (int j = 0; j < width; ++j) {
      const rounded_down x(multiply_add(a, F(j), a_row) + offset), y(multiply_add(b, F(j), b_row) + offset);
      p.x[j] = x.place, p.y[j] = y.place;
      p.beyond_x[j] = x.beyond, p.beyond_y[j] = y.beyond;
    }
    // Straight lines cross the image once.
    const auto inside = [&](int j) { return p.x[j] >= 0 && p.x[j] < width - reach && p.y[j] >= 0 && p.y[j] < height - reach; };
    p.begin = 0;
    while (p.begin < width && !inside(p.begin)) ++p.begin;
    p.end = p.begin;
    while (p.end < width && inside(p.end)) ++p.end;
  }
  template <class Then>
  void nearest_turned(T* out, Then then) const {
    const T filling = number_of<T>(fill_);
    places p;
    for (int i = 0; i < height; ++i, out += row_size) {
      find(i, F(0.5), 0, p);
      each_outside(p, [&](int j) {
        const int x = column_at(p.x[j]), y = row_at(p.y[j]);
        for (int k = 0; k < channels; ++k) out[j * channels + k] = then(x < 0 || y < 0 ? filling : row(y)[x * channels + k]);
      });
      for (int j = p.begin; j < p.end; ++j) {
        const T* from = in_.data + p.y[j] * row_size + p.x[j] * channels;
        for (int k = 0; k < channels; ++k) out[j * channels + k] = then(from[k]);
      }
    }
  }

  template <class Then>
  void bilinear_turned(T* out, Then then) const {
    places p;
    for (int i = 0; i < height; ++i, out += row_size) {
      find(i, 0, 1, p);
      const auto mean = [](F top_left, F top_right, F bottom_left, F bottom_right, F x, F y) {
        const F top = multiply_add(x, top_right - top_left, top_left);
        const F bottom = multiply_add(x, bottom_right - bottom_left, bottom_left);
        return number_of<T>(multiply_add(y, bottom - top, top));
      };
      each_outside(p, [&](int j) {
        const int left = column_at(p.x[j]), right = column_at(p.x[j] + 1), top = row_at(p.y[j]), bottom = row_at(p.y[j] + 1);
        for (int k = 0; k < channels; ++k) {
          const auto read = [&](int y, int x) { return y < 0 ? fill_ : value(row(y), x, k); };
          out[j * channels + k] = then(
              mean(read(top, left), read(top, right), read(bottom, left), read(bottom, right), p.beyond_x[j], p.beyond_y[j]));
        }
      });
      for (int j = p.begin; j < p.end; ++j) {
        const T* top = in_.data + p.y[j] * row_size + p.x[j] * channels;
        for (int k = 0; k < channels; ++k)
          out[j * channels + k] =
              then(mean(static_cast<F>(top[k]), static_cast<F>(top[channels + k]), static_cast<F>(top[row_size + k]),
                        static_cast<F>(top[row_size + channels + k]), p.beyond_x[j], p.beyond_y[j]));
      }
    }
  }
};

}  // namespace detail

/// in, out: (height, width, channels), not the same memory. Each value is passed through `then`. Integers are rounded. Around the
/// image, interpolation sees what fill_mode says, pixel by pixel: with `wrap`, the last column and the first are neighbours, as
/// in Keras on JAX and NumPy. Throws strata_error if the matrix leads further than 2^28 pixels away.
/// https://keras.io/api/ops/image/#affine_transform-function
template <class T, shape S, class Then = std::identity>
void affine_transform(tensor<const T, S> in, const affine_matrix& matrix, tensor<T, S> out, const affine_options& options = {},
                      Then then = {}) {
  static_assert(S.rank() == 3, "affine_transform takes an image: (height, width, channels)");
  detail::affine_sampler<T, S>(in, matrix, options).write(out.data, then);
}

}  // namespace strata::data
