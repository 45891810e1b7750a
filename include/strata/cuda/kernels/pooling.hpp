// Max and average pooling on a GPU, one thread per element of the result.
#pragma once
#include <algorithm>
#include <strata/cuda/kernels/constant_axis.hpp>
#include <strata/cuda/kernels/gradients.hpp>
#include <strata/layers/average_pool2d.hpp>
#include <strata/layers/global_pool2d.hpp>
#include <strata/layers/max_pool2d.hpp>

namespace strata {

namespace machine {

/// The windows over an image (H, W, C).
template <pool_settings S, shape In>
struct pool_windows {
  using down = constant_axis<S.vertical(In)>;
  using across = constant_axis<S.horizontal(In)>;
  static constexpr int C = In[2], in_size = In.size(), rows = down::out, columns = across::out, out_size = rows * columns * C;
  /// Each element of the image lies in one window.
  static constexpr bool cover = down::stride == down::kernel && across::stride == across::kernel &&
                                rows * down::kernel - down::padding >= In[0] &&
                                columns * across::kernel - across::padding >= In[1];

  struct window {
    int top, bottom, left, right;
  };
  static constexpr window at(int i, int j) {
    return {std::max(down::begin(i), 0), std::min(down::begin(i) + down::kernel, In[0]), std::max(across::begin(j), 0),
            std::min(across::begin(j) + across::kernel, In[1])};
  }
  /// The index of the largest element under a window. nan wins, so that no layer hides it.
  template <class T>
  static constexpr int winner(const T* x, int i, int j, int c) {
    const window w = at(i, j);
    int best = (w.top * In[1] + w.left) * C + c;
    for (int row = w.top; row < w.bottom; ++row)
      for (int column = w.left; column < w.right; ++column) {
        const int next = (row * In[1] + column) * C + c;
        if (x[next] > x[best] || x[next] != x[next]) best = next;
      }
    return best;
  }
};

template <class Windows, class T>
struct pool_max {
  const T* x;
  T* y;
  constexpr void operator()(long i) const {
    const T* const image = x + i / Windows::out_size * Windows::in_size;
    const int at = int(i % Windows::out_size), pixel = at / Windows::C;
    y[i] = image[Windows::winner(image, pixel / Windows::columns, pixel % Windows::columns, at % Windows::C)];
  }
};

/// A window writes all of its elements: for windows that `cover`.
template <class Windows, class T, shape In>
struct spread_to_winner {
  const T *x, *dy;
  gradient_place<T> dx;
  constexpr void operator()(long i) const {
    const long first = i / Windows::out_size * Windows::in_size;
    const int at = int(i % Windows::out_size), pixel = at / Windows::C, c = at % Windows::C;
    const int row_of = pixel / Windows::columns, column_of = pixel % Windows::columns;
    const int best = Windows::winner(x + first, row_of, column_of, c);
    const auto w = Windows::at(row_of, column_of);
    for (int row = w.top; row < w.bottom; ++row)
      for (int column = w.left; column < w.right; ++column) {
        const int to = (row * In[1] + column) * Windows::C + c;
        dx.store(first + to, to == best ? dy[i] : T{});
      }
  }
};
/// Each element gathers from all windows over it.
template <class Windows, class T, shape In>
struct gather_from_winners {
  const T *x, *dy;
  gradient_place<T> dx;
  constexpr void operator()(long i) const {
    const long n = i / Windows::in_size;
    const int at = int(i % Windows::in_size), c = at % Windows::C, row = at / Windows::C / In[1],
              column = at / Windows::C % In[1];
    T sum{};
    for (int r = Windows::down::first_over(row); r < Windows::down::end_over(row); ++r)
      for (int k = Windows::across::first_over(column); k < Windows::across::end_over(column); ++k)
        if (Windows::winner(x + n * Windows::in_size, r, k, c) == at)
          sum += dy[n * Windows::out_size + (r * Windows::columns + k) * Windows::C + c];
    dx.store(i, sum);
  }
};

template <class Windows, class T, shape In>
struct pool_average {
  const T* x;
  T* y;
  constexpr void operator()(long i) const {
    const T* const image = x + i / Windows::out_size * Windows::in_size;
    const int at = int(i % Windows::out_size), pixel = at / Windows::C, c = at % Windows::C;
    const auto w = Windows::at(pixel / Windows::columns, pixel % Windows::columns);
    T sum{};
    for (int row = w.top; row < w.bottom; ++row)
      for (int column = w.left; column < w.right; ++column) sum += image[(row * In[1] + column) * Windows::C + c];
    y[i] = sum / T((w.bottom - w.top) * (w.right - w.left));
  }
};
template <class Windows, class T, shape In>
struct pool_average_gradient {
  const T* dy;
  gradient_place<T> dx;
  constexpr void operator()(long i) const {
    const long n = i / Windows::in_size;
    const int at = int(i % Windows::in_size), c = at % Windows::C, row = at / Windows::C / In[1],
              column = at / Windows::C % In[1];
    T sum{};
    for (int r = Windows::down::first_over(row); r < Windows::down::end_over(row); ++r)
      for (int k = Windows::across::first_over(column); k < Windows::across::end_over(column); ++k) {
        const auto w = Windows::at(r, k);
        sum +=
            dy[n * Windows::out_size + (r * Windows::columns + k) * Windows::C + c] / T((w.bottom - w.top) * (w.right - w.left));
      }
    dx.store(i, sum);
  }
};

template <pool_settings S, class P, shape In>
struct average_pooling_kernel {
  using T = typename P::value_type;
  using windows = pool_windows<S, In>;
  static constexpr kernel_traits traits{.reads_input = false};

  static void forward(queue q, const operands<T>& o) {
    for_each_index(q, long{o.count} * windows::out_size, pool_average<windows, T, In>{o.x[0], o.y});
  }
  static void backward(queue q, const operands<T>& o) {
    const auto dx = gradient_place<T>::of_input(o, 0);
    if (dx.is_wanted()) for_each_index(q, long{o.count} * windows::in_size, pool_average_gradient<windows, T, In>{o.dy, dx});
  }
};

template <shape In>
inline constexpr pool_settings whole_image{.window_height = In[0], .window_width = In[1]};

}  // namespace machine

namespace core {
/// x: (count, H, W, C); y: (count, OH, OW, C).
template <pool_settings S, class P, shape In>
struct kernel<cuda, max_pooling<S>, P, In> {
  using T = typename P::value_type;
  using windows = machine::pool_windows<S, In>;

  static void forward(machine::queue q, const operands<T>& o) {
    machine::for_each_index(q, long{o.count} * windows::out_size, machine::pool_max<windows, T>{o.x[0], o.y});
  }
  static void backward(machine::queue q, const operands<T>& o) {
    const auto dx = machine::gradient_place<T>::of_input(o, 0);
    const long in = long{o.count} * windows::in_size, out = long{o.count} * windows::out_size;
    if (!dx.is_wanted()) return;
    if constexpr (windows::cover)
      machine::for_each_index(q, out, machine::spread_to_winner<windows, T, In>{o.x[0], o.dy, dx});
    else
      machine::for_each_index(q, in, machine::gather_from_winners<windows, T, In>{o.x[0], o.dy, dx});
  }
};

/// x: (count, H, W, C); y: (count, OH, OW, C).
template <pool_settings S, class P, shape In>
struct kernel<cuda, average_pooling<S>, P, In> : machine::average_pooling_kernel<S, P, In> {};

/// Pooling whose window is the whole image. x: (count, H, W, C); y: (count, C).
template <class P, shape In>
struct kernel<cuda, global_max_pool2d, P, In> : kernel<cuda, max_pooling<machine::whole_image<In>>, P, In> {};
template <class P, shape In>
struct kernel<cuda, global_average_pool2d, P, In> : machine::average_pooling_kernel<machine::whole_image<In>, P, In> {};
}  // namespace core

}  // namespace strata
