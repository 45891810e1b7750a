// Random augmentation: images rotated around their centre.
#pragma once
#include <array>
#include <cstdint>
#include <numbers>
#include <ranges>
#include <strata/data/image/random_image.hpp>
#include <string>
#include <utility>

namespace strata::data {

namespace detail {

struct draw_rotation {
  static constexpr std::uint64_t name = 0x726F74617465;  // "rotate"
  static constexpr const char* stage = "random_rotation";
  factor_range factor;

  std::string order() const { return text_of_range(factor); }
  affine_matrix operator()(std::array<double, 2> uniform, shape image) const {
    return affine_matrix::rotation(2 * std::numbers::pi * between(factor, uniform[0]), image);
  }
};

struct random_rotation_fn {
  template <std::ranges::range V>
  auto operator()(V view, factor_range factor, random_affine_options options = {}) const {
    constexpr bool no_names = !has_names<V>, fits = image_view<V> || !no_names;
    static_assert(no_names, "data::random_rotation takes samples without names: put it before data::named");
    static_assert(fits, "data::random_rotation takes a view of images, samples of shape (height, width, channels), before batch");
    check_factor("random_rotation", "factor", factor, {-1, 1});
    if constexpr (image_view<V>) return moved(std::move(view), draw_rotation{factor}, options);
  }
  auto operator()(factor_range factor, random_affine_options options = {}) const {
    return detail::partial(*this, factor, options);
  }
};

}  // namespace detail

/// `random_rotation(0.1)`, `random_rotation({-0.2, 0.3}, {.seed = 7})`: rotates each image counter-clockwise by a part of a full
/// turn drawn from [-0.1, 0.1] or [-0.2, 0.3]. Options: fill_mode (reflect), interpolation (bilinear), seed (0), fill_value (0).
/// Random numbers depend on seed, epoch and sample only. Labels, category and size are those of the view. Throws
/// strata_error if the factor is not in [-1, 1].
/// https://keras.io/api/layers/preprocessing_layers/image_augmentation/random_rotation
inline constexpr detail::random_rotation_fn random_rotation{};

}  // namespace strata::data
