// Products on tensor cores whose rows are the pixels of an image, as those of convolutions: a block keeps the image over which
// its windows slide, and all weights, in shared memory. So each number is fetched and rounded once, not once for each tap.
#pragma once
#include <algorithm>
#include <cstdint>
#include <strata/cuda/machine/kept_images.hpp>
#include <strata/cuda/machine/loops.hpp>
#include <strata/cuda/machine/shared_bytes.hpp>
#include <strata/cuda/machine/tensor_cores.hpp>
#include <type_traits>

namespace strata::machine {

/// A warp computes 32 pixels by 32 columns of a result. Of these, thread `lane` has columns 4 * (lane / 4) and the next three, of
/// eight pixels.
struct image_lane {
  int group, within;
  constexpr explicit image_lane(int lane) : group(lane / 4), within(lane % 4) {}
  constexpr int column() const { return 4 * group; }
  /// Number p of its pixels. Where four pixels belong together, as those of a pooling window, it has all of them.
  constexpr int pixel(int p, bool are_windows) const { return are_windows ? 8 * within + p : p / 2 * 8 + 2 * within + p % 2; }
  /// The pixel of which it loads the terms for instruction j of four. Threads beside it load those of neighbours.
  constexpr int loaded_pixel(int j, bool are_windows) const {
    return are_windows ? group / 2 * 8 + 2 * j + group % 2 : 8 * j + group;
  }
};

/// Weights in shared memory: of 32 terms and 32 columns, the registers of four instructions, thread by thread.
class kept_weights {
  four<std::uint32_t> registers_[2][2][32];

 public:
  /// Those of columns 4 * (lane / 4) + 2 * i and the next one, and half of the terms that the thread has.
  STRATA_DEVICE const four<std::uint32_t>& registers(int half, int i, int lane) const { return registers_[half][i][lane]; }
  /// Stores two neighbouring terms of a column, which are number `pair` (0 to 15) of such pairs.
  STRATA_DEVICE void store(int column, int pair, std::uint32_t word) {
    registers_[pair % 4 / 2][column % 4 / 2][column / 4 * 4 + pair / 4].at[place(column, pair)] = word;
  }
  STRATA_DEVICE std::uint32_t load(int column, int pair) const {
    return registers_[pair % 4 / 2][column % 4 / 2][column / 4 * 4 + pair / 4].at[place(column, pair)];
  }

 private:
  static constexpr int place(int column, int pair) { return column % 2 + pair % 2 * 2; }
};

namespace detail {
/// Calls multiply(sum, a, b) for each 16 columns by 8 pixels of a result of 32 x 32, and one half or both of 32 terms. a: the
/// weights, b: the terms of loaded_pixel. The registers are those of mma.sync.m16n8k16 (PTX ISA). Its rows are columns of the
/// result here: then one load fills all registers of a factor.
template <int Halves, class Multiply>
STRATA_DEVICE void for_each_instruction(const kept_weights& weights, const eight_terms (&of_pixels)[4], int lane,
                                        float (&sums)[8][4], const Multiply& multiply) {
  for (int half = 0; half < Halves; ++half)
    for (int i = 0; i < 2; ++i) {
      const four<std::uint32_t> a = weights.registers(half, i, lane);
      for (int j = 0; j < 4; ++j) {
        const std::uint32_t b[2] = {of_pixels[j].at[2 * half], of_pixels[j].at[2 * half + 1]};
        float* const sum[4] = {&sums[2 * j][2 * i], &sums[2 * j + 1][2 * i], &sums[2 * j][2 * i + 1],
                               &sums[2 * j + 1][2 * i + 1]};
        multiply(sum, a.at, b);
      }
    }
}

/// The pixels of a tile whose terms a thread needs. With tensor cores these are the pixels that it loads; without tensor cores,
/// as in the emulation, they are its own.
struct pixels_of_thread {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  static constexpr int count = 4;
  static constexpr int pixel(const image_lane& l, int i, bool are_windows) { return l.loaded_pixel(i, are_windows); }
#else
  static constexpr int count = 8;
  static constexpr int pixel(const image_lane& l, int i, bool are_windows) { return l.pixel(i, are_windows); }
#endif
};

/// Adds the products of 32 terms to the elements that a thread has. terms_of(i, number): eight terms of pixel i of
/// pixels_of_thread. All threads of a warp have to call it.
template <int Halves, class Terms>
STRATA_DEVICE void multiply_thirty_two(const kept_weights& weights, const Terms& terms_of, int lane, float (&sums)[8][4]) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  eight_terms of_pixels[4];
  for (int j = 0; j < 4; ++j) of_pixels[j] = terms_of(j, lane % 4);
  for_each_instruction<Halves>(weights, of_pixels, lane, sums,
                               [](const auto&... operands) { multiply_add<precision::mixed_bf16>(operands...); });
#else
  for (int number = 0; number < 4; ++number)
    for (int p = 0; p < 8; ++p) {
      const eight_terms terms = terms_of(p, number);
      for (int k = 0; k < 2 * Halves; ++k)
        for (int j = 0; j < 4; ++j)
          for (int which = 0; which < 2; ++which)
            sums[p][j] +=
                number_of_pair(terms.at[k], which) * number_of_pair(weights.load(lane / 4 * 4 + j, 4 * number + k), which);
    }
#endif
}

template <class Product>
struct image_code {
  static constexpr int pixels = Product::rows_of_image, columns = Product::columns;
  static constexpr bool are_windows = Product::rows_are_windows;
  using view = typename Product::view;
  using image_type = typename kept_image<Product>::type;
  static constexpr int thirty_twos = image_type::thirty_twos, tiles_across = columns / 32;

  /// A warp computes one tile after the other.
  static constexpr int tiles = (pixels + 31) / 32 * tiles_across, turns = (tiles + 7) / 8;
  static constexpr int threads = 32 * ((tiles + turns - 1) / turns);
  struct shared {
    kept_weights weights[thirty_twos][tiles_across];
    image_type image;
  };
  static constexpr int blocks_with_shared_bytes(int bytes) { return std::max(bytes / int(sizeof(shared) + 1024), 1); }
  /// As many as an H100 has shared memory for, and registers: 128 for each thread of 16 warps.
  static constexpr int blocks_of_multiprocessor = std::min(blocks_with_shared_bytes(228 * 1024), std::max(16 * 32 / threads, 1));
  Product product;
  int images, blocks;

  STRATA_DEVICE void operator()(const lane& l, shared& memory) const {
    const int t = l.thread();
    const image_lane own(t % 32);
    memory.image.clear(t, threads);
    image_type::for_each_weight(product, t, threads, [&](int thirty_two, int n, int pair, std::uint32_t word) {
      memory.weights[thirty_two][n / 32].store(n % 32, pair, word);
    });
    for (int image = int(l.block()); image < images; image += blocks) {
      l.barrier();
      memory.image.keep(product, image, t, threads);
      l.barrier();
      for (int tile = t / 32; tile < tiles; tile += threads / 32) {
        const int first = tile / tiles_across * 32, across = tile % tiles_across;
        float sums[8][4] = {};
        multiply(memory, first, across, t % 32, sums);
        store(image, first, across * 32 + own.column(), own, sums);
      }
    }
  }

 private:
  STRATA_DEVICE static void multiply(const shared& memory, int first, int across, int lane, float (&sums)[8][4]) {
    int places[pixels_of_thread::count];
    for (int i = 0; i < pixels_of_thread::count; ++i) {
      const int pixel = first + pixels_of_thread::pixel(image_lane(lane), i, are_windows);
      places[i] = view::place(Product::pixel_of_row(std::min(pixel, pixels - 1)));  // what is after the last one is not stored
    }
    for (int i = 0; i < thirty_twos; ++i)
      multiply_thirty_two<image_type::halves>(
          memory.weights[i][across],
          [&](int pixel, int number) -> decltype(auto) { return memory.image.terms(i, places[pixel], number); }, lane, sums);
  }
  STRATA_DEVICE void store(int image, int first, int n, const image_lane& own, const float (&sums)[8][4]) const {
    four<float> of_pixels[8];
    for (int p = 0; p < 8; ++p)
      for (int j = 0; j < 4; ++j) of_pixels[p].at[j] = sums[p][j];
    if constexpr (are_windows) {
      for (int p = 0; p < 8; p += 4)
        if (const int m = first + own.pixel(p, true); m < pixels)
          product.store_four_rows(0, image * pixels + m, n, {of_pixels[p], of_pixels[p + 1], of_pixels[p + 2], of_pixels[p + 3]});
    } else {
      for (int p = 0; p < 8; ++p)
        if (const int m = first + own.pixel(p, false); m < pixels) product.store_four(0, image * pixels + m, n, of_pixels[p]);
    }
  }
};
}  // namespace detail

/// True if for_each_image can compute a product: in bfloat16, with a number of columns that is a multiple of 32, if a block has
/// room for the image and the weights. The number of channels is a multiple of 32, too, or a window has up to 64 terms.
template <class Product>
inline constexpr bool keeps_images = [] {
  if constexpr (requires { typename Product::view; }) {
    using view = typename Product::view;
    if constexpr (rounds_to_bfloat16<typename Product::precision> && Product::columns % 32 == 0 && view::is_possible &&
                  (view::channels % 32 == 0 || (view::has_runs && Product::taps * view::channels <= 64)))
      return sizeof(typename detail::image_code<Product>::shared) <= most_shared_bytes;
    else
      return false;
  } else {
    return false;
  }
}();

/// Computes a product for each of `images` images, whose rows are pixels. Beside `precision`, `columns`,
/// `columns_are_neighbours`, `b_four`, `from`, and `store_four` or `store_four_rows`, which are those of products, Product has
///   `taps`, `rows_of_image`
///   `rows_are_windows`   whether four rows belong together, so that it has store_four_rows
///   `pixel_of_row(m)`    the pixel of row m of an image
///   `view`               the image over which windows slide, with all that they read: `rows`, `columns`, `channels`, of which
///                        `inside_rows` x `inside_columns` from (`first_row`, `first_column`) on are not zeros; `step`, how far
///                        apart the pixels of neighbouring rows are; `place(pixel) + offset(tap)`, what a tap reads for the pixel
///                        of a row; `pixel_four(from, image, row, column, channel)`, four channels of a pixel inside;
///                        `is_possible`. Where there are few channels: `has_runs`, whether the taps of a row are neighbours;
///                        `window_rows`, `window_columns`; `row_step`, from tap to tap; and `element(from, image, row, i)`,
///                        element i of a row, zeros included
template <class Product>
  requires keeps_images<Product>
void for_each_image(const queue& q, int images, const Product& product) {
  using code = detail::image_code<Product>;
  // Each block loads all weights: if there were more blocks than run at once, they would be loaded again.
  const int together =
      std::min(code::blocks_with_shared_bytes(shared_bytes_of_multiprocessor(q.device())), code::blocks_of_multiprocessor);
  const int blocks = std::min(images, multiprocessors(q.device()) * together);
  machine::launch(q, blocks, code{product, images, blocks});
}

}  // namespace strata::machine
