// An operation is the unit that kernels implement: what it makes of its inputs' shapes, and which parameters that takes.
#pragma once
#include <array>
#include <concepts>
#include <span>
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

/// One array of numbers that an operation owns.
struct parameter {
  const char* name = nullptr;
  shape extents{};
  const initializer_facts* start = nullptr;
  /// State, such as moving statistics, is kept and saved like a weight, but no optimizer touches it.
  bool trainable = true;
  penalty regularizer{};
};

/// One input, or (a join) several. Optional members:
///   `parameters(shape in)` -> std::array<parameter, N>
///   `static constexpr bool whole_batch = true`  it needs statistics of the whole global batch (batch normalisation)
///   `static constexpr bool is_view = true`      the output is the input's memory under another shape
///   `static constexpr bool only_trains = true`  in inference it is the identity (dropout)
///   `static constexpr bool looks_up = true`     the numbers of the batch name rows of its one parameter (embedding)
template <class Op>
concept operation = requires {
  { Op::name } -> std::convertible_to<const char*>;
} && (requires(shape one) { { Op::output_shape(one) } -> std::convertible_to<expected_shape>; } ||
      requires(std::span<const shape> many) { { Op::output_shape(many) } -> std::convertible_to<expected_shape>; });

template <class Op>
constexpr auto parameters_of(shape in) {
  if constexpr (requires { Op::parameters(in); })
    return Op::parameters(in);
  else
    return std::array<parameter, 0>{};
}

/// An operation with its type erased: what the constexpr passes read.
struct operation_facts {
  const char* name;
  expected_shape (*output_shape)(std::span<const shape>);
  int (*parameters)(shape in, parameter* out);  // returns how many
  bool whole_batch, is_view, only_trains, looks_up;
};

template <operation Op>
inline constexpr operation_facts facts_of = {
    Op::name,
    [](std::span<const shape> in) -> expected_shape {
      if constexpr (requires { Op::output_shape(in); })
        return Op::output_shape(in);
      else
        return Op::output_shape(in.empty() ? shape{} : in[0]);
    },
    [](shape in, parameter* out) {
      const auto owned = parameters_of<Op>(in);
      static_assert(owned.size() <= max_parameters);
      for (int i = 0; i < int(owned.size()); ++i) out[i] = owned[std::size_t(i)];
      return int(owned.size());
    },
    requires { requires Op::whole_batch; }, requires { requires Op::is_view; },
    requires { requires Op::only_trains; }, requires { requires Op::looks_up; }};

}  // namespace strata
