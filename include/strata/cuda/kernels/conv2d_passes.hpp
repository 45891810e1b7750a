// Selects the kernels that compute a convolution, forward and backward.
#pragma once
#include <algorithm>
#include <strata/cuda/kernels/conv2d_in_groups.hpp>
#include <strata/cuda/kernels/conv2d_products.hpp>
#include <strata/cuda/kernels/library_rule.hpp>
#include <strata/cuda/kernels/winner_gradient.hpp>
#include <strata/cuda/machine/image_gradient.hpp>
#include <strata/cuda/machine/image_product.hpp>
#include <utility>

namespace strata::machine {

/// Stores y = A(sum + bias).
template <class A, class T, class Y, int Filters>
struct activated_with_bias {
  Y* y;
  const T* bias;
  constexpr void store(long i, T sum) const { y[i] = stored_as<Y>(activated<A>(bias ? bias[i % Filters] + sum : sum)); }
  STRATA_DEVICE void store_four(long i, const four<T>& sums) const {
    machine::store_four(y, i, activated_four<A>(sums, bias, i % Filters));
  }
};

/// Launches a product whose result are images, each of rows_of_image rows. Large leaves may keep images in shared memory.
template <class Product>
void compute_images(const queue& q, rows_of_leaves samples, const Product& product) {
  if constexpr (keeps_images<Product>)
    if (fills_tiles(samples.capacity)) return for_each_image(q, int(samples.count), product);
  for_each_product(q, 1, product);
}
template <class S, class P, class From, class Store, class T = typename P::value_type>
void compute_small_images(const queue& q, From large, const T* w, Store to, rows_of_leaves samples) {
  const int count = int(samples.count);
  if constexpr (S::groups == 1)
    compute_images(q, samples, to_small_images<S, P, From, Store>{{large, w, to, S::pixels(count, S::small_pixels)}});
  else
    for_each_index(q, long{S::pixels(count, S::small_pixels)} * S::filters,
                   to_small_images_in_groups<S, T, From, Store>{large, w, to});
}
template <class S, class P, class From, class Store, class T = typename P::value_type>
void compute_large_images(const queue& q, From small, const T* w, Store to, rows_of_leaves samples) {
  const int count = int(samples.count);
  if constexpr (S::groups == 1)
    compute_images(q, samples, to_large_images<S, P, From, Store>{{small, w, to, S::pixels(count, S::large_pixels)}});
  else
    for_each_index(q, long{S::pixels(count, S::large_pixels)} * S::channels,
                   to_large_images_in_groups<S, T, From, Store>{small, w, to});
}
/// Scratch memory has room for the parts of so many leaves. More leaves are computed one group after the other.
inline constexpr int leaves_in_parts = 16;

template <class KernelGradient>
inline constexpr int scratch_of_parts = int(leaves_in_parts * KernelGradient::size_of_parts());
template <conv_settings S, class At, class P, class X, class Dz>
constexpr int scratch_of_convolution() {
  if constexpr (S.groups == 1)
    return scratch_of_parts<kernel_gradient<At, P, const X*, Dz, S.bias>>;
  else
    return 0;
}

/// Calls compute(count) for groups of leaves, from of_kernel.first_leaf on, as many at a time as have room for their parts in
/// `scratch`, and adds up their parts.
template <class KernelGradient, class T, class Compute>
void for_groups_of_leaves(const queue& q, KernelGradient& of_kernel, product_parts parts, int at_once, T* scratch,
                          const Compute& compute) {
  const int leaves = of_kernel.samples.leaves;
  for (; of_kernel.first_leaf < leaves; of_kernel.first_leaf += at_once) {
    const int count = std::min(leaves - of_kernel.first_leaf, at_once);
    compute(count);
    add_parts(q, count, of_kernel, parts, scratch);
  }
}

/// How the samples of a leaf are divided among blocks that keep images: a few samples are enough work for a block, and adding up
/// many parts takes long.
struct samples_of_blocks {
  int most, least_parts;
};
inline constexpr samples_of_blocks of_images{16, 16}, of_winners{8, 32};  // by estimate, not measured

/// The gradients of kernel and bias, leaf by leaf, where images are kept in shared memory. compute(count, gradient, parts,
/// sums): launches the kernel for some leaves.
template <class KernelGradient, class T, class Compute>
void compute_gradients_of_parts(const queue& q, KernelGradient of_kernel, T* scratch, samples_of_blocks wanted,
                                const Compute& compute) {
  constexpr long parts_with_room = std::max(scratch_of_parts<KernelGradient> / KernelGradient::size, 1L);
  constexpr long most = std::min(parts_with_room, 256L);  // about two for each multiprocessor of a large GPU
  const auto parts = parts_of_samples(of_kernel.samples.capacity, wanted.most, wanted.least_parts, most);
  const int at_once = parts.count == 1 ? of_kernel.samples.leaves : int(parts_with_room / parts.count);
  for_groups_of_leaves(q, of_kernel, parts, at_once, scratch, [&](int count) { compute(count, of_kernel, parts, scratch); });
}
/// The gradients of kernel and bias, leaf by leaf, and along with them those of the input.
template <class KernelGradient, class InputGradient, class T>
void compute_gradients(const queue& q, KernelGradient of_kernel, const InputGradient& of_input, T* scratch) {
  auto for_input = products(of_input.to.is_wanted() ? 1 : 0, of_input);
  bool kernel_is_wanted = of_kernel.dw.is_wanted() || of_kernel.db.is_wanted();
  if (fills_tiles(of_kernel.samples.capacity)) {
    if constexpr (keeps_images<InputGradient>)
      if (std::exchange(for_input.blocks, 0) > 0) for_each_image(q, int(of_kernel.samples.count), of_input);
    if constexpr (keeps_images_of_gradient<KernelGradient>)
      if (std::exchange(kernel_is_wanted, false))
        compute_gradients_of_parts(q, of_kernel, scratch, of_images, [&](const auto&... all) { gradients_of_images(q, all...); });
    if constexpr (keeps_images_of_winners<KernelGradient>)
      if (std::exchange(kernel_is_wanted, false))
        compute_gradients_of_parts(q, of_kernel, scratch, of_winners,
                                   [&](const auto&... all) { gradients_of_winners(q, all...); });
  }
  if (!kernel_is_wanted) return machine::launch(q, for_input);
  const auto parts = parts_of(of_kernel, of_kernel.samples.capacity * KernelGradient::pixels_of_sample);
  const int at_once = parts.count == 1 ? of_kernel.samples.leaves : leaves_in_parts;
  for_groups_of_leaves(q, of_kernel, parts, at_once, scratch, [&](int count) {
    const auto for_kernel = products(count, of_kernel, parts, scratch);
    if (of_kernel.first_leaf == 0 && for_input.blocks > 0)
      launch_together(q, for_kernel, for_input);
    else
      machine::launch(q, for_kernel);  // alone it needs fewer registers
  });
}
template <class S, class Large, class Small, class T>
void compute_kernel_gradient_in_groups(const queue& q, Large large, Small small, gradient_place<T> dw, rows_of_leaves rows) {
  if (!dw.is_wanted()) return;
  using sums = kernel_gradient_in_groups<S, T, Large, Small>;
  for_each_sum(q, rows.leaves * sums::size, sums{large, small, dw, rows});
}

/// The gradients of a convolution. X: an element of its input. dz: of its result, before the activation.
template <conv_settings S, class At, class P, class X, class Dz, class T>
void convolution_backward(const queue& q, const operands<T>& o, const Dz& dz) {
  using place = gradient_place<T>;
  using input_place = gradient_place<T, X>;
  const place dw = place::of_weight(o, 0), db = place::of_weight(o, 1);
  const input_place dx = input_place::of_input(o, 0);
  const X* const x = input_of<X>(o);
  const auto rows = rows_of_leaves::of(o);
  if constexpr (S.groups == 1) {
    compute_gradients(q, kernel_gradient<At, P, const X*, Dz, S.bias>{x, dz, dw, db, rows},
                      to_large_images<At, P, Dz, input_place>{{dz, o.w[0], dx, At::pixels(o.count, At::large_pixels)}},
                      o.scratch);
  } else {
    compute_kernel_gradient_in_groups<At>(q, x, dz, dw, rows);
    if constexpr (S.bias) store_bias_gradient(q, rows, dz, db, S.filters, int(At::small_pixels));
    if (dx.is_wanted()) compute_large_images<At, P>(q, dz, o.w[0], dx, rows);
  }
}

}  // namespace strata::machine
