// Convolutions as products of matrices whose elements are looked up in the images.
#pragma once
#include <algorithm>
#include <strata/cuda/kernels/gradients.hpp>
#include <strata/cuda/kernels/image_views.hpp>
#include <strata/cuda/kernels/sliding.hpp>
#include <strata/cuda/machine/products.hpp>
#include <strata/layers/conv2d.hpp>
#include <type_traits>

namespace strata::machine {

/// True if the products of a convolution run on tensor cores. With fewer channels most of an instruction would be zeros.
template <class S, class P>
inline constexpr bool convolves_on_tensor_cores =
    is_on_tensor_cores<P> && S::channels % 4 == 0 && S::filters % 4 == 0 && S::channels >= 16 && S::filters >= 16;

/// The common part of products whose result are images, a row for each pixel.
template <class S, class P, class From, class Store, int Columns, int Terms>
struct product_of_images {
  using precision = P;
  using T = typename P::value_type;
  static constexpr bool rows_are_neighbours = false, rows_are_windows = false;
  static constexpr int columns = Columns;
  using tile = std::conditional_t<convolves_on_tensor_cores<S, P>, tensor_tile_of<Columns>, tile_of_many_rows<Columns, Terms>>;
  From from;
  const T* w;
  Store to;
  int pixels;

  static constexpr int all_terms = Terms;
  constexpr int rows() const { return pixels; }
  constexpr void store(long, int m, int n, T sum) const { to.store(long{m} * Columns + n, sum); }
  STRATA_DEVICE void store_four(long, int m, int n, const four<T>& sums) const { to.store_four(long{m} * Columns + n, sums); }
};

/// Computes each pixel of the small images: y = window * kernel. For one group.
template <class S, class P, class From, class Store>
struct to_small_images : product_of_images<S, P, From, Store, S::filters, S::taps * S::channels> {
  using T = typename P::value_type;
  static constexpr bool columns_are_neighbours = true;
  using view = view_of_large_images<S>;
  static constexpr int taps = S::taps, rows_of_image = S::small_pixels;
  static constexpr auto pixel_of_row(int m) { return S::small_pixel::number(m); }
  template <class Term>
  constexpr T a(long, int m, Term k) const {
    const auto pixel = S::under(S::small_pixel::number(m), k.template quotient<S::channels>());
    return element_or_zero<S::channels>(this->from, pixel, S::is_inside(pixel), k.template remainder<S::channels>());
  }
  constexpr T b(long, int k, int n) const { return this->w[k * S::filters + n]; }
  template <class Term>
  STRATA_DEVICE auto a_four(long, int m, Term k) const {
    const auto pixel = S::under(S::small_pixel::number(m), k.template quotient<S::channels>());
    return four_or_zeros<S::channels>(this->from, pixel, S::is_inside(pixel), k.template remainder<S::channels>());
  }
  STRATA_DEVICE four<T> b_four(long, int k, int n) const { return load_four(this->w, k * S::filters + n); }
};
/// Computes each pixel of the large images, from all windows that cover it. For one group.
template <class S, class P, class From, class Store>
struct to_large_images : product_of_images<S, P, From, Store, S::channels, S::taps * S::filters> {
  using T = typename P::value_type;
  static constexpr bool columns_are_neighbours = false;
  using view = view_of_small_images<S>;
  static constexpr int taps = S::taps, rows_of_image = S::large_pixels;
  static constexpr auto pixel_of_row(int m) { return S::large_pixel::number(m); }
  template <class Term>
  constexpr T a(long, int m, Term k) const {
    const auto window = S::over(S::large_pixel::number(m), k.template quotient<S::filters>());
    return element_or_zero<S::filters>(this->from, window.at, window.exists, k.template remainder<S::filters>());
  }
  template <class Term>
  constexpr T b(long, Term k, int n) const {
    return this->w[weight(k, n)];
  }
  template <class Term>
  STRATA_DEVICE auto a_four(long, int m, Term k) const {
    const auto window = S::over(S::large_pixel::number(m), k.template quotient<S::filters>());
    return four_or_zeros<S::filters>(this->from, window.at, window.exists, k.template remainder<S::filters>());
  }
  template <class Term>
  STRATA_DEVICE four<T> b_four(long, Term k, int n) const {
    return load_four(this->w, weight(k, n));
  }

 private:
  template <class Term>
  static constexpr int weight(Term k, int n) {
    return (k.template quotient<S::filters>() * S::channels + n) * S::filters + k.template remainder<S::filters>();
  }
};

/// The gradient of the kernel, leaf by leaf, and of the bias as one more row of the product: its input is 1. One group.
template <class S, class P, class Large, class Small, bool Bias>
struct kernel_gradient {
  using precision = P;
  using T = typename P::value_type;
  static constexpr bool rows_are_neighbours = true, columns_are_neighbours = true;
  static constexpr int kernel_rows = S::taps * S::channels, columns = S::filters, pixels_of_sample = S::small_pixels;
  using tile = std::conditional_t<convolves_on_tensor_cores<S, P>, tensor_tile_of<columns>,
                                  tile_of_many_terms<kernel_rows + Bias, columns>>;
  static constexpr bool has_row_of_ones = Bias;
  using view = view_of_large_images<S>;
  static constexpr int taps = S::taps;
  static constexpr auto pixel_of_term(int i) { return S::small_pixel::number(i); }
  static constexpr long size = long{kernel_rows + Bias} * columns;
  /// Elements for the sums of the parts of a leaf.
  static constexpr long size_of_parts() {
    const int parts = most_parts<kernel_gradient>(kernel_rows + Bias);
    return parts == 1 ? 0 : parts * size;
  }
  Large large;
  Small small;
  gradient_place<T> dw, db;
  rows_of_leaves samples;
  int first_leaf = 0;  // product z is that of leaf first_leaf + z

  constexpr int rows() const { return kernel_rows + Bias; }
  constexpr int terms(long z) const { return int(samples.size(first_leaf + z)) * S::small_pixels; }
  constexpr int first_pixel(long z) const { return int(samples.begin(first_leaf + z)) * S::small_pixels; }
  constexpr T a(long z, int m, int k) const {
    const int row = std::min(m, kernel_rows - 1);
    const auto pixel = S::under(S::small_pixel::number(first_pixel(z) + k), quotient<S::channels>(row));
    const T element = element_or_zero<S::channels>(large, pixel, S::is_inside(pixel), remainder<S::channels>(row));
    return m == kernel_rows ? T(1) : element;
  }
  constexpr T b(long z, int k, int n) const {
    return element_of<S::filters>(small, S::small_pixel::number(first_pixel(z) + k), n);
  }
  STRATA_DEVICE auto a_four(long z, int m, int k) const {
    const auto pixel = S::under(S::small_pixel::number(first_pixel(z) + k), quotient<S::channels>(m));
    return four_or_zeros<S::channels>(large, pixel, S::is_inside(pixel), remainder<S::channels>(m));
  }
  STRATA_DEVICE auto b_four(long z, int k, int n) const {
    return four_or_zeros<S::filters>(small, S::small_pixel::number(first_pixel(z) + k), true, n);
  }
  constexpr int first_sample(long z) const { return int(samples.begin(first_leaf + z)); }
  constexpr int samples_of(long z) const { return int(samples.size(first_leaf + z)); }
  STRATA_DEVICE auto result_four(int image, int i, int n) const {
    auto at = S::small_pixel::number(i);
    at.image = image;
    return four_or_zeros<S::filters>(small, at, true, n);
  }
  constexpr void store(long z, int m, int n, T sum) const {
    const long leaf = first_leaf + z;
    if (m == kernel_rows ? db.is_wanted() : dw.is_wanted())
      m == kernel_rows ? db.store(leaf, n, sum) : dw.store(leaf, m * S::filters + n, sum);
  }
};

/// The windows of a layer.
template <conv_settings S, shape In>
using sliding_of = sliding<convolution<S>::vertical(In), convolution<S>::horizontal(In), In[2], S.filters, S.groups>;

}  // namespace strata::machine
