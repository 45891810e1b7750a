// The gradient of the kernel of a pooled convolution with few terms in a window: of each pooling window only the winner counts.
#pragma once
#include <algorithm>
#include <strata/cuda/kernels/gradients.hpp>
#include <strata/cuda/machine/leaf_parts.hpp>
#include <strata/cuda/machine/loops.hpp>
#include <strata/cuda/machine/product_terms.hpp>
#include <strata/cuda/machine/rounded_operand.hpp>

namespace strata::machine {

namespace detail {
/// A block keeps one image after the other in shared memory. Each thread has two filters and shares the pooling windows with a
/// group of others; its sums are the gradients of all weights of these filters. Gradient: a kernel_gradient.
template <class Gradient>
struct winner_gradient_code : leaf_parts<Gradient> {
  using blocks = leaf_parts<Gradient>;
  using blocks::product, blocks::rows;
  using typename blocks::part, typename blocks::value;
  using view = typename Gradient::view;
  using precision = typename Gradient::precision;
  static constexpr int threads = 256, group = Gradient::columns <= 32 ? 16 : 32, groups = threads / group;
  static constexpr int filters = 2 * group, blocks_across = (Gradient::columns + filters - 1) / filters;
  static constexpr int weights = Gradient::kernel_rows;
  static constexpr int row_elements = view::columns * view::channels;
  union shared {
    value image[view::rows * row_elements];
    value sums[groups][rows][group];
  };

  STRATA_DEVICE void operator()(const lane& l, shared& memory) const {
    const int t = l.thread(), first_filter = int(l.block() % blocks_across) * filters + t % group;
    const part own = blocks::part_of(l.block() / blocks_across);
    value sums[2][rows] = {};
    for (int image = own.begin; image < own.end; ++image) {
      l.barrier();
      for (int i = t; i < view::rows * row_elements; i += threads)
        memory.image[i] = rounded_operand<precision>(
            value(view::element(product.large, image, quotient<row_elements>(i), remainder<row_elements>(i))));
      l.barrier();
      for (int window = t / group; window < product.small.windows_of_image; window += groups)
        for (int f = 0; f < 2; ++f) {
          const int filter = first_filter + f * group, last = Gradient::columns - 1;
          const bool exists = Gradient::columns % filters == 0 || filter <= last;
          add(sums[f], memory, product.small.winner_of(image, window, exists ? filter : last));
        }
    }
    store(l, memory, own, first_filter, sums[0]);
    store(l, memory, own, first_filter + group, sums[1]);
  }

 private:
  /// Adds what the winner of a window, if it has one, gives to the gradient of each weight of a filter and of its bias.
  template <class Winner>
  STRATA_DEVICE static void add(value (&sums)[rows], const shared& memory, const Winner& winner) {
    const value gradient = rounded_operand<precision>(winner.gradient);
    const int place = view::place(winner.at) * view::channels;
    for (int tap = 0; tap < Gradient::taps; ++tap)
      for (int c = 0; c < view::channels; ++c)
        sums[tap * view::channels + c] += memory.image[place + view::offset(tap) * view::channels + c] * gradient;
    if constexpr (Gradient::has_row_of_ones) sums[weights] += gradient;
  }
  /// Adds up the sums of all groups, in their order.
  STRATA_DEVICE void store(const lane& l, shared& memory, const part& own, int filter, const value (&sums)[rows]) const {
    const int own_group = l.thread() / group, column = l.thread() % group;
    l.barrier();
    for (int m = 0; m < rows; ++m) memory.sums[own_group][m][column] = sums[m];
    l.barrier();
    for (int m = own_group; m < rows && filter < Gradient::columns; m += groups) {
      value sum = memory.sums[0][m][column];
      for (int g = 1; g < groups; ++g) sum += memory.sums[g][m][column];
      blocks::store_sum(own, m, filter, sum);
    }
  }
};
}  // namespace detail

/// True if gradients_of_winners can compute a gradient: of a pooled convolution with up to 32 terms in a window, if a block has
/// room for an image.
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
  machine::launch(q, count * parts.count * code::blocks_across, code{{product, parts, sums}});
}

}  // namespace strata::machine
