// Random augmentation: images mirrored.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ranges>
#include <strata/base/shape.hpp>
#include <strata/base/tensor.hpp>
#include <strata/base/text.hpp>
#include <strata/concepts/stored_samples.hpp>
#include <strata/data/core/scratch.hpp>
#include <strata/data/image/random_image.hpp>
#include <string>
#include <utility>

namespace strata::data {

namespace detail {
template <class T, shape S>
void flip(const T* __restrict from, T* __restrict to, bool across, bool down) {
  static_assert(S.rank() == 3, "only images are flipped: (height, width, channels)");
  constexpr int height = S[0], width = S[1], channels = S[2], row_size = width * channels;
  for (int y = 0; y < height; ++y, to += row_size) {
    const T* row = from + (down ? height - 1 - y : y) * row_size;
    const T* last = row + row_size - channels;
    if (!across) {
      std::copy_n(row, row_size, to);
    } else if constexpr (channels == 1) {
      for (int x = 0; x < width; ++x) to[x] = last[-x];
    } else {
      // Copies three values as four, which is one instruction; the next pixel overwrites the fourth.
      constexpr int step = channels == 3 ? 4 : channels;
      std::copy_n(last, channels, to);
      for (int x = 1; x < width - 1; ++x) std::copy_n(last - x * channels, step, to + x * channels);
      std::copy_n(row, channels, to + row_size - channels);
    }
  }
}
}  // namespace detail

/// Exchanges left and right. in, out: (height, width, channels), not the same memory.
/// https://www.tensorflow.org/api_docs/python/tf/image/flip_left_right
template <class T, shape S>
void flip_left_right(tensor<const T, S> in, tensor<T, S> out) {
  detail::flip<T, S>(in.data, out.data, true, false);
}
/// Exchanges top and bottom. in, out: (height, width, channels), not the same memory.
/// https://www.tensorflow.org/api_docs/python/tf/image/flip_up_down
template <class T, shape S>
void flip_up_down(tensor<const T, S> in, tensor<T, S> out) {
  detail::flip<T, S>(in.data, out.data, false, true);
}

enum class flip_mode { horizontal, vertical, horizontal_and_vertical };

struct random_flip_options {
  std::uint64_t seed = 0;
};

namespace detail {

template <row_source Base>
class flipped_rows : public random_rows<Base> {
 public:
  flipped_rows(Base base, flip_mode mode, std::uint64_t seed)
      : random_rows<Base>(std::move(base)), mirror_{seed, mode != flip_mode::vertical, mode != flip_mode::horizontal} {}

  std::string order() const {
    return strata::detail::text_of({"random_flip(", mirror_.horizontal ? "horizontal, " : "",
                                    mirror_.vertical ? "vertical, " : "", "seed ", mirror_.seed, ")"});
  }
  template <class T, class Then>
  void write(sample_index i, sample_index ahead, sample_place<T> to, Then then) const {
    const auto [across, down] = mirror_.of(ordinal(this->base_, i), i.epoch);
    if (!across && !down) return this->base_.write(i, ahead, to, then);
    const scratch<T> image(std::size_t{Base::sample_shape.size()});
    sample_place<T> before = to;
    before.x = image.data();
    this->base_.write(i, ahead, before, then);
    flip<T, Base::sample_shape>(image.data(), to.x, across, down);
  }
  std::optional<stored_samples> stored() const
    requires has_stored<Base>
  {
    std::optional<stored_samples> all = this->base_.stored();
    if (!all || !all->rows_are_ordinals || all->mirror_count == stored_samples::most_mirrors) return {};
    all->mirrors[all->mirror_count++] = mirror_;
    all->width = Base::sample_shape[1], all->channels = Base::sample_shape[2];
    return all;
  }

 private:
  random_mirror mirror_;
};

struct random_flip_fn {
  template <std::ranges::range V>
  auto operator()(V view, flip_mode mode = flip_mode::horizontal_and_vertical, random_flip_options options = {}) const {
    constexpr bool no_names = !has_names<V>, fits = image_view<V> || !no_names;
    static_assert(no_names, "data::random_flip takes samples without names: put it before data::named");
    static_assert(fits, "data::random_flip takes a view of images, samples of shape (height, width, channels), before batch");
    if constexpr (image_view<V>) return with_rows<flipped_rows<rows_t<V>>>(std::move(view), mode, options.seed);
  }
  constexpr auto operator()(flip_mode mode = flip_mode::horizontal_and_vertical, random_flip_options options = {}) const {
    return detail::partial(*this, mode, options);
  }
};

}  // namespace detail

/// `random_flip(flip_mode::horizontal, {.seed = 7})`: mirrors each image with probability 1/2. With horizontal_and_vertical, the
/// default, both directions are drawn independently (Keras 3 draws once for both, so an image is kept or turned by 180 degrees).
/// Random numbers depend on seed, epoch and sample only. Labels, category and size are those of the view.
/// https://keras.io/api/layers/preprocessing_layers/image_augmentation/random_flip
inline constexpr detail::random_flip_fn random_flip{};

}  // namespace strata::data
