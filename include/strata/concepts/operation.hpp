// An operation is the unit that kernels implement: its output shape for given input shapes, and its parameters.
#pragma once
#include <array>
#include <concepts>
#include <span>
#include <strata/base/reason.hpp>
#include <strata/base/shape.hpp>
#include <strata/concepts/initializer.hpp>

namespace strata {

namespace core {
/// Inputs of one operation, parameters of one operation, parameters of a fused group.
inline constexpr int max_inputs = 8, max_parameters = 4, max_group_parameters = 12;

/// Penalty l1 * sum |w| + l2 * sum w^2, added to the loss.
struct penalty {
  double l1 = 0, l2 = 0;
  constexpr bool empty() const { return l1 == 0 && l2 == 0; }
};

/// Which elements an operation makes, or a loss takes, as far as it is known.
enum class value_range {
  unknown,
  those_of_its_input,
  real,          // any value
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
  /// True if it is not trainable only because its layer is frozen.
  bool frozen = false;
};
}  // namespace core

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

namespace core {
/// What is known of an operation besides its shapes. It names what differs from the defaults, which are always safe:
/// `static constexpr operation_traits traits{.elementwise = true};`
struct operation_traits {
  bool whole_batch = false;     // it needs statistics of the whole global batch (batch normalisation)
  bool folds = false;           // in inference a kernel may compute it together with the operation before it
  bool is_view = false;         // the output is the input's memory under another shape
  bool only_trains = false;     // in inference it is the identity (dropout)
  bool elementwise = false;     // an element of the output depends only on that element of the input (sigmoid)
  bool over_last_axis = false;  // a row along the last axis depends only on that row of the input (softmax)
  bool shares_kernel = false;   // computed by one kernel with the operation before it, its gradients may have other bits than
                                // computed by two (max pooling)
  bool looks_up = false;        // the values of the batch are row indices of its one parameter (embedding)
  int first_column = -1;        // the output is some columns of the input, the last axis, from this one on
  value_range makes = value_range::unknown;  // which elements it makes
  value_range takes = value_range::unknown;  // which elements a loss takes; the trainer refuses a network that makes others
  bool is_mean_of_elements = false;  // of a loss: its value is a mean over elements, each of which XLA and GPUs compute by itself
};

/// An operation has one input or, if it is a join, several. Optional members:
///   `static constexpr operation_traits traits`
///   `parameters(shape in)` -> std::array<parameter, N>
///   `using when_frozen = ...`                   its replacement in a frozen layer, if any (frozen_operation)
///   `static constexpr label_kind labels`        it is a loss: an output of the network ends with it (loss_function)
///   `static constexpr long multiply_adds(shape in)`  its number for one sample; profiles derive rates from it
///   `template <shape In> using computed_as = ...`  the operation whose kernels compute it for inputs of that shape,
///                                               with the same elements of parameters (a depthwise convolution, as one with
///                                               groups)
template <class Op>
concept operation = requires {
  { Op::name } -> std::convertible_to<const char*>;
} && detail::has_parameters_in_an_array<Op> && (requires(shape one) { { Op::output_shape(one) } -> std::convertible_to<expected_shape>; } ||
      requires(std::span<const shape> many) { { Op::output_shape(many) } -> std::convertible_to<expected_shape>; });
}  // namespace core

namespace reasons {
inline constexpr reason operations_have_a_name{"an operation has a static member name"};
inline constexpr reason operations_have_output_shape_of_the_shape_of_their_input{
    "an operation has output_shape(shape), and a join output_shape(std::span<const shape>), which return an expected_shape"};

inline constexpr reason operations_have_parameters_in_a_std_array{
    "parameters(shape) of an operation returns a std::array of parameter"};
}  // namespace reasons

namespace detail {
template <class T>
concept named = requires {
  { T::name } -> std::convertible_to<const char*>;
};

template <class Op>
constexpr const reason& why_no_operation() {
  if constexpr (!named<Op>)
    return reasons::operations_have_a_name;
  else if constexpr (!has_parameters_in_an_array<Op>)
    return reasons::operations_have_parameters_in_a_std_array;
  else
    return reasons::operations_have_output_shape_of_the_shape_of_their_input;
}
/// The reason that names the member which an incomplete operation lacks.
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

namespace core {
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
}  // namespace core

namespace detail {
/// A trait beside `traits`, where nothing reads it.
template <class Op>
concept has_stray_trait =
    requires { Op::whole_batch; } || requires { Op::folds; } || requires { Op::is_view; } || requires { Op::only_trains; } ||
    requires { Op::elementwise; } || requires { Op::over_last_axis; } || requires { Op::shares_kernel; } ||
    requires { Op::looks_up; } || requires { Op::makes; } || requires { Op::takes; } || requires { Op::is_mean_of_elements; };
template <class Op>
constexpr operation_traits find_traits() {
  static_assert(!has_stray_trait<Op>, "traits of an operation are members of `static constexpr operation_traits traits{...}`");
  if constexpr (requires { Op::traits; })
    return Op::traits;
  else
    return {};
}
}  // namespace detail

namespace core {
/// Those of an operation, or the defaults.
template <class Op>
inline constexpr operation_traits traits_of = detail::find_traits<Op>();

/// An operation with its type erased, for the constexpr passes.
struct operation_info {
  const char* name;
  expected_shape (*output_shape)(std::span<const shape>);
  int (*parameters)(shape in, parameter* out);  // returns their number
  long (*multiply_adds)(shape in);              // null: not known, or none needed
  operation_traits traits;
  bool is_loss;
};
}  // namespace core

namespace detail {
template <class Op>
inline constexpr bool is_loss_operation = requires { Op::labels; };

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

namespace core {
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
    .traits = traits_of<Op>,
    .is_loss = detail::is_loss_operation<Op>,
};
}  // namespace core

}  // namespace strata
