// Convolutions on a GPU, also transposed ones: products of matrices whose elements are looked up in the images.
// needs: boost_context
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <strata/cuda/kernels/constant_axis.hpp>
#include <strata/cuda/kernels/gradients.hpp>
#include <strata/cuda/kernels/library_rule.hpp>
#include <strata/cuda/machine/image_gradient.hpp>
#include <strata/cuda/machine/image_product.hpp>
#include <strata/cuda/machine/products.hpp>
#include <strata/layers/conv2d.hpp>
#include <strata/layers/conv2d_transpose.hpp>
#include <strata/layers/max_pool2d.hpp>
#include <type_traits>
#include <utility>

namespace strata {

namespace machine {

/// A pixel of some images of Rows x Columns pixels.
template <int Rows, int Columns>
struct pixel {
  int image, row, column;

  /// Pixel number n of all images.
  static constexpr pixel number(int n) {
    const int in_image = remainder<Rows * Columns>(n);
    return {quotient<Rows * Columns>(n), quotient<Columns>(in_image), remainder<Columns>(in_image)};
  }
  constexpr int number() const { return image * (Rows * Columns) + row * Columns + column; }
  /// As an unsigned number, a negative one is larger than any index.
  constexpr bool is_inside() const { return unsigned(row) < unsigned(Rows) && unsigned(column) < unsigned(Columns); }
};

/// An element of images with so many channels, or 0 for a pixel that is not inside: of an array or, where `from` has a function
/// at(pixel, is_inside, channel), what it says. An element is read in any case: without a branch around it, a thread need not
/// wait for one before it asks for the next.
template <int Channels, class From, class Pixel>
constexpr auto element_or_zero(const From& from, Pixel at, bool is_inside, int channel) {
  if constexpr (requires { from.at(at, is_inside, channel); }) {
    return from.at(at, is_inside, channel);
  } else {
    const auto element = from[long{is_inside ? at.number() : 0} * Channels + channel];
    return is_inside ? element : decltype(element){};
  }
}
template <int Channels, class From, class Pixel>
constexpr auto element_of(const From& from, Pixel at, int channel) {
  return element_or_zero<Channels>(from, at, true, channel);
}
/// The same for the channels `channel` to channel + 3, where `channel` and Channels are multiples of 4.
template <int Channels, class From, class Pixel>
STRATA_DEVICE auto four_or_zeros(const From& from, Pixel at, bool is_inside, int channel) {
  if constexpr (requires { from.four_at(at, is_inside, channel); }) {
    return from.four_at(at, is_inside, channel);
  } else {
    const auto all = four_at(from, long{is_inside ? at.number() : 0} * Channels + channel);
    return is_inside ? all : decltype(all){};
  }
}

/// How a window slides over a large image (H, W, C) and makes a small one (OH, OW, F). A convolution goes from the large to the
/// small image, a transposed one back. The kernel is (KH, KW, C / groups, F).
template <window_axis Vertical, window_axis Horizontal, int C, int F, int Groups>
struct sliding {
  using down = constant_axis<Vertical>;
  using across = constant_axis<Horizontal>;
  static constexpr int channels = C, filters = F, groups = Groups, group_channels = C / Groups, group_filters = F / Groups;
  static constexpr int taps = down::kernel * across::kernel;
  static constexpr int large_pixels = down::in * across::in, small_pixels = down::out * across::out;

  /// The pixels of `count` images. Throws strata::error where the numbers of a kernel, which are int, have no room for them.
  static int pixels(long count, int of_an_image) {
    if (count * std::max(large_pixels, small_pixels) > std::numeric_limits<int>::max())
      throw_error({"CUDA: the images of ", count, " samples have too many pixels for a kernel; a smaller batch has fewer"});
    return int(count) * of_an_image;
  }

  using large_pixel = pixel<down::in, across::in>;
  using small_pixel = pixel<down::out, across::out>;

  /// The pixel of the large images under a tap of the window at a pixel of the small images. In the padding it is not inside.
  static constexpr large_pixel under(small_pixel at, int tap) {
    return {at.image, down::begin(at.row) + quotient<across::kernel>(tap) * down::dilation,
            across::begin(at.column) + remainder<across::kernel>(tap) * across::dilation};
  }
  static constexpr bool is_inside(large_pixel at) { return (down::stays_inside && across::stays_inside) || at.is_inside(); }
  /// The pixel of the small images whose window has that tap over a pixel of the large images, if there is one.
  struct window_over {
    small_pixel at;
    bool exists;
  };
  static constexpr window_over over(large_pixel at, int tap) {
    const int row = at.row - quotient<across::kernel>(tap) * down::dilation + down::padding;
    const int column = at.column - remainder<across::kernel>(tap) * across::dilation + across::padding;
    const small_pixel small{at.image, row / down::stride, column / across::stride};
    const bool is_first = (down::stride == 1 || (row >= 0 && row % down::stride == 0)) &&
                          (across::stride == 1 || (column >= 0 && column % across::stride == 0));
    return {small, is_first && small.is_inside()};
  }
};

/// Large images as a block of to_small_images keeps them (image_product.hpp): with their padding.
template <class S>
struct view_of_large_images {
  using down = typename S::down;
  using across = typename S::across;
  static constexpr bool is_possible = true;
  static constexpr int channels = S::channels, step = across::stride;
  static constexpr int rows = (down::out - 1) * down::stride + (down::kernel - 1) * down::dilation + 1,
                       columns = (across::out - 1) * across::stride + (across::kernel - 1) * across::dilation + 1;
  static constexpr int first_row = down::padding, first_column = across::padding;
  static constexpr int inside_rows = std::min(down::in, rows - first_row),
                       inside_columns = std::min(across::in, columns - first_column);
  static constexpr int place(typename S::small_pixel at) { return at.row * down::stride * columns + at.column * across::stride; }
  static constexpr int offset(int tap) {
    return quotient<across::kernel>(tap) * down::dilation * columns + remainder<across::kernel>(tap) * across::dilation;
  }
  static constexpr bool has_runs = across::dilation == 1;
  static constexpr int kernel_rows = down::kernel, kernel_columns = across::kernel, row_step = down::dilation * columns;
  template <class From>
  STRATA_DEVICE static auto pixel_four(const From& from, int image, int row, int column, int channel) {
    return four_or_zeros<channels>(from, typename S::large_pixel{image, row, column}, true, channel);
  }
  template <class From>
  STRATA_DEVICE static float element(const From& from, int image, int row, int i) {
    const typename S::large_pixel at{image, row - first_row, quotient<channels>(i) - first_column};
    return element_or_zero<channels>(from, at, S::is_inside(at), remainder<channels>(i));
  }
};
/// Small images as a block of to_large_images keeps them. Windows do not jump over pixels.
template <class S>
struct view_of_small_images {
  using down = typename S::down;
  using across = typename S::across;
  static constexpr bool is_possible = down::stride == 1 && across::stride == 1, has_runs = false;
  static constexpr int channels = S::filters, step = 1;
  static constexpr int after_row = (down::kernel - 1) * down::dilation, after_column = (across::kernel - 1) * across::dilation;
  static constexpr int rows = down::in + after_row, columns = across::in + after_column;
  static constexpr int first_row = after_row - down::padding, first_column = after_column - across::padding;
  static constexpr int inside_rows = down::out, inside_columns = across::out;
  static constexpr int place(typename S::large_pixel at) { return at.row * columns + at.column; }
  static constexpr int offset(int tap) {
    return (after_row - quotient<across::kernel>(tap) * down::dilation) * columns + after_column -
           remainder<across::kernel>(tap) * across::dilation;
  }
  template <class From>
  STRATA_DEVICE static auto pixel_four(const From& from, int image, int row, int column, int channel) {
    return four_or_zeros<channels>(from, typename S::small_pixel{image, row, column}, true, channel);
  }
};

/// Whether the products of a convolution are those of tensor cores. Of fewer channels most of an instruction would be zeros.
template <class S, class P>
inline constexpr bool convolves_on_tensor_cores =
    is_on_tensor_cores<P> && S::channels % 4 == 0 && S::filters % 4 == 0 && S::channels >= 16 && S::filters >= 16;

/// What products have in common that make images out of others, a row for each pixel.
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

/// To each pixel of the small images: y = window * kernel. One group.
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
/// To each pixel of the large images, from all windows that have it. One group.
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
  /// Elements for the sums of the parts of a leaf.
  static constexpr long size_of_parts() {
    const int parts = most_parts<kernel_gradient>(kernel_rows + Bias);
    return parts == 1 ? 0 : long{parts} * (kernel_rows + Bias) * columns;
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

/// The same three with groups, element by element: a group has few channels, so that no product of matrices pays.
template <class S, class T, class From, class Store>
struct to_small_images_in_groups {
  From large;
  const T* w;
  Store to;

  constexpr void operator()(long i) const {
    const int f = int(i % S::filters), first = f / S::group_filters * S::group_channels;
    const auto at = S::small_pixel::number(int(i / S::filters));
    T sum{};
    for (int tap = 0; tap < S::taps; ++tap)
      if (const auto pixel = S::under(at, tap); S::is_inside(pixel))
        for (int c = 0; c < S::group_channels; ++c)
          sum += element_of<S::channels>(large, pixel, first + c) * w[(long(tap) * S::group_channels + c) * S::filters + f];
    to.store(i, sum);
  }
};
template <class S, class T, class From, class Store>
struct to_large_images_in_groups {
  From small;
  const T* w;
  Store to;

  constexpr void operator()(long i) const {
    const int channel = int(i % S::channels), c = channel % S::group_channels,
              first = channel / S::group_channels * S::group_filters;
    const auto at = S::large_pixel::number(int(i / S::channels));
    T sum{};
    for (int tap = 0; tap < S::taps; ++tap)
      if (const auto window = S::over(at, tap); window.exists)
        for (int f = first; f < first + S::group_filters; ++f)
          sum += element_of<S::filters>(small, window.at, f) * w[(long(tap) * S::group_channels + c) * S::filters + f];
    to.store(i, sum);
  }
};
template <class S, class T, class Large, class Small>
struct kernel_gradient_in_groups {
  using value = T;
  static constexpr int threads = 128, neighbours = neighbours_among(S::filters);
  static constexpr long size = long(S::taps) * S::group_channels * S::filters;
  Large large;
  Small small;
  gradient_place<T> dw;
  rows_of_leaves samples;

  constexpr long terms(long sum) const { return samples.size(sum / size) * S::small_pixels; }
  constexpr T term(long sum, long i) const {
    const long at = sum % size;
    const int f = int(at % S::filters), c = int(at / S::filters % S::group_channels),
              tap = int(at / S::filters / S::group_channels);
    const auto window = S::small_pixel::number(int(samples.begin(sum / size)) * S::small_pixels + int(i));
    const auto pixel = S::under(window, tap);
    if (!S::is_inside(pixel)) return T{};
    return element_of<S::channels>(large, pixel, f / S::group_filters * S::group_channels + c) *
           element_of<S::filters>(small, window, f);
  }
  constexpr void store(long sum, T v) const { dw.store(sum / size, sum % size, v); }
};

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

/// A product that makes images out of others, of which an image has rows_of_image rows. Large leaves may keep images in shared
/// memory.
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

/// The gradients of kernel and bias, leaf by leaf, where leaves are large and images are kept in shared memory.
template <class KernelGradient, class T>
void compute_gradients_of_images(const queue& q, KernelGradient of_kernel, T* scratch) {
  constexpr long most_parts =
      scratch_of_parts<KernelGradient> / (long{of_kernel.kernel_rows + of_kernel.has_row_of_ones} * of_kernel.columns);
  const auto parts = parts_of_images(of_kernel.samples.capacity, std::clamp(most_parts, 1L, 256L));
  const int leaves = of_kernel.samples.leaves, at_once = parts.count == 1 ? leaves : int(most_parts / parts.count);
  for (; of_kernel.first_leaf < leaves; of_kernel.first_leaf += at_once) {
    const int count = std::min(leaves - of_kernel.first_leaf, at_once);
    gradients_of_images(q, count, of_kernel, parts, scratch);
    add_parts(q, count, of_kernel, parts, scratch);
  }
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
      if (std::exchange(kernel_is_wanted, false)) compute_gradients_of_images(q, of_kernel, scratch);
  }
  if (!kernel_is_wanted) return machine::launch(q, for_input);
  const auto parts = parts_of(of_kernel, of_kernel.samples.capacity * KernelGradient::pixels_of_sample);
  const int leaves = of_kernel.samples.leaves, at_once = parts.count == 1 ? leaves : leaves_in_parts;
  for (; of_kernel.first_leaf < leaves; of_kernel.first_leaf += at_once) {
    const int count = std::min(leaves - of_kernel.first_leaf, at_once);
    const auto for_kernel = products(count, of_kernel, parts, scratch);
    if (of_kernel.first_leaf == 0 && for_input.blocks > 0)
      launch_together(q, for_kernel, for_input);
    else
      machine::launch(q, for_kernel);  // alone it needs fewer registers
    add_parts(q, count, of_kernel, parts, scratch);
  }
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

/// x: (count, H, W, C); kernel: (KH, KW, C / groups, F); bias: (F); y: (count, OH, OW, F). A: an activation, or linear. X, Y: an
/// element of x, and of y.
template <conv_settings S, class A, class P, shape In, class X = typename P::value_type, class Y = X>
struct convolution_kernel : kernel_defaults {
  using T = typename P::value_type;
  template <bool NarrowInput, bool NarrowOutput>
  using with_narrow = convolution_kernel<S, A, P, In, element_of_array<T, NarrowInput>, element_of_array<T, NarrowOutput>>;
  static constexpr narrow_end input_end = S.groups == 1 ? reads_operands<P> : narrow_end{},
                              output_end = S.groups == 1 ? stores_activations<P, A> : narrow_end{};
  using at = sliding<convolution<S>::vertical(In), convolution<S>::horizontal(In), In[2], S.filters, S.groups>;
  static constexpr bool reads_output = follows_in_a_kernel<A>;
  using dz_type = gradient_before<A, T, Y>;
  static constexpr int scratch = scratch_of_convolution<S, at, P, X, dz_type>();

  static void forward(queue q, const operands<T>& o) {
    compute_small_images<at, P>(q, input_of<X>(o), o.w[0],
                                activated_with_bias<A, T, Y, S.filters>{output_of<Y>(o), S.bias ? o.w[1] : nullptr},
                                rows_of_leaves::of(o));
  }
  static void backward(queue q, const operands<T>& o) { convolution_backward<S, at, P, X>(q, o, dz_type::of(o)); }
};

/// Windows of 2x2 pixels over the small images, side by side. A last row or column that is left over is in no window.
template <class S>
struct pooled_windows {
  static constexpr int rows = S::down::out / 2, columns = S::across::out / 2, count = rows * columns;
  /// Pixel number `which` of a window of the small images.
  static constexpr typename S::small_pixel pixel_of(int window, int which) {
    const auto at = pixel<rows, columns>::number(window);
    return {at.image, at.row * 2 + which / 2, at.column * 2 + which % 2};
  }
};

/// Activations whose slopes are 0 and 1. Where the slope at the largest pixel is 0, no pixel of the window is stored as the
/// winner, so that backward need not read the result. A nan that comes back to such a window ends there.
template <class A>
inline constexpr bool winner_says_slope = std::is_same_v<A, relu> || std::is_same_v<A, relu6>;
/// A bit for the pixel of a window that is the largest: bit 0 to 3.
using winner = std::uint8_t;
inline constexpr winner no_winner = 0;

/// The larger of two numbers, or nan if one of them is.
template <class T>
STRATA_DEVICE T larger_or_nan(T a, T b) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  if constexpr (std::is_same_v<T, float>) {
    float larger;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(a), "f"(b));
    return larger;
  }
#endif
  return a >= b || a != a ? a : b;
}

/// The product of to_small_images with its rows window by window, so that a thread has all pixels of a window: it stores the
/// largest, and which one that is.
template <class S, class A, class P, class X, class Y>
struct to_pooled_images {
  using precision = P;
  using T = typename P::value_type;
  using windows = pooled_windows<S>;
  static constexpr bool rows_are_neighbours = false, columns_are_neighbours = true, rows_are_windows = true;
  static constexpr int columns = S::filters;
  using tile = std::conditional_t<convolves_on_tensor_cores<S, P>, tensor_tile_of<columns>,
                                  tile_of_many_rows<columns, S::taps * S::channels>>;
  using view = view_of_large_images<S>;
  static constexpr int taps = S::taps, rows_of_image = 4 * windows::count;
  static constexpr auto pixel_of_row(int m) { return windows::pixel_of(quotient<4>(m), remainder<4>(m)); }
  const X* from;
  const T *w, *bias;
  Y* y;
  winner* winners;  // null in inference
  int pixels;

  static constexpr int all_terms = S::taps * S::channels;
  constexpr int rows() const { return pixels; }
  template <class Term>
  constexpr T a(long, int m, Term k) const {
    const auto pixel = S::under(pixel_of_row(m), k.template quotient<S::channels>());
    return element_or_zero<S::channels>(from, pixel, S::is_inside(pixel), k.template remainder<S::channels>());
  }
  constexpr T b(long, int k, int n) const { return w[k * S::filters + n]; }
  STRATA_DEVICE void store_rows(long, int m, int n, const T (&sums)[4]) const {
    const winner_of_window best = best_of(sums, bias ? bias[n] : T{});
    const long to = long{m / 4} * S::filters + n;
    y[to] = stored_as<Y>(best.value);
    if (winners) winners[to] = best.which;
  }
  template <class Term>
  STRATA_DEVICE auto a_four(long, int m, Term k) const {
    const auto pixel = S::under(pixel_of_row(m), k.template quotient<S::channels>());
    return four_or_zeros<S::channels>(from, pixel, S::is_inside(pixel), k.template remainder<S::channels>());
  }
  STRATA_DEVICE four<T> b_four(long, int k, int n) const { return load_four(w, k * S::filters + n); }
  STRATA_DEVICE void store_four_rows(long, int m, int n, const four<T> (&sums)[4]) const {
    const four<T> biases = bias ? load_four(bias, n) : four<T>{};
    four<T> values;
    four<winner> which;
    for (int j = 0; j < 4; ++j) {
      const winner_of_window best = best_of({sums[0].at[j], sums[1].at[j], sums[2].at[j], sums[3].at[j]}, biases.at[j]);
      values.at[j] = best.value, which.at[j] = best.which;
    }
    const long to = long{m / 4} * S::filters + n;
    machine::store_four(y, to, values);
    if (winners) machine::store_four(winners, to, which);
  }

 private:
  struct winner_of_window {
    T value;
    winner which;
  };
  STRATA_DEVICE winner_of_window best_of(const T (&sums)[4], T bias_of_filter) const {
    T all[4];
    for (int i = 0; i < 4; ++i) all[i] = bias ? bias_of_filter + sums[i] : sums[i];
    if constexpr (winner_says_slope<A>) {
      // The largest one before the activation is the largest after it, unless the slope is 0, as it is where one is nan.
      const T most = larger_or_nan(larger_or_nan(all[0], all[1]), larger_or_nan(all[2], all[3]));
      const winner which = all[0] == most ? 1 : all[1] == most ? 2 : all[2] == most ? 4 : 8;
      const T value = activated<A>(most);
      return {value, activation_function<A>::derivative(T{}, value) == T{} ? no_winner : which};
    } else {
      winner_of_window best{};
      for (int i = 0; i < 4; ++i) {
        const T next = activated<A>(all[i]);
        if (i == 0 || next > best.value || next != next) best = {next, winner(1 << i)};  // nan wins, so that no layer hides it
      }
      return best;
    }
  }
};

/// The gradient of an element of the small images before activation and pooling.
template <class S, class A, class T, class Y>
struct gradient_before_pooling {
  using windows = pooled_windows<S>;
  gradient_before<std::conditional_t<winner_says_slope<A>, linear, A>, T, Y> dz;
  const winner* winners;

  constexpr T at(typename S::small_pixel of, bool is_inside, int filter) const {
    const auto window = window_of(of, is_inside);
    const long from = long{window.number} * S::filters + filter;
    const T gradient = dz[from];  // read in any case: it need not wait for the winner
    return window.exists && (winners[from] >> window.which & 1) ? gradient : T{};
  }
  STRATA_DEVICE auto four_at(typename S::small_pixel of, bool is_inside, int filter) const {
    const auto window = window_of(of, is_inside);
    const long from = long{window.number} * S::filters + filter;
    auto all = dz.four_at(from);
    // Bit 0 of each byte: whether the pixel is the winner of that filter.
    const std::uint32_t bits = window.exists ? load_bytes(winners, from) >> window.which : 0;
    if constexpr (requires { all.words; }) {
      all = all & doubled_bytes((bits & 0x0101'0101) * 0xff);
    } else {
      for (int j = 0; j < 4; ++j) all.at[j] = bits >> 8 * j & 1 ? all.at[j] : T{};
    }
    return all;
  }

 private:
  struct place_in_window {
    int number;  // of the window; 0 where there is none
    int which;
    bool exists;
  };
  static constexpr place_in_window window_of(typename S::small_pixel of, bool is_inside) {
    constexpr int rows = windows::rows, columns = windows::columns;
    const bool exists = is_inside && unsigned(of.row) < unsigned(2 * rows) && unsigned(of.column) < unsigned(2 * columns);
    const pixel<rows, columns> window{of.image, of.row / 2, of.column / 2};
    return {exists ? window.number() : 0, of.row % 2 * 2 + of.column % 2, exists};
  }
};

/// Convolution, activation and max pooling over windows of 2x2. y: (count, OH / 2, OW / 2, F). saved: the winner of each window.
template <conv_settings S, class A, class P, shape In, class X = typename P::value_type, class Y = X>
struct pooled_convolution_kernel : kernel_defaults {
  using T = typename P::value_type;
  template <bool NarrowInput, bool NarrowOutput>
  using with_narrow = pooled_convolution_kernel<S, A, P, In, element_of_array<T, NarrowInput>, element_of_array<T, NarrowOutput>>;
  static constexpr narrow_end input_end = reads_operands<P>, output_end = stores_activations<P, A>;
  using at = typename convolution_kernel<S, A, P, In>::at;
  using windows = pooled_windows<at>;
  using dz_type = gradient_before_pooling<at, A, T, Y>;
  static constexpr bool reads_output = !winner_says_slope<A>;
  static constexpr int saved = (windows::count * S.filters + int(sizeof(T)) - 1) / int(sizeof(T));  // a byte for each winner
  static constexpr int scratch = scratch_of_convolution<S, at, P, X, dz_type>();

  static void forward(queue q, const operands<T>& o) { run(q, o, winners(o)); }
  static void infer(queue q, const operands<T>& o) { run(q, o, nullptr); }
  static void backward(queue q, const operands<T>& o) {
    convolution_backward<S, at, P, X>(q, o, dz_type{decltype(dz_type::dz)::of(o), winners(o)});
  }

 private:
  static winner* winners(const operands<T>& o) { return reinterpret_cast<winner*>(o.saved); }
  static void run(const queue& q, const operands<T>& o, winner* to) {
    compute_images(q, rows_of_leaves::of(o),
                   to_pooled_images<at, A, P, X, Y>{input_of<X>(o), o.w[0], S.bias ? o.w[1] : nullptr, output_of<Y>(o), to,
                                                    at::pixels(o.count, windows::count * 4)});
  }
};

/// Whether windows of 2x2 lie side by side in an image.
template <pool_settings S>
constexpr bool pools_two_by_two(shape in) {
  const window_axis down = S.vertical(in), across = S.horizontal(in);
  const bool fits = down.kernel == 2 && down.stride == 2 && across.kernel == 2 && across.stride == 2;
  return fits && (!S.same || (in[0] % 2 == 0 && in[1] % 2 == 0));
}

/// x: (count, H, W, C); kernel: (KH, KW, F, C); bias: (F); y: (count, OH, OW, F).
template <transposed_conv_settings S, class A, class P, shape In, class X = typename P::value_type, class Y = X>
struct transposed_convolution_kernel : kernel_defaults {
  using T = typename P::value_type;
  template <bool NarrowInput, bool NarrowOutput>
  using with_narrow =
      transposed_convolution_kernel<S, A, P, In, element_of_array<T, NarrowInput>, element_of_array<T, NarrowOutput>>;
  /// The gradient of the bias is no product: it does not round.
  static constexpr narrow_end input_end = reads_operands<P>, output_end = S.bias ? narrow_end{} : stores_activations<P, A>;
  using dz_type = gradient_before<A, T, Y>;
  static constexpr shape Out = S.output(In);
  using backwards = convolution<S.backwards(In)>;
  using at = sliding<backwards::vertical(Out), backwards::horizontal(Out), S.filters, In[2], 1>;
  using kernel_sums = kernel_gradient<at, P, dz_type, const X*, false>;
  static constexpr bool reads_output = follows_in_a_kernel<A>;
  static constexpr int scratch = scratch_of_parts<kernel_sums>;

  static void forward(queue q, const operands<T>& o) {
    compute_large_images<at, P>(q, input_of<X>(o), o.w[0],
                                activated_with_bias<A, T, Y, S.filters>{output_of<Y>(o), S.bias ? o.w[1] : nullptr},
                                rows_of_leaves::of(o));
  }
  static void backward(queue q, const operands<T>& o) {
    using place = gradient_place<T>;
    using input_place = gradient_place<T, X>;
    const dz_type dz = dz_type::of(o);
    compute_gradients(q, kernel_sums{dz, input_of<X>(o), place::of_weight(o, 0), {}, rows_of_leaves::of(o)},
                      to_small_images<at, P, dz_type, input_place>{
                          {dz, o.w[0], input_place::of_input(o, 0), at::pixels(o.count, at::small_pixels)}},
                      o.scratch);
    if constexpr (S.bias)
      store_bias_gradient(q, rows_of_leaves::of(o), dz, place::of_weight(o, 1), S.filters, int(at::large_pixels));
  }
};

}  // namespace machine

template <conv_settings S, class P, shape In>
struct kernel<cuda, convolution<S>, P, In> : machine::convolution_kernel<S, linear, P, In> {};
template <conv_settings S, class A, class P, shape In>
  requires(machine::follows_in_a_kernel<A> && !machine::goes_to_dnn<S, P, In>)
struct kernel<cuda, fused<convolution<S>, A>, P, In> : machine::convolution_kernel<S, A, P, In> {};

template <conv_settings S, class A, pool_settings Pool, class P, shape In>
  requires machine::follows_in_a_kernel<A> && (S.groups == 1) && (!machine::goes_to_dnn<S, P, In>) &&
           (machine::pools_two_by_two<Pool>(convolution<S>::output_shape(In).value))
struct kernel<cuda, fused<convolution<S>, A, max_pooling<Pool>>, P, In> : machine::pooled_convolution_kernel<S, A, P, In> {};

template <transposed_conv_settings S, class P, shape In>
struct kernel<cuda, transposed_convolution<S>, P, In> : machine::transposed_convolution_kernel<S, linear, P, In> {};
template <transposed_conv_settings S, class A, class P, shape In>
  requires machine::follows_in_a_kernel<A>
struct kernel<cuda, fused<transposed_convolution<S>, A>, P, In> : machine::transposed_convolution_kernel<S, A, P, In> {};

}  // namespace strata
