// Random augmentation: images moved up, down, left and right.
#pragma once
#include <array>
#include <cstdint>
#include <ranges>
#include <strata/data/image/random_image.hpp>
#include <string>
#include <utility>

namespace strata::data {

namespace detail {

struct draw_translation {
  static constexpr std::uint64_t name = 0x7472616E736C6174;  // "translat"
  static constexpr const char* stage = "random_translation";
  factor_range height, width;

  std::string order() const { return text_of_range(height) + ", " + text_of_range(width); }
  affine_matrix operator()(std::array<double, 2> uniform, shape image) const {
    return affine_matrix::translation(between(width, uniform[1]) * image[1], between(height, uniform[0]) * image[0]);
  }
};

struct random_translation_fn {
  template <std::ranges::range V>
  auto operator()(V view, factor_range height_factor, factor_range width_factor, random_affine_options options = {}) const {
    constexpr bool no_names = !has_names<V>, fits = image_view<V> || !no_names;
    static_assert(no_names, "data::random_translation takes samples without names: put it before data::named");
    static_assert(fits,
                  "data::random_translation takes a view of images, samples of shape (height, width, channels), before batch");
    check_factor("random_translation", "height_factor", height_factor, {-1, 1});
    check_factor("random_translation", "width_factor", width_factor, {-1, 1});
    if constexpr (image_view<V>) return moved(std::move(view), draw_translation{height_factor, width_factor}, options);
  }
  auto operator()(factor_range height_factor, factor_range width_factor, random_affine_options options = {}) const {
    return detail::partial(*this, height_factor, width_factor, options);
  }
};

}  // namespace detail

/// `random_translation(0.1, {-0.2, 0.3}, {.fill_mode = fill_mode::constant, .seed = 7})`: each image moves down by a part of
/// its height drawn from [-0.1, 0.1], and to the right by a part of its width drawn from [-0.2, 0.3]. Options: fill_mode
/// (reflect), interpolation (bilinear; with nearest, images move by whole pixels), seed (0), fill_value (0). Random numbers
/// depend on seed, epoch and sample only. Labels, category and size are those of the view. Throws strata_error if a
/// factor is not in [-1, 1]. https://keras.io/api/layers/preprocessing_layers/image_augmentation/random_translation
inline constexpr detail::random_translation_fn random_translation{};

}  // namespace strata::data
