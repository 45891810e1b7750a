// Convolutions on a GPU, also transposed ones: products of matrices whose elements are looked up in the images.
// needs: boost_context
#pragma once
#include <strata/cuda/kernels/gradients.hpp>
#include <strata/cuda/kernels/library_rule.hpp>
#include <strata/cuda/machine/tiled_product.hpp>
#include <strata/layers/conv2d.hpp>
#include <strata/layers/conv2d_transpose.hpp>
#include <strata/layers/max_pool2d.hpp>

namespace strata {

namespace machine {

/// How a window slides over a large image (H, W, C) and makes a small one (OH, OW, F). A convolution goes from the large to the
/// small image, a transposed one back. The kernel is (KH, KW, C / groups, F).
template <window_axis Vertical, window_axis Horizontal, int C, int F, int Groups>
struct sliding {
  static constexpr window_axis down = Vertical, across = Horizontal;
  static constexpr int channels = C, filters = F, groups = Groups, group_channels = C / Groups, group_filters = F / Groups;
  static constexpr int taps = down.kernel * across.kernel;
  static constexpr long large_pixels = long(down.in) * across.in, small_pixels = long(down.out()) * across.out();
  static constexpr long large_size = large_pixels * C, small_size = small_pixels * F;

  /// The pixel of all large images under a tap of the window at a pixel of all small images; -1 in the padding.
  static constexpr long under(long small, int tap) {
    const long n = small / small_pixels;
    const int pixel = int(small % small_pixels);
    const int row = down.begin(pixel / across.out()) + tap / across.kernel * down.dilation;
    const int column = across.begin(pixel % across.out()) + tap % across.kernel * across.dilation;
    if (row < 0 || row >= down.in || column < 0 || column >= across.in) return -1;
    return n * large_pixels + long(row) * across.in + column;
  }
  /// The pixel of all small images whose window has that tap over a pixel of all large images; -1 if there is none.
  static constexpr long over(long large, int tap) {
    const long n = large / large_pixels;
    const int pixel = int(large % large_pixels);
    const int row = pixel / across.in - tap / across.kernel * down.dilation + down.padding();
    const int column = pixel % across.in - tap % across.kernel * across.dilation + across.padding();
    if (row < 0 || row % down.stride != 0 || column < 0 || column % across.stride != 0) return -1;
    const int i = row / down.stride, j = column / across.stride;
    if (i >= down.out() || j >= across.out()) return -1;
    return n * small_pixels + long(i) * across.out() + j;
  }
};

/// To each pixel of the small images: y = window * kernel. One group.
template <class S, class P, class From, class Store>
struct to_small_images {
  using precision = P;
  using T = typename P::value_type;
  static constexpr bool rows_are_neighbours = false;
  From large;
  const T* w;
  Store to;
  long count;

  constexpr long rows() const { return count * S::small_pixels; }
  constexpr long columns() const { return S::filters; }
  constexpr long terms(long) const { return S::taps * S::channels; }
  constexpr T a(long, long m, long k) const {
    const long pixel = S::under(m, int(k / S::channels));
    return pixel < 0 ? T{} : large[pixel * S::channels + k % S::channels];
  }
  constexpr T b(long, long k, long n) const { return w[k * S::filters + n]; }
  constexpr void store(long, long m, long n, T sum) const { to.store(m * S::filters + n, sum); }
};

/// To each pixel of the large images, from all windows that have it. One group.
template <class S, class P, class From, class Store>
struct to_large_images {
  using precision = P;
  using T = typename P::value_type;
  static constexpr bool rows_are_neighbours = false;
  From small;
  const T* w;
  Store to;
  long count;

  constexpr long rows() const { return count * S::large_pixels; }
  constexpr long columns() const { return S::channels; }
  constexpr long terms(long) const { return S::taps * S::filters; }
  constexpr T a(long, long m, long k) const {
    const long pixel = S::over(m, int(k / S::filters));
    return pixel < 0 ? T{} : small[pixel * S::filters + k % S::filters];
  }
  constexpr T b(long, long k, long n) const { return w[(k / S::filters * S::channels + n) * S::filters + k % S::filters]; }
  constexpr void store(long, long m, long n, T sum) const { to.store(m * S::channels + n, sum); }
};

/// The gradient of the kernel, leaf by leaf, and of the bias as one more row of the product: its input is 1. One group.
template <class S, class P, class Large, class Small, bool Bias>
struct kernel_gradient {
  using precision = P;
  using T = typename P::value_type;
  static constexpr bool rows_are_neighbours = true;
  static constexpr long kernel_rows = long(S::taps) * S::channels;
  Large large;
  Small small;
  gradient_place<T> dw, db;
  rows_of_leaves samples;

  constexpr long rows() const { return kernel_rows + Bias; }
  constexpr long columns() const { return S::filters; }
  constexpr long terms(long leaf) const { return samples.size(leaf) * S::small_pixels; }
  constexpr T a(long leaf, long m, long k) const {
    if (m == kernel_rows) return T(1);
    const long pixel = S::under(samples.begin(leaf) * S::small_pixels + k, int(m / S::channels));
    return pixel < 0 ? T{} : large[pixel * S::channels + m % S::channels];
  }
  constexpr T b(long leaf, long k, long n) const { return small[(samples.begin(leaf) * S::small_pixels + k) * S::filters + n]; }
  constexpr void store(long leaf, long m, long n, T sum) const {
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
    T sum{};
    for (int tap = 0; tap < S::taps; ++tap)
      if (const long pixel = S::under(i / S::filters, tap); pixel >= 0)
        for (int c = 0; c < S::group_channels; ++c)
          sum += large[pixel * S::channels + first + c] * w[(long(tap) * S::group_channels + c) * S::filters + f];
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
    T sum{};
    for (int tap = 0; tap < S::taps; ++tap)
      if (const long pixel = S::over(i / S::channels, tap); pixel >= 0)
        for (int f = first; f < first + S::group_filters; ++f)
          sum += small[pixel * S::filters + f] * w[(long(tap) * S::group_channels + c) * S::filters + f];
    to.store(i, sum);
  }
};
template <class S, class T, class Large, class Small>
struct kernel_gradient_in_groups {
  using value = T;
  static constexpr int threads = 128;
  static constexpr long size = long(S::taps) * S::group_channels * S::filters;
  Large large;
  Small small;
  gradient_place<T> dw;
  rows_of_leaves samples;

  constexpr long terms(long sum) const { return samples.size(sum / size) * S::small_pixels; }
  constexpr T term(long sum, long i) const {
    const long at = sum % size, small_pixel = samples.begin(sum / size) * S::small_pixels + i;
    const int f = int(at % S::filters), c = int(at / S::filters % S::group_channels),
              tap = int(at / S::filters / S::group_channels);
    const long pixel = S::under(small_pixel, tap);
    return pixel < 0
               ? T{}
               : large[pixel * S::channels + f / S::group_filters * S::group_channels + c] * small[small_pixel * S::filters + f];
  }
  constexpr void store(long sum, T v) const { dw.store(sum / size, sum % size, v); }
};

/// Stores y = A(sum + bias).
template <class A, class T, int Filters>
struct activated_with_bias {
  T* y;
  const T* bias;
  constexpr void store(long i, T sum) const { y[i] = activated<A>(bias ? bias[i % Filters] + sum : sum); }
};

template <class S, class P, class From, class Store, class T = typename P::value_type>
void compute_small_images(const queue& q, From large, const T* w, Store to, int count) {
  if constexpr (S::groups == 1)
    for_each_product(q, 1, to_small_images<S, P, From, Store>{large, w, to, count});
  else
    for_each_index(q, count * S::small_size, to_small_images_in_groups<S, T, From, Store>{large, w, to});
}
template <class S, class P, class From, class Store, class T = typename P::value_type>
void compute_large_images(const queue& q, From small, const T* w, Store to, int count) {
  if constexpr (S::groups == 1)
    for_each_product(q, 1, to_large_images<S, P, From, Store>{small, w, to, count});
  else
    for_each_index(q, count * S::large_size, to_large_images_in_groups<S, T, From, Store>{small, w, to});
}
template <class S, class P, class Large, class Small, class T>
void compute_kernel_gradient(const queue& q, Large large, Small small, gradient_place<T> dw, rows_of_leaves rows) {
  if (!dw.is_wanted()) return;
  if constexpr (S::groups == 1) {
    for_each_product(q, rows.leaves, kernel_gradient<S, P, Large, Small, false>{large, small, dw, dw, rows});
  } else {
    using sums = kernel_gradient_in_groups<S, T, Large, Small>;
    for_each_sum(q, rows.leaves * sums::size, sums{large, small, dw, rows});
  }
}

/// The gradients of a convolution. dz: of its result, before the activation.
template <conv_settings S, class At, class P, class Dz, class T>
void convolution_backward(const queue& q, const operands<T>& o, const Dz& dz) {
  using place = gradient_place<T>;
  const place dw = place::of_weight(o, 0), db = place::of_weight(o, 1), dx = place::of_input(o, 0);
  const auto rows = rows_of_leaves::of(o);
  if constexpr (S.groups == 1) {
    launch_together(q,
                    products(dw.is_wanted() || db.is_wanted() ? rows.leaves : 0,
                             kernel_gradient<At, P, const T*, Dz, S.bias>{o.x[0], dz, dw, db, rows}),
                    products(dx.is_wanted() ? 1 : 0, to_large_images<At, P, Dz, place>{dz, o.w[0], dx, o.count}));
  } else {
    compute_kernel_gradient<At, P>(q, o.x[0], dz, dw, rows);
    if constexpr (S.bias) store_bias_gradient(q, rows, dz, db, S.filters, int(At::small_pixels));
    if (dx.is_wanted()) compute_large_images<At, P>(q, dz, o.w[0], dx, o.count);
  }
}

/// x: (count, H, W, C); kernel: (KH, KW, C / groups, F); bias: (F); y: (count, OH, OW, F). A: an activation, or linear.
template <conv_settings S, class A, class P, shape In>
struct convolution_kernel : kernel_defaults {
  using T = typename P::value_type;
  using at = sliding<convolution<S>::vertical(In), convolution<S>::horizontal(In), In[2], S.filters, S.groups>;
  static constexpr bool reads_output = follows_in_a_kernel<A>;

  static void forward(queue q, const operands<T>& o) {
    compute_small_images<at, P>(q, o.x[0], o.w[0], activated_with_bias<A, T, S.filters>{o.y, S.bias ? o.w[1] : nullptr}, o.count);
  }
  static void backward(queue q, const operands<T>& o) { convolution_backward<S, at, P>(q, o, gradient_before<A, T>{o.dy, o.y}); }
};

/// Windows of 2x2 pixels over the small images, side by side. A last row or column that is left over is in no window.
template <class S>
struct pooled_windows {
  static constexpr int rows = S::down.out() / 2, columns = S::across.out() / 2, count = rows * columns;
  /// The pixel of all small images that is number `which` of a window.
  static constexpr long pixel(long window, int which) {
    const int at = int(window % count), row = at / columns * 2 + which / 2, column = at % columns * 2 + which % 2;
    return window / count * S::small_pixels + long(row) * S::across.out() + column;
  }
};

/// The product of to_small_images with its rows window by window, so that a thread has all pixels of a window: it stores the
/// largest, and which one that is.
template <class S, class A, class P>
struct to_pooled_images {
  using precision = P;
  using T = typename P::value_type;
  using windows = pooled_windows<S>;
  static constexpr bool rows_are_neighbours = false;
  const T *x, *w, *bias;
  T *y, *winners;  // winners: null in inference
  long count;

  constexpr long rows() const { return count * windows::count * 4; }
  constexpr long columns() const { return S::filters; }
  constexpr long terms(long) const { return S::taps * S::channels; }
  constexpr T a(long, long m, long k) const {
    const long pixel = S::under(windows::pixel(m / 4, int(m % 4)), int(k / S::channels));
    return pixel < 0 ? T{} : x[pixel * S::channels + k % S::channels];
  }
  constexpr T b(long, long k, long n) const { return w[k * S::filters + n]; }
  constexpr void store_rows(long, long m, long n, const T (&sums)[4]) const {
    T best{};
    int winner = 0;
    for (int i = 0; i < 4; ++i) {
      const T next = activated<A>(bias ? bias[n] + sums[i] : sums[i]);
      if (i == 0 || next > best || next != next) best = next, winner = i;  // nan wins, so that no layer hides it
    }
    y[m / 4 * S::filters + n] = best;
    if (winners) winners[m / 4 * S::filters + n] = T(winner);
  }
};

/// The gradient of an element of the small images before activation and pooling.
template <class S, class A, class T>
struct gradient_before_pooling {
  using windows = pooled_windows<S>;
  gradient_before<A, T> dz;
  const T* winners;

  constexpr T operator[](long i) const {
    const int at = int(i / S::filters % S::small_pixels), row = at / S::across.out(), column = at % S::across.out();
    if (row / 2 >= windows::rows || column / 2 >= windows::columns) return T{};
    const long window = i / S::filters / S::small_pixels * windows::count + row / 2 * windows::columns + column / 2;
    const long to = window * S::filters + i % S::filters;
    return winners[to] == T(row % 2 * 2 + column % 2) ? dz[to] : T{};
  }
};

/// Convolution, activation and max pooling over windows of 2x2. y: (count, OH / 2, OW / 2, F). saved: the winner of each window.
template <conv_settings S, class A, class P, shape In>
struct pooled_convolution_kernel : kernel_defaults {
  using T = typename P::value_type;
  using at = typename convolution_kernel<S, A, P, In>::at;
  static constexpr bool reads_output = follows_in_a_kernel<A>;
  static constexpr int saved = pooled_windows<at>::count * S.filters;

  static void forward(queue q, const operands<T>& o) { run(q, o, o.saved); }
  static void infer(queue q, const operands<T>& o) { run(q, o, nullptr); }
  static void backward(queue q, const operands<T>& o) {
    convolution_backward<S, at, P>(q, o, gradient_before_pooling<at, A, T>{{o.dy, o.y}, o.saved});
  }

 private:
  static void run(const queue& q, const operands<T>& o, T* winners) {
    for_each_product(q, 1, to_pooled_images<at, A, P>{o.x[0], o.w[0], S.bias ? o.w[1] : nullptr, o.y, winners, o.count});
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
template <transposed_conv_settings S, class A, class P, shape In>
struct transposed_convolution_kernel : kernel_defaults {
  using T = typename P::value_type;
  static constexpr shape Out = S.output(In);
  using backwards = convolution<S.backwards(In)>;
  using at = sliding<backwards::vertical(Out), backwards::horizontal(Out), S.filters, In[2], 1>;
  static constexpr bool reads_output = follows_in_a_kernel<A>;

  static void forward(queue q, const operands<T>& o) {
    compute_large_images<at, P>(q, o.x[0], o.w[0], activated_with_bias<A, T, S.filters>{o.y, S.bias ? o.w[1] : nullptr}, o.count);
  }
  static void backward(queue q, const operands<T>& o) {
    using place = gradient_place<T>;
    const gradient_before<A, T> dz{o.dy, o.y};
    compute_kernel_gradient<at, P>(q, dz, o.x[0], place::of_weight(o, 0), rows_of_leaves::of(o));
    if constexpr (S.bias)
      store_bias_gradient(q, rows_of_leaves::of(o), dz, place::of_weight(o, 1), S.filters, int(at::large_pixels));
    if (o.dx[0]) compute_small_images<at, P>(q, dz, o.w[0], place::of_input(o, 0), o.count);
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
