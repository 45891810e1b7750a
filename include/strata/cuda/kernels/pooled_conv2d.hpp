// A convolution, its activation and max pooling over windows of 2x2 as one kernel.
#pragma once
#include <cstdint>
#include <strata/cuda/kernels/conv2d_passes.hpp>
#include <strata/layers/max_pool2d.hpp>
#include <type_traits>

namespace strata::machine {

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
  static constexpr int windows_of_image = windows::count;

  struct gradient_of_winner {
    typename S::small_pixel at;  // any pixel of the window if it has no winner; the gradient is 0 then
    T gradient;
  };
  constexpr gradient_of_winner winner_of(int image, int window, int filter) const {
    const long from = (long{image} * windows::count + window) * S::filters + filter;
    const T gradient = dz[from];
    const int bits = winners[from];
    const int row = 2 * quotient<windows::columns>(window) + (bits >= 0b0100);
    const int column = 2 * remainder<windows::columns>(window) + ((bits & 0b1010) != 0);
    return {{image, row, column}, bits == no_winner ? T{} : gradient};
  }

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
struct pooled_convolution_kernel {
  using T = typename P::value_type;
  template <bool NarrowInput, bool NarrowOutput>
  using with_narrow = pooled_convolution_kernel<S, A, P, In, element_of_array<T, NarrowInput>, element_of_array<T, NarrowOutput>>;
  using at = sliding_of<S, In>;
  using windows = pooled_windows<at>;
  using dz_type = gradient_before_pooling<at, A, T, Y>;
  // a byte for each winner
  static constexpr kernel_traits traits{.saved = (windows::count * S.filters + int(sizeof(T)) - 1) / int(sizeof(T)),
                                        .scratch = scratch_of_convolution<S, at, P, X, dz_type>(),
                                        .reads_output = !winner_says_slope<A>,
                                        .input_end = reads_operands<P>,
                                        .output_end = stores_activations<P, A>};

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

}  // namespace strata::machine
