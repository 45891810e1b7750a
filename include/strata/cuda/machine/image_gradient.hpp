// Gradients of the kernels of convolutions on tensor cores: a block keeps an image, and the gradient of its result, in shared
// memory, and adds up products over their pixels.
#pragma once
#include <algorithm>
#include <cstdint>
#include <strata/cuda/machine/kept_images.hpp>
#include <strata/cuda/machine/leaf_parts.hpp>
#include <strata/cuda/machine/product_terms.hpp>
#include <strata/cuda/machine/shared_bytes.hpp>
#include <strata/cuda/machine/tensor_cores.hpp>
#include <type_traits>
#include <utility>

namespace strata::machine {

/// Pixels in shared memory. Each has 16 bytes more than its channels need, so that eight neighbours, of which the same eight
/// channels are loaded together, are in different banks.
template <int Pixels, int Channels>
class pixels_by_rows {
  static_assert(Channels % 16 == 0);
  static constexpr int units_of_pixel = Channels / 8 + 1;
  eight_terms units_[Pixels * units_of_pixel];

 public:
  STRATA_DEVICE void clear(int t, int threads) {
    for (int i = t; i < Pixels * units_of_pixel; i += threads) units_[i] = {};
  }
  /// Channels 8 * number to 8 * number + 7.
  STRATA_DEVICE eight_terms& eight(int pixel, int number) { return units_[pixel * units_of_pixel + number]; }
  STRATA_DEVICE const eight_terms& eight(int pixel, int number) const { return units_[pixel * units_of_pixel + number]; }
  STRATA_DEVICE float number(int pixel, int channel) const {
    return number_of_pair(eight(pixel, channel / 8).at[channel % 8 / 2], channel % 2);
  }
};

/// What thread `lane` of a warp loads, and what it has of the result, where the terms of a product are sixteen pixels. ldmatrix
/// loads both factors as matrices of eight pixels by eight channels; each thread passes it the address of one row.
struct gradient_lane {
  int lane;
  /// The row whose address this thread passes: its pixel, and the first of its eight channels, of sixteen of the image.
  constexpr int pixel_of_image() const { return lane / 16 * 8 + lane % 8; }
  constexpr int channel_of_image() const { return lane / 8 % 2 * 8; }
  /// Likewise of sixteen filters.
  constexpr int pixel_of_result() const { return lane / 8 % 2 * 8 + lane % 8; }
  constexpr int filter_of_result() const { return lane / 16 * 8; }
  /// The channel of sixteen and the filter of eight of its sum `i` of four.
  constexpr int channel(int i) const { return lane / 4 + i / 2 * 8; }
  constexpr int filter(int i) const { return lane % 4 * 2 + i % 2; }
};

namespace detail {
/// Calls multiply(sum, a, b) for each sixteen channels by eight filters. channels_of(i), filters_of(j): the registers that a
/// thread gets of sixteen channels and of sixteen filters.
template <int Sixteens, int Filters, class ChannelsOf, class FiltersOf, class Multiply>
STRATA_DEVICE void for_each_instruction_of_pixels(const ChannelsOf& channels_of, const FiltersOf& filters_of,
                                                  float (&sums)[Sixteens][Filters / 8][4], const Multiply& multiply) {
  four<std::uint32_t> a[Sixteens];
  for (int i = 0; i < Sixteens; ++i) a[i] = channels_of(i);
  for (int j = 0; j < Filters / 8; j += 2) {
    const four<std::uint32_t> both = filters_of(j / 2);
    for (int second = 0; second < 2; ++second)
      for (int i = 0; i < Sixteens; ++i) {
        float (&to)[4] = sums[i][j + second];
        float* const sum[4] = {&to[0], &to[1], &to[2], &to[3]};
        const std::uint32_t b[2] = {both.at[2 * second], both.at[2 * second + 1]};
        multiply(sum, a[i].at, b);
      }
  }
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
/// Loads four matrices of eight by eight bfloat16; each thread passes one row. They are transposed: a register holds two rows of
/// a column.
STRATA_DEVICE inline four<std::uint32_t> load_transposed(const eight_terms& row) {
  four<std::uint32_t> all;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(all.at[0]), "=r"(all.at[1]), "=r"(all.at[2]), "=r"(all.at[3])
               : "r"(unsigned(__cvta_generic_to_shared(&row)))
               : "memory");
  return all;
}
#endif

template <class Product>
struct image_gradient_code : leaf_parts<Product> {
  using blocks = leaf_parts<Product>;
  using blocks::product;
  using typename blocks::part;
  using view = typename Product::view;
  static constexpr int pixels = Product::pixels_of_sample, sixteens_of_pixels = (pixels + 15) / 16, planes = view::channels / 32;
  static_assert(view::channels % 32 == 0 && Product::columns % 32 == 0);
  /// The filters of a block.
  static constexpr int filters = Product::columns % 64 == 0 ? 64 : 32, blocks_across = Product::columns / filters;
  /// A warp has 32 channels of a tap: a strip. One more has the gradient of the bias.
  static constexpr int strips = Product::taps * planes + Product::has_row_of_ones, blocks_down = (strips + 9) / 10,
                       warps = (strips + blocks_down - 1) / blocks_down, threads = 32 * warps;
  struct shared {
    pixels_by_rows<view::rows * view::columns, view::channels> image;
    pixels_by_rows<sixteens_of_pixels * 16, filters> result;
  };

  STRATA_DEVICE void operator()(const lane& l, shared& memory) const {
    const int t = l.thread(), block = int(l.block() % (blocks_down * blocks_across));
    const part own = blocks::part_of(l.block() / (blocks_down * blocks_across));
    const int first_filter = block % blocks_across * filters, strip = block / blocks_across * warps + t / 32;
    memory.image.clear(t, threads);
    memory.result.clear(t, threads);
    float sums[2][filters / 8][4] = {};
    for (int image = own.begin; image < own.end; ++image) {
      l.barrier();
      keep(memory, image, first_filter, t);
      l.barrier();
      if (strip < strips)
        for (int i = 0; i < sixteens_of_pixels; ++i) multiply(memory, 16 * i, strip, {t % 32}, sums);
    }
    if (strip < strips) store(own, strip, first_filter, {t % 32}, sums);
  }

 private:
  static constexpr bool is_of_bias(int strip) { return Product::has_row_of_ones && strip == strips - 1; }

  STRATA_DEVICE void keep(shared& memory, int image, int first_filter, int t) const {
    for_each_inside_eight<view>(product.large, image, t, threads, [&](int pixel, int number, const eight_terms& terms) {
      memory.image.eight(pixel, number) = terms;
    });
    for_each_eight<pixels, filters>(t, threads, [&](int pixel, int number) {
      const int filter = first_filter + 8 * number;
      memory.result.eight(pixel, number) =
          rounded_eight(product.result_four(image, pixel, filter), product.result_four(image, pixel, filter + 4));
    });
  }

  /// The pixel of the image under a tap, for a pixel of the result. Of pixels after the last one the result is zero.
  static constexpr int under(int pixel, int tap) {
    return view::place(Product::pixel_of_term(std::min(pixel, pixels - 1))) + view::offset(tap);
  }
  STRATA_DEVICE static void multiply(const shared& memory, int first_pixel, int strip, gradient_lane own,
                                     float (&sums)[2][filters / 8][4]) {
    const int tap = strip / planes, first_channel = strip % planes * 32;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    for_each_instruction_of_pixels<2, filters>(
        [&](int i) -> four<std::uint32_t> {
          if (is_of_bias(strip)) return {0x3f80'3f80, 0x3f80'3f80, 0x3f80'3f80, 0x3f80'3f80};
          const int pixel = under(first_pixel + own.pixel_of_image(), tap);
          return load_transposed(memory.image.eight(pixel, (first_channel + 16 * i + own.channel_of_image()) / 8));
        },
        [&](int j) {
          const int pixel = first_pixel + own.pixel_of_result();
          return load_transposed(memory.result.eight(pixel, (16 * j + own.filter_of_result()) / 8));
        },
        sums, [](const auto&... operands) { multiply_add<precision::mixed_bf16>(operands...); });
#else
    for (int pixel = first_pixel; pixel < first_pixel + 16; ++pixel)
      for (int i = 0; i < 2; ++i)
        for (int j = 0; j < filters / 8; ++j)
          for (int k = 0; k < 4; ++k)
            sums[i][j][k] +=
                (is_of_bias(strip) ? 1 : memory.image.number(under(pixel, tap), first_channel + 16 * i + own.channel(k))) *
                memory.result.number(pixel, 8 * j + own.filter(k));
#endif
  }
  STRATA_DEVICE void store(const part& to, int strip, int first_filter, gradient_lane own,
                           const float (&sums)[2][filters / 8][4]) const {
    const auto store_tile = [&](int i, int j) {
      for (int k = 0; k < 4; ++k) {
        const int channel = 16 * i + own.channel(k);
        if (!is_of_bias(strip) || channel == 0)  // all rows of the factor of a bias are ones
          blocks::store_sum(to, strip * 32 + channel, first_filter + 8 * j + own.filter(k), sums[i][j][k]);
      }
    };
    // No loop: its sums would not stay in registers.
    [&]<int... J>(std::integer_sequence<int, J...>) {
      ((store_tile(0, J), store_tile(1, J)), ...);
    }(std::make_integer_sequence<int, filters / 8>{});
  }
};
}  // namespace detail

/// True if gradients_of_images can compute a product: see keeps_images.
template <class Product>
inline constexpr bool keeps_images_of_gradient = [] {
  using view = typename Product::view;
  if constexpr (rounds_to_bfloat16<typename Product::precision> && Product::columns % 32 == 0 && view::channels % 32 == 0)
    return sizeof(typename detail::image_gradient_code<Product>::shared) <= most_shared_bytes;
  else
    return false;
}();

/// The gradient of a kernel for each of `count` leaves, whose samples are cut into parts, which add_parts adds up. Product has,
/// like the products of `products`, `precision`, `columns`, `rows`, `has_row_of_ones` and `store`, and
///   `view`, `taps`   as for_each_image requires them
///
///   `kernel_rows`   the rows of the product without that of the bias: tap after tap, channel by channel
///
///   `pixels_of_sample`, `pixel_of_term(i)`   the pixels of the result of a sample
///
///   `large`   the images
///
///   `result_four(image, i, n)`   the gradient of pixel i, of four filters
///
///   `first_sample(z)`, `samples_of(z)`   the samples of leaf z
template <class Product>
  requires keeps_images_of_gradient<Product>
void gradients_of_images(const queue& q, long count, const Product& product, product_parts parts,
                         typename Product::precision::value_type* sums) {
  using code = detail::image_gradient_code<Product>;
  machine::launch(q, count * parts.count * code::blocks_down * code::blocks_across, code{{product, parts, sums}});
}

}  // namespace strata::machine
