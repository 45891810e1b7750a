// Convolutions by cuDNN: a call for each leaf, forward, for the gradient of the input, and for that of the kernel. Bias and relu
// are parts of the call forward, where the library can do that.
#pragma once
#include <algorithm>
#include <memory>
#include <optional>
#include <strata/cuda/kernels/conv2d.hpp>
#include <strata/cuda/kernels/library_operands.hpp>
#include <strata/cuda/kernels/library_rule.hpp>
#include <type_traits>

namespace strata {

namespace machine {

/// A kernel (taps, channels, filters) becomes one of cuDNN, (filters, taps, channels).
template <class P, class To>
struct put_filters_first {
  const float* from;
  To* to;
  long rows, filters;  // rows: taps * channels
  constexpr void operator()(long i) const {
    const float x = from[i % rows * filters + i / rows];
    if constexpr (std::is_same_v<To, bfloat16>)
      to[i] = bfloat16::nearest(x);
    else
      to[i] = x;
  }
};
/// Back: a gradient of cuDNN goes to that of a leaf.
template <class From>
struct put_filters_last {
  const From* from;
  gradient_place<float> to;
  long leaf, rows, filters;
  constexpr void operator()(long i) const { to.store(leaf, i, float(from[i % filters * rows + i / filters])); }
};
/// Converts the gradient of an input that cuDNN has computed.
template <class From, class X>
struct take_gradient {
  const From* from;
  gradient_place<float, X> to;
  constexpr void operator()(long i) const { to.store(i, float(from[i])); }
};
#if defined(STRATA_CUDNN) || !defined(__CUDACC__)

/// The calls for a leaf.
struct convolution_calls {
  std::optional<library_convolution> forward, input_gradient, kernel_gradient;
};

/// The calls for a number of samples and leaves.
struct prepared_convolution {
  int full_leaves = 0, leaves = 0;
  long capacity = 0, rest = 0;  // samples of a full leaf, and of the one that has fewer
  convolution_calls full, smaller;
  bool is_fused = false;  // bias and relu are in the call forward

  /// Calls f(calls, leaf, its first sample, its samples) for each leaf that has some.
  template <class F>
  void for_each_leaf(F&& f) const {
    for (int leaf = 0; leaf < full_leaves; ++leaf) f(full, leaf, leaf * capacity, capacity);
    if (rest > 0) f(smaller, full_leaves, full_leaves * capacity, rest);
  }
  bool all_have(std::optional<library_convolution> convolution_calls::* which) const {
    return (full_leaves == 0 || full.*which) && (rest == 0 || smaller.*which);
  }
};

/// Falls back to convolution_kernel if leaves are small or the library has no plan.
///
/// In bfloat16, x is rounded once and kept for backward, unless it is narrow, and the library rounds what it has computed.
/// scratch: the kernel as cuDNN has it | its gradient | workspace of the library | outputs, of the library or before the
/// activation, or dz | rounded x (in inference), or the gradient of the input.
template <conv_settings S, class A, class P, shape In, class X = float, class Y = X>
struct library_convolution_kernel : convolution_kernel<S, A, P, In, X, Y> {
  using ours = convolution_kernel<S, A, P, In, X, Y>;
  template <bool NarrowInput, bool NarrowOutput>
  using with_narrow =
      library_convolution_kernel<S, A, P, In, element_of_array<float, NarrowInput>, element_of_array<float, NarrowOutput>>;
  static constexpr bool x_is_narrow = !std::is_same_v<X, float>, y_is_narrow = !std::is_same_v<Y, float>;
  static constexpr bool halves = factors_of<P> == factor_type::bf16, is_linear = std::is_same_v<A, linear>,
                        is_relu = std::is_same_v<A, relu>;
  static constexpr window_axis down = convolution<S>::vertical(In), across = convolution<S>::horizontal(In);
  static constexpr int channels = In[2], filters = S.filters, taps = S.kernel_height * S.kernel_width, rows = taps * channels;
  static constexpr int in_size = In.size(), out_size = down.out() * across.out() * filters, kernel_size = rows * filters;
  static_assert(channels % 8 == 0 && filters % 8 == 0, "arrays of the library begin at multiples of 16 bytes");

  static constexpr int padded(int size) { return (size + 15) / 16 * 16; }
  using element = std::conditional_t<halves, bfloat16, float>;                                // of the arrays of the library
  static constexpr int array_size(int elements) { return halves ? elements / 2 : elements; }  // in floats
  static constexpr int at_gradient = padded(array_size(kernel_size)), at_workspace = 2 * at_gradient;
  /// True if dz is computed before the library reads it; otherwise the library reads dy.
  static constexpr bool computes_dz = !is_linear || (halves && !y_is_narrow);
  /// Sizes per sample: of outputs before the activation, or dz; and of rounded x, or the gradient of the input.
  static constexpr int z_size = computes_dz ? array_size(out_size) : 0, x_size = x_is_narrow ? 0 : array_size(in_size);
  /// The library stores what it has computed as bfloat16.
  static constexpr kernel_traits traits{
      .saved = halves ? x_size : 0,
      .scratch = std::max(at_workspace + floats_for_workspace(dnn_workspace), ours::traits.scratch),
      .scratch_per_sample = z_size + x_size,
      .reads_output = ours::traits.reads_output,
      .input_end{halves, halves, halves},
      .output_end{halves && commutes_with_rounding<A>, halves&& is_linear && !S.bias, halves}};

  static std::shared_ptr<const void> prepare(queue q, const operands<float>& o, bool trains) {
    const auto samples = rows_of_leaves::of(o);
    if (!fills_convolutions(samples.capacity * down.out() * across.out())) return {};
    if (alignment_of(o.x[0]) < 16 || alignment_of(o.y) < 16 || (S.bias && alignment_of(o.w[1]) < 16)) return {};
    const auto made = std::make_shared<prepared_convolution>();
    made->full_leaves = int(o.count / samples.capacity), made->leaves = samples.leaves;
    made->capacity = samples.capacity, made->rest = o.count % samples.capacity;
    const auto find = [&](std::optional<library_convolution> convolution_calls::* which, dnn_direction direction, bool fused) {
      if (made->full_leaves > 0) made->full.*which = library_convolution::find(q, description(direction, made->capacity, fused));
      if (made->rest > 0) made->smaller.*which = library_convolution::find(q, description(direction, made->rest, fused));
      return made->all_have(which);
    };
    made->is_fused = !halves && find(&convolution_calls::forward, dnn_direction::forward, true);
    if (!made->is_fused && !find(&convolution_calls::forward, dnn_direction::forward, false)) return {};
    if (!trains) return made;
    if (o.dw[0] && !find(&convolution_calls::kernel_gradient, dnn_direction::kernel_gradient, false)) return {};
    if (o.dx[0] && !find(&convolution_calls::input_gradient, dnn_direction::input_gradient, false)) return {};
    return made;
  }

  static void forward(queue q, const operands<float>& o) { run(q, o, o.saved); }
  static void infer(queue q, const operands<float>& o) { run(q, o, second_part(o)); }

  static void backward(queue q, const operands<float>& o) {
    using dz_type = gradient_before<A, float, Y>;
    const dz_type dz = dz_type::of(o);
    const auto* const how = static_cast<const prepared_convolution*>(o.prepared);
    if (!how || o.adds_dw || (o.dw[0] && !how->all_have(&convolution_calls::kernel_gradient)) ||
        (o.dx[0] && !how->all_have(&convolution_calls::input_gradient)))
      return ours::backward(q, o);

    const void* z = o.dy;
    const long elements = long{o.count} * out_size;
    if constexpr (computes_dz && halves) {
      auto* const rounded = reinterpret_cast<bfloat16*>(first_part(o));
      for_each_index(q, elements, round_rows<dz_type>{dz, rounded, filters, filters});
      z = rounded;
    } else if constexpr (computes_dz) {
      for_each_index(q, elements, store_elements<dz_type>{dz, first_part(o)});
      z = first_part(o);
    }
    const auto dw = gradient_place<float>::of_weight(o, 0), db = gradient_place<float>::of_weight(o, 1);
    if (dw.is_wanted()) {
      auto* const gradient = reinterpret_cast<element*>(o.scratch + at_gradient);
      how->for_each_leaf([&](const convolution_calls& calls, int leaf, long first, long) {
        calls.kernel_gradient->run(q, {factor(traits.saved > 0 ? o.saved : o.x[0], first * in_size), gradient,
                                       factor(z, first * out_size), nullptr, workspace(o)});
        for_each_index(q, kernel_size, put_filters_last<element>{gradient, dw, leaf, rows, filters});
      });
      const long first_empty = how->full_leaves + (how->rest > 0);
      for_each_index(q, (how->leaves - first_empty) * kernel_size, clear_gradients{dw, first_empty, kernel_size});
    }
    if constexpr (S.bias)
      store_bias_gradient(q, rows_of_leaves::of(o), rounded_elements<P, dz_type>{dz}, db, filters, down.out() * across.out());
    if (o.dx[0]) {
      void* const w = kernel_of_library(q, o);
      const auto dx = gradient_place<float, X>::of_input(o, 0);
      const bool takes = (halves && !x_is_narrow) || dx.adds;  // else the library stores where the gradient belongs
      void* const computed = takes ? static_cast<void*>(second_part(o)) : dx.to;
      how->for_each_leaf([&](const convolution_calls& calls, int, long first, long) {
        calls.input_gradient->run(q, {factor(computed, first * in_size), w, factor(z, first * out_size), nullptr, workspace(o)});
      });
      if (takes) for_each_index(q, long{o.count} * in_size, take_gradient<element, X>{static_cast<const element*>(computed), dx});
    }
  }

 private:
  static dnn_convolution description(dnn_direction direction, long images, bool fused) {
    const auto axis = [](const window_axis& a) {
      const int total = (a.out() - 1) * a.stride + a.reach() - a.in;
      return dnn_axis{a.in, a.out(), a.kernel, a.stride, a.dilation, a.padding(), std::max(total - a.padding(), 0)};
    };
    return {direction, factors_of<P>, images, axis(down), axis(across), channels, filters, fused && S.bias, fused && is_relu, 16};
  }
  static float* workspace(const operands<float>& o) { return first_aligned(o.scratch + at_workspace); }
  static float* first_part(const operands<float>& o) { return o.scratch + traits.scratch; }
  static float* second_part(const operands<float>& o) { return first_part(o) + long{o.count} * z_size; }
  /// Element i of an array of factors.
  static void* factor(const void* from, long i) {
    void* const all = const_cast<void*>(from);
    return halves ? static_cast<void*>(static_cast<bfloat16*>(all) + i) : static_cast<float*>(all) + i;
  }
  static void* kernel_of_library(const queue& q, const operands<float>& o) {
    auto* const to = reinterpret_cast<element*>(o.scratch);
    for_each_index(q, kernel_size, put_filters_first<P, element>{o.w[0], to, rows, filters});
    return to;
  }
  /// rounded_x: the buffer for rounded x.
  static void run(const queue& q, const operands<float>& o, float* rounded_x) {
    const auto* const how = static_cast<const prepared_convolution*>(o.prepared);
    if (!how) return ours::forward(q, o);
    const void* x = o.x[0];
    if constexpr (halves && !x_is_narrow) {
      auto* const rounded = reinterpret_cast<bfloat16*>(rounded_x);
      for_each_index(q, long{o.count} * in_size, round_rows<const float*>{o.x[0], rounded, channels, channels});
      x = rounded;
    }
    void* const w = kernel_of_library(q, o);
    const float* const bias = S.bias ? o.w[1] : nullptr;
    constexpr bool stores_elsewhere = halves && !y_is_narrow;
    void* const y = stores_elsewhere ? first_part(o) : o.y;
    how->for_each_leaf([&](const convolution_calls& calls, int, long first, long) {
      calls.forward->run(q, {factor(x, first * in_size), w, factor(y, first * out_size), bias, workspace(o)});
    });
    const bool adds_bias = S.bias && !how->is_fused;
    if (stores_elsewhere || adds_bias || !(is_linear || (is_relu && how->is_fused)))
      for_each_index(
          q, long{o.count} * out_size,
          finish_outputs<A, element, Y>{static_cast<const element*>(y), output_of<Y>(o), adds_bias ? bias : nullptr, filters});
  }
};

#endif

}  // namespace machine

#if defined(STRATA_CUDNN) || !defined(__CUDACC__)
namespace core {
template <conv_settings S, class P, shape In>
  requires machine::goes_to_dnn<S, P, In>
struct kernel<cuda, convolution<S>, P, In> : machine::library_convolution_kernel<S, linear, P, In> {};

template <conv_settings S, class A, class P, shape In>
  requires(machine::follows_in_a_kernel<A> && machine::goes_to_dnn<S, P, In>)
struct kernel<cuda, fused<convolution<S>, A>, P, In> : machine::library_convolution_kernel<S, A, P, In> {};
}  // namespace core
#endif

}  // namespace strata
