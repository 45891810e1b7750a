// Random augmentation: images with more or less contrast.
#pragma once
#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <ranges>
#include <strata/base/error.hpp>
#include <strata/base/multiply_add.hpp>
#include <strata/base/text.hpp>
#include <strata/data/image/random_image.hpp>
#include <string>
#include <type_traits>
#include <utility>

namespace strata::data {

/// image: (height, width, channels), in place: (x - mean) * factor + mean, with the mean of each channel, then clipped to
/// [range[0], range[1]] and passed through `then`. https://www.tensorflow.org/api_docs/python/tf/image/adjust_contrast
template <std::floating_point T, shape S, class Then = std::identity>
void adjust_contrast(tensor<T, S> image, std::type_identity_t<T> factor, std::array<double, 2> range = {0, 255}, Then then = {}) {
  static_assert(S.rank() == 3, "adjust_contrast takes an image: (height, width, channels)");
  constexpr int channels = S[2], lanes = 16 * channels, whole = S.size() / lanes * lanes;
  // A fixed number of sums at once: vectorises, with the same bits for any width of vectors.
  std::array<T, std::size_t{lanes}> sums{};
  for (int k = 0; k < whole; k += lanes)
    for (int l = 0; l < lanes; ++l) sums[static_cast<std::size_t>(l)] += image.data[k + l];
  for (int k = whole; k < S.size(); ++k) sums[static_cast<std::size_t>(k - whole)] += image.data[k];

  std::array<T, std::size_t{lanes}> means;
  for (int c = 0; c < channels; ++c) {
    double sum = 0;
    for (int l = c; l < lanes; l += channels) sum += static_cast<double>(sums[static_cast<std::size_t>(l)]);
    for (int l = c; l < lanes; l += channels) means[static_cast<std::size_t>(l)] = static_cast<T>(sum / (S[0] * S[1]));
  }
  const T low = static_cast<T>(range[0]), high = static_cast<T>(range[1]);
  const auto adjusted = [&](int k, int l) {
    const T mean = means[static_cast<std::size_t>(l)], x = strata::detail::multiply_add(image.data[k] - mean, factor, mean);
    return then(std::min(std::max(x, low), high));
  };
  for (int k = 0; k < whole; k += lanes)
    for (int l = 0; l < lanes; ++l) image.data[k + l] = adjusted(k + l, l);
  for (int k = whole; k < S.size(); ++k) image.data[k] = adjusted(k, k - whole);
}

/// The two fractions of the range [1 - lower, 1 + upper], or one for both.
struct contrast_range {
  double lower, upper;

  contrast_range(double factor) : lower(factor), upper(factor) {}
  contrast_range(double less, double more) : lower(less), upper(more) {}
};

struct random_contrast_options {
  std::array<double, 2> value_range = {0, 255};
  std::uint64_t seed = 0;
};

namespace detail {

template <row_source Base>
class contrasted_rows : public random_rows<Base> {
 public:
  using value_type = fractional_t<typename Base::value_type>;

  contrasted_rows(Base base, contrast_range factor, random_contrast_options options)
      : random_rows<Base>(std::move(base)), factor_(factor), options_(options) {}

  std::string order() const {
    return strata::detail::text_of({"random_contrast(", text_of_range({-factor_.lower, factor_.upper}), ", values ",
                                    text_of_range({options_.value_range[0], options_.value_range[1]}), ", seed ", options_.seed,
                                    ")"});
  }
  template <class T, class Then>
  void write(sample_index i, sample_index ahead, sample_place<T> to, Then then) const {
    this->base_.write(i, ahead, to, std::identity{});
    const double uniform = draw(options_.seed, 0x636F6E7472617374, this->base_, i)[0];  // "contrast"
    adjust_contrast(tensor<T, Base::sample_shape>{to.x}, static_cast<T>(between({1 - factor_.lower, 1 + factor_.upper}, uniform)),
                    options_.value_range, then);
  }

 private:
  contrast_range factor_;
  random_contrast_options options_;
};

struct random_contrast_fn {
  template <std::ranges::range V>
  auto operator()(V view, contrast_range factor, random_contrast_options options = {}) const {
    constexpr bool no_names = !has_names<V>, fits = image_view<V> || !no_names;
    static_assert(no_names, "data::random_contrast takes samples without names: put it before data::named");
    static_assert(fits, "data::random_contrast takes a view of images, samples of shape (height, width, channels), before batch");
    check_factor("random_contrast", "factor", {factor.lower, factor.upper}, {0, 1});
    const auto [low, high] = options.value_range;
    if (!(low < high)) throw_error(strata::detail::formatted("random_contrast: value_range [%g, %g] is empty", low, high));
    if constexpr (image_view<V>) return with_rows<contrasted_rows<rows_t<V>>>(std::move(view), factor, options);
  }
  auto operator()(contrast_range factor, random_contrast_options options = {}) const {
    return detail::partial(*this, factor, options);
  }
};

}  // namespace detail

/// `random_contrast(0.2)`, `random_contrast({0.2, 0.5}, {.value_range = {0, 1}, .seed = 7})`: in each image, the distance of
/// each value from the mean of its channel is multiplied by a factor drawn from [1 - 0.2, 1 + 0.2] or [1 - 0.2, 1 + 0.5], as
/// Keras documents it; the result is clipped to value_range, [0, 255] by default. Random numbers depend on seed, epoch and sample
/// only. Labels, category and size are those of the view.
/// Throws strata_error if a factor is not in [0, 1] or value_range is empty.
/// https://keras.io/api/layers/preprocessing_layers/image_augmentation/random_contrast
inline constexpr detail::random_contrast_fn random_contrast{};

}  // namespace strata::data
