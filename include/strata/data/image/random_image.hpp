// Common parts of the random stages on images: rows, random numbers, and factors as in Keras.
#pragma once
#include <array>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <ranges>
#include <strata/base/error.hpp>
#include <strata/base/exact_text.hpp>
#include <strata/base/multiply_add.hpp>
#include <strata/base/random.hpp>
#include <strata/base/text.hpp>
#include <strata/data/core/closure.hpp>
#include <strata/data/core/rows_view.hpp>
#include <strata/data/core/scratch.hpp>
#include <strata/data/image/affine_transform.hpp>
#include <string>
#include <type_traits>
#include <utility>

namespace strata::data {

/// Both bounds of a range, or a fraction f for [-f, f].
struct factor_range {
  double lower, upper;

  factor_range(double factor) : lower(-std::abs(factor)), upper(std::abs(factor)) {}
  factor_range(double a, double b) : lower(b < a ? b : a), upper(b < a ? a : b) {}
};

/// Options of the stages that move pixels.
struct random_affine_options {
  data::fill_mode fill_mode = data::fill_mode::reflect;
  data::interpolation interpolation = data::interpolation::bilinear;
  std::uint64_t seed = 0;
  double fill_value = 0;
};

namespace detail {

/// Two random numbers in [0, 1) that depend on seed, stage, sample and epoch only.
template <class Rows>
std::array<double, 2> draw(std::uint64_t seed, std::uint64_t stage, const Rows& rows, sample_index i) {
  const philox::block words = philox{seed}.fork(stage)(ordinal(rows, i), i.epoch);
  const auto uniform = [](std::uint32_t low, std::uint32_t high) {
    return static_cast<double>((low | std::uint64_t{high} << 32) >> 11) * 0x1p-53;
  };
  return {uniform(words[0], words[1]), uniform(words[2], words[3])};
}
inline std::string text_of_range(factor_range range) {
  return strata::detail::exact_text(range.lower) + " to " + strata::detail::exact_text(range.upper);
}
inline double between(factor_range range, double uniform) {
  return strata::detail::multiply_add(range.upper - range.lower, uniform, range.lower);
}

/// Throws strata_error if a bound is outside of `allowed`, or at its lower end if `open`.
inline void check_factor(const char* stage, const char* name, factor_range factor, factor_range allowed, bool open = false) {
  for (const double bound : {factor.lower, factor.upper})
    if (!(bound >= allowed.lower && bound <= allowed.upper) || (open && bound == allowed.lower))
      throw_error(strata::detail::formatted("%s: %s %g is not in %c%g, %g]", stage, name, bound, open ? '(' : '[', allowed.lower,
                                            allowed.upper));
}

/// The type of values that are multiplied by fractions.
template <class T>
using fractional_t = std::conditional_t<std::floating_point<T>, T, float>;

/// Base of the rows of a random stage. Labels and targets stay the same.
template <row_source Base>
class random_rows : public samples_around<Base> {
 public:
  static constexpr row_properties properties = both(Base::properties, {.is_random = true});

 protected:
  explicit random_rows(Base base) : samples_around<Base>(std::move(base)) {}
};

/// Rows whose pixels are moved. Draw makes the matrix of a sample from two random numbers and the shape of the image; order()
/// describes its factors.
template <row_source Base, class Draw>
class moved_rows : public random_rows<Base> {
 public:
  using value_type = fractional_t<typename Base::value_type>;

  moved_rows(Base base, Draw draw, random_affine_options options)
      : random_rows<Base>(std::move(base)), draw_(draw), options_(options) {}

  std::string order() const {
    return strata::detail::text_of({Draw::stage, "(", draw_.order(), ", fill ", static_cast<int>(options_.fill_mode), ' ',
                                    strata::detail::exact_text(options_.fill_value), ", interpolation ",
                                    static_cast<int>(options_.interpolation), ", seed ", options_.seed, ")"});
  }

  template <class T, class Then>
  void write(sample_index i, sample_index ahead, sample_place<T> to, Then then) const {
    constexpr shape s = Base::sample_shape;
    const scratch<T> image(std::size_t{s.size()});
    sample_place<T> before = to;
    before.x = image.data();
    this->base_.write(i, ahead, before, std::identity{});
    const affine_matrix matrix = draw_(detail::draw(options_.seed, Draw::name, this->base_, i), s);
    affine_transform(tensor<const T, s>{image.data()}, matrix, tensor<T, s>{to.x},
                     {options_.fill_mode, options_.interpolation, options_.fill_value}, then);
  }

 private:
  Draw draw_;
  random_affine_options options_;
};

/// Samples of shape (height, width, channels).
template <class V>
concept image_view = sample_view<V> && rows_t<V>::sample_shape.rank() == 3;

template <class V, class Draw>
auto moved(V view, Draw draw, const random_affine_options& options) {
  return with_rows<moved_rows<rows_t<V>, Draw>>(std::move(view), draw, options);
}

}  // namespace detail
}  // namespace strata::data
