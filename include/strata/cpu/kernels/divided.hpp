// Layers that ranks divide: kernels of the base compute the parts, and ranks exchange them.
#pragma once
#include <algorithm>
#include <cstddef>
#include <strata/base/arena.hpp>
#include <strata/base/precision.hpp>
#include <strata/cpu/convolution/conv2d.hpp>
#include <strata/kernel/kernel.hpp>
#include <strata/kernel/rank_exchange.hpp>
#include <strata/network/layout.hpp>
#include <strata/program/tensor_backend.hpp>
#include <type_traits>

namespace strata {

namespace detail {
/// Copies columns [first, first + width) of rows of `columns` elements; columns beyond the end become 0.
template <class T>
void take_columns(const T* from, long rows, int columns, int first, int width, T* to) {
  const int there = std::clamp(columns - first, 0, width);
  for (long i = 0; i < rows; ++i, from += columns, to += width) {
    std::copy_n(from + first, there, to);
    std::fill_n(to + there, width - there, T{});
  }
}
/// The parts of all ranks, each of `width` columns, as rows of `columns` elements.
template <class T>
void join_columns(const T* parts, int ranks, long rows, int width, int columns, T* to) {
  for (int r = 0; r < ranks; ++r) {
    const int first = r * width, there = std::clamp(columns - first, 0, width);
    for (long i = 0; i < rows; ++i, parts += width) std::copy_n(parts, there, to + i * columns + first);
  }
}

/// Stands for a kernel that is not needed, such as that of an input without a gradient.
struct no_kernel {};

/// The kernel of Base for a part of the operation Whole, whose input has the shape WholeIn. The part may be void.
template <class Base, class Operation, class P, shape In, class Whole, shape WholeIn>
struct kernel_of_part : find_kernel<Base, Operation, P, In> {};
template <class Base, class P, shape In, class Whole, shape WholeIn>
struct kernel_of_part<Base, void, P, In, Whole, WholeIn> {
  using type = no_kernel;
};
/// The sizes of the whole convolution select the algorithm; those of the part could select one with another order of sums.
template <conv_settings S, class P, shape In, conv_settings Whole, shape WholeIn>
  requires(!std::is_same_v<P, precision::mixed_bf16>)
struct kernel_of_part<cpu, convolution<S>, P, In, convolution<Whole>, WholeIn> {
  using type = simd::convolution_kernel<S, linear, P, In, WholeIn.last(), Whole.filters>;
};

/// The constants of a kernel that calls two others, one after the other. Each has its memory for itself, except for scratch.
template <class First, class Second>
struct two_kernels {
  static constexpr int of_first = aligned_elements(traits_of_kernel<First>.derived);
  static constexpr kernel_traits traits{.saved = traits_of_kernel<First>.saved,
                                        .derived = of_first + traits_of_kernel<Second>.derived,
                                        .reads_input = traits_of_kernel<First>.reads_input,
                                        .reads_output = traits_of_kernel<First>.reads_output};
  static_assert(traits_of_kernel<Second>.saved == 0 && !traits_of_kernel<Second>.reads_output);

  /// Adds memory for `More` elements per sample, after the scratch memory of both kernels.
  template <int More, class T>
  struct with_scratch {
    static constexpr int of_both = std::max(traits_of_kernel<First>.scratch, traits_of_kernel<Second>.scratch),
                         per_sample =
                             std::max(traits_of_kernel<First>.scratch_per_sample, traits_of_kernel<Second>.scratch_per_sample);
    static constexpr kernel_traits traits = [] {
      kernel_traits of_two = two_kernels::traits;
      of_two.scratch = of_both + parameter_alignment, of_two.scratch_per_sample = per_sample + More;
      return of_two;
    }();
    static T* own(const operands<T>& o) { return o.scratch + aligned_elements(of_both + long(o.count) * per_sample); }
  };

  template <class T>
  static void derive_both(const T* const* of_first_kernel, const T* const* of_second, T* to) {
    if constexpr (requires { First::derive(of_first_kernel, to); }) First::derive(of_first_kernel, to);
    if constexpr (requires { Second::derive(of_second, to); }) Second::derive(of_second, to + of_first);
  }
};

template <class T>
bool wants_weight_gradients(const operands<T>& o) {
  for (const T* each : o.dw)
    if (each) return true;
  return false;
}
/// dx (+)= sum
template <class T>
void give_gradient(const T* sum, long elements, T* dx, bool add) {
  if (!add) return void(std::copy_n(sum, elements, dx));
  for (long i = 0; i < elements; ++i) dx[i] += sum[i];
}

/// The backward pass of a kernel of which each rank has a part, where the gradient of the input is the sum over ranks.
template <class Part, class T>
void backward_with_sum_over_ranks(const operands<T>& o, long elements_of_input) {
  operands<T> part = o;
  part.adds_dx[0] = false;
  if (o.dx[0]) part.dx[0] = o.ranks->own();
  Part::backward(part);
  if (o.dx[0]) give_gradient(o.ranks->add_up(elements_of_input), elements_of_input, o.dx[0], o.adds_dx[0]);
}

/// Divided by columns. All ranks get the whole output, and compute parts of the gradient of the input.
template <class Base, class Op, class P, shape In, bool Gathers>
struct kernel_by_columns
    : two_kernels<
          typename kernel_of_part<Base, typename Op::part, P, In, typename Op::whole, In>::type,
          typename kernel_of_part<Base, typename Op::input_gradient, P, Op::part_of_input(In), typename Op::whole, In>::type> {
  using T = typename P::value_type;
  using of_part = typename kernel_of_part<Base, typename Op::part, P, In, typename Op::whole, In>::type;
  using of_input =
      typename kernel_of_part<Base, typename Op::input_gradient, P, Op::part_of_input(In), typename Op::whole, In>::type;
  using both = two_kernels<of_part, of_input>;
  static constexpr shape whole = Op::output_shape(In).value, own = Op::part::output_shape(In).value,
                         narrow = Op::part_of_input(In);
  using memory = typename both::template with_scratch<own.size(), T>;
  static constexpr kernel_traits traits = memory::traits;
  static constexpr int copy = int(Op::parameters(In).size()) - 1;  // the parameter for of_input

  static void forward(const operands<T>& o) {
    operands<T> part = o;
    part.y = o.ranks->own();
    of_part::forward(part);
    const T* const all = o.ranks->gather(long(o.count) * own.size());
    join_columns(all, o.ranks->size(), long(o.count) * (own.size() / own.last()), own.last(), whole.last(), o.y);
  }

  static void backward(const operands<T>& o) {
    if (wants_weight_gradients(o)) {
      operands<T> part = o;
      T* const dy = memory::own(o);
      take_columns(o.dy, long(o.count) * (whole.size() / whole.last()), whole.last(), o.ranks->rank() * own.last(), own.last(),
                   dy);
      part.dy = dy;
      part.dx[0] = nullptr;
      of_part::backward(part);
    }
    if constexpr (Op::has_copy)
      if (o.dx[0]) compute_input_gradient(o);
  }

  static void derive(const T* const* w, T* derived) { both::derive_both(w, w + copy, derived); }

 private:
  /// Computes the channels of this rank, in the order of the whole operation. Sums continue from dx if it is added to.
  static void compute_input_gradient(const operands<T>& o) {
    const long rows = long(o.count) * (In.size() / In.last());
    operands<T> part = o;
    part.w[0] = o.w[copy];
    part.derived = o.derived + both::of_first;
    for (T*& each : part.dw) each = nullptr;
    part.dx[0] = o.ranks->own();
    if (o.adds_dx[0]) take_columns(o.dx[0], rows, In.last(), o.ranks->rank() * narrow.last(), narrow.last(), part.dx[0]);
    of_input::backward(part);
    const T* const all = o.ranks->gather(rows * narrow.last());
    join_columns(all, o.ranks->size(), rows, narrow.last(), In.last(), o.dx[0]);
  }
};

/// The output stays divided, and the gradient of the input is a sum over ranks.
template <class Base, class Op, class P, shape In>
struct kernel_by_columns<Base, Op, P, In, false>
    : two_kernels<typename kernel_of_part<Base, typename Op::part, P, In, typename Op::whole, In>::type, no_kernel> {
  using T = typename P::value_type;
  using of_part = typename kernel_of_part<Base, typename Op::part, P, In, typename Op::whole, In>::type;
  static constexpr kernel_traits traits = traits_of_kernel<of_part>;

  static void forward(const operands<T>& o) { of_part::forward(o); }
  static void backward(const operands<T>& o) { backward_with_sum_over_ranks<of_part>(o, long(o.count) * In.size()); }
  static void derive(const T* const* w, T* derived) {
    if constexpr (requires { of_part::derive(w, derived); }) of_part::derive(w, derived);
  }
};

/// A layer divided by rows: the output is a sum over ranks, then the bias is added.
template <class Base, class Op, class P, shape In, bool IsPart>
struct kernel_by_rows : two_kernels<typename find_kernel<Base, typename Op::with_bias, P, Op::part_of_input(In)>::type,
                                    typename find_kernel<Base, typename Op::without_bias, P, Op::part_of_input(In)>::type> {
  using T = typename P::value_type;
  static constexpr shape part = Op::part_of_input(In), out = Op::output_shape(In).value;
  using of_gradients = typename find_kernel<Base, typename Op::with_bias, P, part>::type;
  using of_products = typename find_kernel<Base, typename Op::without_bias, P, part>::type;
  using both = two_kernels<of_gradients, of_products>;
  using memory = typename both::template with_scratch<IsPart ? 0 : part.size(), T>;
  static constexpr kernel_traits traits = memory::traits;
  static constexpr bool has_bias = Op::parameters(In).size() > 1;

  static void forward(const operands<T>& o) {
    operands<T> product = of_own_columns(o);
    product.derived = o.derived + both::of_first;
    product.y = o.ranks->own();
    of_products::forward(product);
    const T* const sums = o.ranks->add_up(long(o.count) * out.size());
    T* y = o.y;
    for (long n = 0; n < o.count; ++n, y += out.size())
      for (int i = 0; i < out.size(); ++i) y[i] = sums[n * out.size() + i] + (has_bias ? o.w[1][i] : T{});
  }

  static void backward(const operands<T>& o) {
    operands<T> all = of_own_columns(o);
    const bool sends = !IsPart && o.dx[0];
    if (sends) all.dx[0] = o.ranks->own();
    if (sends && o.adds_dx[0]) take_columns(o.dx[0], o.count, In.last(), o.ranks->rank() * part.last(), part.last(), all.dx[0]);
    of_gradients::backward(all);
    if (!sends) return;
    const T* const parts = o.ranks->gather(long(o.count) * part.last());
    join_columns(parts, o.ranks->size(), o.count, part.last(), In.last(), o.dx[0]);
  }

  static void derive(const T* const* w, T* derived) { both::derive_both(w, w, derived); }

 private:
  static operands<T> of_own_columns(const operands<T>& o) {
    operands<T> own = o;
    if constexpr (!IsPart) {
      T* const x = memory::own(o);
      take_columns(o.x[0], o.count, In.last(), o.ranks->rank() * part.last(), part.last(), x);
      own.x[0] = x;
    }
    return own;
  }
};

/// A table divided by rows. Each number of the batch is the index of a row that one rank has. x + -0 is x, also if that is -0.
template <embedding_settings Part, class T, shape In>
struct look_up_by_rows {
  static void forward(const operands<T>& o) {
    T* const sum = o.ranks->own();
    for_each_number(o, [&](const long* row, long at) {
      if (row)
        std::copy_n(o.w[0] + *row, Part.width, sum + at);
      else
        std::fill_n(sum + at, Part.width, -T{});
    });
    const long elements = long(o.count) * In.size() * Part.width;
    std::copy_n(o.ranks->add_up(elements), elements, o.y);
  }

  /// Gradients of a row are added in the order of the batch.
  static void backward(const operands<T>& o) {
    if (!o.dw[0]) return;
    if (!o.adds_dw) std::fill_n(o.dw[0], long(Part.rows) * Part.width, T{});
    for_each_number(o, [&](const long* row, long at) {
      for (int i = 0; row && i < Part.width; ++i) o.dw[0][*row + i] += o.dy[at + i];
    });
  }

 private:
  /// Calls f(offset of the row in this rank's part, or null if another rank has it; its offset in y or dy).
  template <class F>
  static void for_each_number(const operands<T>& o, F&& f) {
    const long first = long(o.ranks->rank()) * Part.rows, numbers = long(o.count) * In.size();
    for (long i = 0; i < numbers; ++i) {
      const long row = (long(o.x[0][i]) - first) * Part.width;
      f(row >= 0 && row < long(Part.rows) * Part.width ? &row : nullptr, i * Part.width);
    }
  }
};
}  // namespace detail

namespace core {
template <class Base, class Operation, int Ranks, bool Gathers, bool Descends, class P, shape In>
struct kernel<tensor_backend<Base>, columns_of_rank<Operation, Ranks, Gathers, Descends>, P, In>
    : detail::kernel_by_columns<Base, columns_of_rank<Operation, Ranks, Gathers, Descends>, P, In, Gathers> {};

template <class Base, class Operation, int Ranks, bool IsPart, bool Descends, class P, shape In>
struct kernel<tensor_backend<Base>, rows_of_rank<Operation, Ranks, IsPart, Descends>, P, In>
    : detail::kernel_by_rows<Base, rows_of_rank<Operation, Ranks, IsPart, Descends>, P, In, IsPart> {};

template <class Base, embedding_settings S, int Ranks, bool IsPart, bool Descends, class P, shape In>
struct kernel<tensor_backend<Base>, rows_of_rank<lookup<S>, Ranks, IsPart, Descends>, P, In>
    : detail::look_up_by_rows<rows_of_rank<lookup<S>, Ranks, IsPart, Descends>::part, typename P::value_type, In> {};
}  // namespace core

}  // namespace strata
