// Operations whose parameters are divided among ranks. Ranks exchange outputs, or sums, and gradients of inputs.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <strata/layers/conv2d.hpp>
#include <strata/layers/dense.hpp>
#include <strata/layers/embedding.hpp>
#include <type_traits>

namespace strata {

namespace core {
/// How an operation is divided. An operation that can be divided specialises it:
///   `columns`         the last extent of its output, of which each rank computes a part
///   `part<N>`         the operation that computes the N-th part of it
///   `input_gradient`  the operation with which a rank computes the gradient of a part of the channels of the input from that of
///                     the whole output; void: the input has no gradient
///   `by_rows`         optional: whether each rank may have a part of the rows of its parameters instead. Then there is a
///                     rows_of_rank of it; that of dense layers takes `part<1>` and `input_gradient`, which differ in the bias
///   `by_classes`      optional: whether a network of classes may end with it and leave its output divided
template <class Operation>
struct division_of;

template <class Operation>
concept divisible = requires { division_of<Operation>::columns; };
template <class Operation>
concept divisible_by_rows = divisible<Operation> && division_of<Operation>::by_rows;
template <class Operation>
concept divisible_by_classes = divisible<Operation> && division_of<Operation>::by_classes;

template <dense_settings S>
struct division_of<affine<S>> {
  static constexpr int columns = S.units;
  static constexpr bool by_rows = true, by_classes = true;
  template <int N>
  using part = affine<dense_settings{S.units / N, S.bias}>;
  using input_gradient = affine<dense_settings{S.units, false}>;
};

template <conv_settings S>
  requires(S.groups == 1)
struct division_of<convolution<S>> {
 private:
  static constexpr conv_settings with(int filters, bool bias) {
    conv_settings s = S;
    s.filters = filters, s.bias = bias;
    return s;
  }

 public:
  static constexpr int columns = S.filters;
  template <int N>
  using part = convolution<with(S.filters / N, S.bias)>;
  using input_gradient = convolution<with(S.filters, false)>;
};

template <embedding_settings S>
struct division_of<lookup<S>> {
  static constexpr int columns = S.width;
  static constexpr bool by_rows = true;
  template <int N>
  using part = lookup<embedding_settings{S.rows, S.width / N}>;
  using input_gradient = void;
};
}  // namespace core

/// Parameter k of a divided operation is a part of parameter `of` of the whole one, along `axis`; -1: it is whole.
struct shard {
  int of = 0, axis = -1;
  bool is_copy = false;  // another rank has these elements in a trained parameter
};

namespace detail {
/// The extent of a rank's part of an axis: equal parts, rounded up. The last ranks may have fewer.
constexpr int part_of_axis(int extent, int ranks) { return (extent + ranks - 1) / ranks; }
constexpr shape with_last(shape s, int last) {
  s[s.rank() - 1] = last;
  return s;
}
}  // namespace detail

namespace core {
/// Each rank has a part of the columns of the parameters, and computes that part of the last extent of the output. If Gathers,
/// all ranks then receive the whole output. Its gradient is also whole, so a rank computes the gradient of a part of the input
/// with the sums in the order of the whole operation; for that, if Descends, it has a copy of the weights of this part of the
/// input for all columns, which ranks exchange after each update. Otherwise the output stays divided, and the gradient of the
/// input is a sum over ranks.
template <class Operation, int Ranks, bool Gathers, bool Descends>
struct columns_of_rank {
  using whole = Operation;
  using division = division_of<Operation>;
  using part = typename division::template part<Ranks>;
  using input_gradient = std::conditional_t<Gathers && Descends, typename division::input_gradient, void>;
  static constexpr bool has_copy = !std::is_void_v<input_gradient>;
  static constexpr auto name = Operation::name;
  static constexpr operation_traits traits{.looks_up = traits_of<Operation>.looks_up, .makes = traits_of<Operation>.makes};

  static constexpr expected_shape output_shape(shape in) {
    const expected_shape whole = Operation::output_shape(in);
    return whole.refused || Gathers ? whole : detail::with_last(whole.value, whole.value.last() / Ranks);
  }
  static constexpr shape part_of_input(shape in) { return detail::with_last(in, detail::part_of_axis(in.last(), Ranks)); }
  static constexpr auto parameters(shape in) {
    constexpr std::size_t own = std::tuple_size_v<decltype(part::parameters(shape{}))>;
    std::array<parameter, own + has_copy> all;
    std::ranges::copy(part::parameters(in), all.begin());
    if constexpr (has_copy)
      all[own] = {.name = "input_kernel",
                  .extents = input_gradient::parameters(part_of_input(in))[0].extents,
                  .start = &info_of_initializer<zeros>,
                  .trainable = false};
    return all;
  }
  static constexpr shard shard_of(int k, shape extents) {
    const bool is_copy = has_copy && k == int(std::tuple_size_v<decltype(part::parameters(shape{}))>);
    return is_copy ? shard{0, extents.rank() - 2, true} : shard{k, extents.rank() - 1};
  }
  static constexpr long multiply_adds(shape in) {
    if constexpr (requires { part::multiply_adds(in); })
      return part::multiply_adds(in);
    else
      return 0;
  }
  /// Elements per sample that a rank sends in one exchange: its part of the output, or of the gradient of the input.
  static constexpr long sends_forward(shape in) { return Gathers ? part::output_shape(in).value.size() : 0; }
  static constexpr long sends_backward(shape in) {
    if constexpr (!Descends)
      return 0;
    else
      return !Gathers ? in.size() : has_copy ? part_of_input(in).size() : 0;
  }
};

/// Each rank has a part of the rows of the kernel, and multiplies them with that part of the input. If IsPart, it receives only
/// this part. The output is the sum over ranks, in their order. The bias is whole.
template <class Operation, int Ranks, bool IsPart, bool Descends>
struct rows_of_rank {
  using without_bias = typename division_of<Operation>::input_gradient;
  using with_bias = typename division_of<Operation>::template part<1>;
  static constexpr auto name = Operation::name;
  static constexpr operation_traits traits{.makes = traits_of<Operation>.makes};

  static constexpr expected_shape output_shape(shape in) { return Operation::output_shape(in); }
  static constexpr shape part_of_input(shape in) { return IsPart ? in : detail::with_last(in, in.last() / Ranks); }
  static constexpr auto parameters(shape in) { return with_bias::parameters(part_of_input(in)); }
  static constexpr shard shard_of(int k, shape) { return k == 0 ? shard{0, 0} : shard{k, -1}; }
  static constexpr long multiply_adds(shape in) { return with_bias::multiply_adds(part_of_input(in)); }
  static constexpr long sends_forward(shape in) { return output_shape(in).value.size(); }
  static constexpr long sends_backward(shape in) { return IsPart || !Descends ? 0 : part_of_input(in).size(); }
};

/// Each rank has a part of the rows of the table (the last ranks may have fewer), and looks up those. The output is the sum over
/// ranks, in which all but one of the summands are -0, so it has the bits of the whole operation.
template <embedding_settings S, int Ranks, bool IsPart, bool Descends>
struct rows_of_rank<lookup<S>, Ranks, IsPart, Descends> {
  static constexpr embedding_settings part{detail::part_of_axis(S.rows, Ranks), S.width};
  static constexpr auto name = lookup<S>::name;
  static constexpr operation_traits traits{.looks_up = true};

  static constexpr expected_shape output_shape(shape in) { return lookup<S>::output_shape(in); }
  static constexpr auto parameters(shape in) { return lookup<part>::parameters(in); }
  static constexpr shard shard_of(int, shape) { return {0, 0}; }
  static constexpr long sends_forward(shape in) { return output_shape(in).value.size(); }
  static constexpr long sends_backward(shape) { return 0; }
};

/// Each rank has the columns of a part of the classes. The output is that of the whole operation, but it is read by the loss
/// only, and a rank stores only its classes. The gradient of the input is a sum over ranks.
template <class Operation, int Ranks, bool Descends>
struct classes_of_rank {
  using part = typename division_of<Operation>::template part<Ranks>;
  static constexpr auto name = Operation::name;
  static constexpr operation_traits traits{.makes = traits_of<Operation>.makes};
  static constexpr int classes = division_of<Operation>::columns / Ranks;

  static constexpr expected_shape output_shape(shape in) { return Operation::output_shape(in); }
  static constexpr auto parameters(shape in) { return part::parameters(in); }
  static constexpr shard shard_of(int k, shape extents) { return {k, extents.rank() - 1}; }
  static constexpr long multiply_adds(shape in) { return part::multiply_adds(in); }
  /// The largest logit, the sum of exponentials and the loss.
  static constexpr long sends_forward(shape) { return 3; }
  static constexpr long sends_backward(shape in) { return Descends ? in.size() : 0; }
};
}  // namespace core

namespace detail {
/// A divided operation with its type erased.
struct division_info {
  shard (*shard_of)(int, shape) = nullptr;
  long (*sends_forward)(shape) = nullptr, (*sends_backward)(shape) = nullptr;
  bool adds_up_forward = false, adds_up_backward = false;
  int classes = 0;  // classes of a rank that stores only its part of the output

  constexpr const char* how() const { return classes > 0 ? "by classes" : adds_up_forward ? "by rows" : "by columns"; }
};
template <class Operation>
inline constexpr division_info division_info_of{};
template <class Operation, int Ranks, bool Gathers, bool Descends>
inline constexpr division_info division_info_of<columns_of_rank<Operation, Ranks, Gathers, Descends>> = [] {
  using op = columns_of_rank<Operation, Ranks, Gathers, Descends>;
  return division_info{op::shard_of, op::sends_forward, op::sends_backward, false, !Gathers};
}();
template <class Operation, int Ranks, bool IsPart, bool Descends>
inline constexpr division_info division_info_of<rows_of_rank<Operation, Ranks, IsPart, Descends>> = [] {
  using op = rows_of_rank<Operation, Ranks, IsPart, Descends>;
  return division_info{op::shard_of, op::sends_forward, op::sends_backward, true, false};
}();
template <class Operation, int Ranks, bool Descends>
inline constexpr division_info division_info_of<classes_of_rank<Operation, Ranks, Descends>> = [] {
  using op = classes_of_rank<Operation, Ranks, Descends>;
  return division_info{op::shard_of, op::sends_forward, op::sends_backward, false, true, op::classes};
}();
}  // namespace detail

}  // namespace strata
