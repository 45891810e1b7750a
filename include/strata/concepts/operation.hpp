// An operation is the unit that kernels implement: its output shape for given input shapes, and its parameters.
#pragma once
#include <array>
#include <concepts>
#include <span>
#include <strata/base/reason.hpp>
#include <strata/base/shape.hpp>
#include <strata/concepts/initializer.hpp>

namespace strata {

/// Inputs of one operation, parameters of one operation, parameters of a fused group.
inline constexpr int max_inputs = 8, max_parameters = 4, max_group_parameters = 12;

/// Penalty l1 * sum |w| + l2 * sum w^2, added to the loss.
struct penalty {
  double l1 = 0, l2 = 0;
  constexpr bool empty() const { return l1 == 0 && l2 == 0; }
};

/// Which numbers an operation makes, or a loss takes, as far as it is known.
enum class value_range {
  unknown,
  those_of_its_input,
  real,          // any number
  from_0_to_1,   // a probability per element
  distribution,  // probabilities along the last axis that add up to 1
};

/// One tensor that an operation owns.
struct parameter {
  const char* name = nullptr;
  shape extents{};
  const initializer_info* start = nullptr;
  /// False for state, such as moving statistics: it is saved like a weight, but not trained.
  bool trainable = true;
  penalty regularizer{};
  /// It is not trainable only because its layer is frozen.
  bool frozen = false;
};

namespace detail {
template <class Op>
inline constexpr bool has_parameters_in_an_array = true;
template <class Op>
  requires requires(shape in) { Op::parameters(in); }
inline constexpr bool has_parameters_in_an_array<Op> = requires(shape in, parameter one) {
  Op::parameters(in).size();
  one = Op::parameters(in)[0];
};
}  // namespace detail

/// Has one input or, for a join, several. Optional members:
///   `parameters(shape in)` -> std::array<parameter, N>
///   `static constexpr bool whole_batch = true`  it needs statistics of the whole global batch (batch normalisation)
///   `static constexpr bool folds = true`        in inference a kernel may compute it together with the operation before it
///   `using when_frozen = ...`                   what it is in a frozen layer, if not itself (frozen_operation)
///   `static constexpr bool is_view = true`      the output is the input's memory under another shape
///   `static constexpr bool only_trains = true`  in inference it is the identity (dropout)
///   `static constexpr bool elementwise = true`  an element of the output depends only on that element of the input (sigmoid)
///   `static constexpr bool over_last_axis = true`  a row along the last axis depends only on that row of the input (softmax)
///   `static constexpr bool shares_kernel = true`  computed by one kernel with the operation before it, its gradients may have
///                                               other bits than computed by two (max pooling)
///   `static constexpr value_range makes`        which numbers it makes; of views and dropout those of its input
///   `static constexpr value_range takes`        which numbers a loss takes; the trainer refuses a network that makes others
///   `static constexpr label_kind labels`        it is a loss: an output of the network ends with it (loss_function)
///   `static constexpr long multiply_adds(shape in)`  how many it needs for a sample; profiles derive rates from it
///   `template <shape In> using computed_as = ...`  the operation whose kernels compute it for inputs of that shape, with the
///   same
///                                               elements of parameters (a depthwise convolution, as one with groups)
///   `static constexpr bool looks_up = true`     the values of the batch are row indices of its one parameter (embedding)
///   `static constexpr int first_column`         the output is some columns of the input, the last axis, from this one on
template <class Op>
concept operation = requires {
  { Op::name } -> std::convertible_to<const char*>;
} && detail::has_parameters_in_an_array<Op> && (requires(shape one) { { Op::output_shape(one) } -> std::convertible_to<expected_shape>; } ||
      requires(std::span<const shape> many) { { Op::output_shape(many) } -> std::convertible_to<expected_shape>; });

inline constexpr reason operations_have_a_name{"an operation has a static member name"};
inline constexpr reason operations_have_output_shape_of_the_shape_of_their_input{
    "an operation has output_shape(shape), and a join output_shape(std::span<const shape>), which return an expected_shape"};

inline constexpr reason operations_have_parameters_in_a_std_array{
    "parameters(shape) of an operation returns a std::array of parameter"};

namespace detail {
template <class T>
concept named = requires {
  { T::name } -> std::convertible_to<const char*>;
};

template <class Op>
constexpr const reason& why_no_operation() {
  if constexpr (!named<Op>)
    return operations_have_a_name;
  else if constexpr (!has_parameters_in_an_array<Op>)
    return operations_have_parameters_in_a_std_array;
  else
    return operations_have_output_shape_of_the_shape_of_their_input;
}
/// The member that an incomplete operation lacks.
template <class Op>
inline constexpr const reason& lacking_of_operation = why_no_operation<Op>();
}  // namespace detail

namespace detail {
template <class Op>
concept is_case_of_another = requires { typename Op::template computed_as<shape{1, 1, 1}>; };
template <class Op, shape In>
struct computed_operation {
  using type = Op;
};
template <is_case_of_another Op, shape In>
struct computed_operation<Op, In> {
  using type = typename Op::template computed_as<In>;
};
}  // namespace detail

/// The operation whose kernels compute this one for inputs of that shape: mostly itself.
template <class Op, shape In>
using computed_operation_t = typename detail::computed_operation<Op, In>::type;

template <class Op>
constexpr auto parameters_of(shape in) {
  if constexpr (requires { Op::parameters(in); })
    return Op::parameters(in);
  else
    return std::array<parameter, 0>{};
}

/// An operation with its type erased: what the constexpr passes read.
struct operation_info {
  const char* name;
  expected_shape (*output_shape)(std::span<const shape>);
  int (*parameters)(shape in, parameter* out);  // returns how many
  long (*multiply_adds)(shape in);              // null: not known, or none
  bool whole_batch, folds, is_view, only_trains, looks_up, elementwise, over_last_axis, shares_kernel, is_loss;
  value_range makes, takes;
  int first_column;  // -1: it is no slice of columns
};

namespace detail {
template <class Op>
inline constexpr bool is_whole_batch = requires { requires Op::whole_batch; };
template <class Op>
inline constexpr bool is_folding = requires { requires Op::folds; };
template <class Op>
inline constexpr bool is_view_operation = requires { requires Op::is_view; };
template <class Op>
inline constexpr bool is_only_for_training = requires { requires Op::only_trains; };
template <class Op>
inline constexpr bool is_look_up = requires { requires Op::looks_up; };
template <class Op>
inline constexpr bool is_elementwise = requires { requires Op::elementwise; };
template <class Op>
inline constexpr bool is_over_last_axis = requires { requires Op::over_last_axis; };
template <class Op>
inline constexpr bool is_sharing_kernel = requires { requires Op::shares_kernel; };
template <class Op>
inline constexpr bool is_loss_operation = requires { Op::labels; };

template <class Op>
constexpr value_range range_made_by() {
  if constexpr (requires { Op::makes; })
    return Op::makes;
  else
    return is_view_operation<Op> || is_only_for_training<Op> ? value_range::those_of_its_input : value_range::unknown;
}
template <class Op>
constexpr value_range range_taken_by() {
  if constexpr (requires { Op::takes; })
    return Op::takes;
  else
    return value_range::unknown;
}

template <class Op>
constexpr int first_column_of() {
  if constexpr (requires { Op::first_column; })
    return Op::first_column;
  else
    return -1;
}

template <class Op>
constexpr expected_shape output_shape_of(std::span<const shape> in) {
  if constexpr (requires { Op::output_shape(in); })
    return Op::output_shape(in);
  else
    return Op::output_shape(in.empty() ? shape{} : in[0]);
}

template <class Op>
constexpr auto multiply_adds_of() -> long (*)(shape) {
  if constexpr (requires(shape in) { Op::multiply_adds(in); })
    return [](shape in) -> long { return Op::multiply_adds(in); };
  else
    return nullptr;
}

template <class Op>
constexpr int write_parameters_of(shape in, parameter* out) {
  const auto owned = parameters_of<Op>(in);
  static_assert(owned.size() <= max_parameters);
  for (int i = 0; i < int(owned.size()); ++i) out[i] = owned[std::size_t(i)];
  return int(owned.size());
}
}  // namespace detail

/// An incomplete operation refuses every shape.
template <class Op>
inline constexpr operation_info info_of = {
    .name = "",
    .output_shape = [](std::span<const shape>) -> expected_shape { return detail::lacking_of_operation<Op>; },
};
template <operation Op>
inline constexpr operation_info info_of<Op> = {
    .name = Op::name,
    .output_shape = detail::output_shape_of<Op>,
    .parameters = detail::write_parameters_of<Op>,
    .multiply_adds = detail::multiply_adds_of<Op>(),
    .whole_batch = detail::is_whole_batch<Op>,
    .folds = detail::is_folding<Op>,
    .is_view = detail::is_view_operation<Op>,
    .only_trains = detail::is_only_for_training<Op>,
    .looks_up = detail::is_look_up<Op>,
    .elementwise = detail::is_elementwise<Op>,
    .over_last_axis = detail::is_over_last_axis<Op>,
    .shares_kernel = detail::is_sharing_kernel<Op>,
    .is_loss = detail::is_loss_operation<Op>,
    .makes = detail::range_made_by<Op>(),
    .takes = detail::range_taken_by<Op>(),
    .first_column = detail::first_column_of<Op>(),
};

}  // namespace strata
