// Random augmentation: images enlarged or reduced around their centre.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <ranges>
#include <strata/data/image/random_image.hpp>
#include <string>
#include <utility>

namespace strata::data {

namespace detail {

struct draw_zoom {
  static constexpr std::uint64_t name = 0x7A6F6F6D;  // "zoom"
  factor_range height;
  std::optional<factor_range> width;

  static constexpr const char* stage = "random_zoom";
  std::string order() const { return text_of_range(height) + (width ? ", " + text_of_range(*width) : ""); }
  affine_matrix operator()(std::array<double, 2> uniform, shape image) const {
    const double down = 1 + between(height, uniform[0]);
    return affine_matrix::zoom(width ? 1 + between(*width, uniform[1]) : down, down, image);
  }
};

struct random_zoom_fn {
  template <std::ranges::range V>
  auto operator()(V view, factor_range height_factor, std::optional<factor_range> width_factor,
                  random_affine_options options = {}) const {
    constexpr bool no_names = !has_names<V>, fits = image_view<V> || !no_names;
    static_assert(no_names, "data::random_zoom takes samples without names: put it before data::named");
    static_assert(fits, "data::random_zoom takes a view of images, samples of shape (height, width, channels), before batch");
    check_factor("random_zoom", "height_factor", height_factor, {-1, 1}, true);
    if (width_factor) check_factor("random_zoom", "width_factor", *width_factor, {-1, 1}, true);
    if constexpr (image_view<V>) return moved(std::move(view), draw_zoom{height_factor, width_factor}, options);
  }
  template <std::ranges::range V>
  auto operator()(V view, factor_range height_factor, random_affine_options options = {}) const {
    return (*this)(std::move(view), height_factor, std::nullopt, options);
  }
  auto operator()(factor_range height_factor, factor_range width_factor, random_affine_options options = {}) const {
    return detail::partial(*this, height_factor, std::optional(width_factor), options);
  }
  auto operator()(factor_range height_factor, random_affine_options options = {}) const {
    return detail::partial(*this, height_factor, options);
  }
};

}  // namespace detail

/// `random_zoom(0.2)`, `random_zoom({-0.3, 0}, 0.1, {.seed = 7})`: each image shows (1 + f) times its height, and (1 + g) times
/// its width, with f drawn from [-0.2, 0.2] or [-0.3, 0] and g from [-0.1, 0.1], or g = f without a width_factor. Factors above
/// 0 make the content smaller. Options: fill_mode (reflect), interpolation (bilinear), seed (0), fill_value (0). Random numbers
/// depend on seed, epoch and sample only. Labels, category and size are those of the view. Throws strata_error if a
/// factor is not in (-1, 1]. https://keras.io/api/layers/preprocessing_layers/image_augmentation/random_zoom
inline constexpr detail::random_zoom_fn random_zoom{};

}  // namespace strata::data
