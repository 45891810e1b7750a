// The gradient of the kernel of a pooled convolution with few terms in a window: of each pooling window only the winner counts.
// needs: boost_context
#pragma once
#include <algorithm>
#include <strata/cuda/kernels/gradients.hpp>
#include <strata/cuda/machine/loops.hpp>
#include <strata/cuda/machine/product_terms.hpp>
#include <strata/cuda/machine/rounded_operand.hpp>

namespace strata::machine {

namespace detail {
/// A block keeps an image in shared memory, one after the other. Each thread has a filter and, with its warp, some windows of the
/// pooling; its sums are the gradient of all weights of the filter. Gradient: a kernel_gradient.
template <class Gradient>
struct winner_gradient_code {
  using view = typename Gradient::view;
  using precision = typename Gradient::precision;
  using value = typename precision::value_type;
  static constexpr int warps = 8, threads = 32 * warps, blocks_across = (Gradient::columns + 31) / 32;
  static constexpr int weights = Gradient::kernel_rows, rows = weights + Gradient::has_row_of_ones;
  static constexpr int row_elements = view::columns * view::channels;
  union shared {
    value image[view::rows * row_elements];
    value sums[warps][rows][32];
  };
  Gradient product;
  product_parts parts;  // of the samples of a leaf
  value* sums_of_parts;

  STRATA_DEVICE void operator()(const lane& l, shared& memory) const {
    const int t = l.thread(), filter = int(l.block() % blocks_across) * 32 + t % 32;
    const long tile = l.block() / blocks_across, z = tile / parts.count;
    const int part = int(tile % parts.count), begin = part * parts.terms;
    const int end = std::min(begin + parts.terms, product.samples_of(z));
    value sums[weights] = {}, sum_of_gradients{};
    for (int sample = begin; sample < end; ++sample) {
      const int image = product.first_sample(z) + sample;
      l.barrier();
      for (int i = t; i < view::rows * row_elements; i += threads)
        memory.image[i] = rounded_operand<precision>(
            value(view::element(product.large, image, quotient<row_elements>(i), remainder<row_elements>(i))));
      l.barrier();
      for (int window = t / 32; window < product.small.windows_of_image; window += warps) {
        const auto winner = product.small.winner_of(image, window, std::min(filter, Gradient::columns - 1));
        const value gradient = rounded_operand<precision>(winner.gradient);
        const int place = view::place(winner.at) * view::channels;
        for (int tap = 0; tap < Gradient::taps; ++tap)
          for (int c = 0; c < view::channels; ++c)
            sums[tap * view::channels + c] += memory.image[place + view::offset(tap) * view::channels + c] * gradient;
        sum_of_gradients += gradient;
      }
    }
    l.barrier();
    for (int m = 0; m < weights; ++m) memory.sums[t / 32][m][t % 32] = sums[m];
    if constexpr (Gradient::has_row_of_ones) memory.sums[t / 32][weights][t % 32] = sum_of_gradients;
    l.barrier();
    for (int m = t / 32; m < rows && filter < Gradient::columns; m += warps) {
      value sum = memory.sums[0][m][t % 32];
      for (int warp = 1; warp < warps; ++warp) sum += memory.sums[warp][m][t % 32];
      if (parts.count > 1)
        sums_of_parts[((z * parts.count + part) * rows + m) * Gradient::columns + filter] = sum;
      else
        product.store(z, m, filter, sum);
    }
  }
};
}  // namespace detail

/// Whether gradients_of_winners can compute a gradient: of a pooled convolution with up to 32 terms in a window, where a block
/// has room for an image.
template <class Gradient>
inline constexpr bool keeps_images_of_winners = [] {
  if constexpr (Gradient::kernel_rows <= 32 && requires(const Gradient& g) { g.small.winner_of(0, 0, 0); })
    return sizeof(typename detail::winner_gradient_code<Gradient>::shared) <= 48 * 1024;
  else
    return false;
}();

/// The gradient of a kernel for each of `count` leaves, whose samples are cut into parts, which add_parts adds up.
template <class Gradient>
  requires keeps_images_of_winners<Gradient>
void gradients_of_winners(const queue& q, long count, const Gradient& product, product_parts parts,
                          typename Gradient::precision::value_type* sums) {
  using code = detail::winner_gradient_code<Gradient>;
  machine::launch(q, count * parts.count * code::blocks_across, code{product, parts, sums});
}

}  // namespace strata::machine
