// input_gradient_program: a program that computes the gradients of its losses with respect to its inputs.
#pragma once
#include <strata/network/tape.hpp>

namespace strata {

namespace core {
/// The identity, in place of an operation that only trains, such as dropout.
struct no_operation {
  static constexpr auto name = "no_operation";
  static constexpr operation_traits traits{.is_view = true, .elementwise = true, .makes = value_range::those_of_its_input};
  static constexpr expected_shape output_shape(shape in) { return in; }
};
}  // namespace core

namespace detail {
/// The operation that predictions use in place of `Operation`, with gradients.
template <class Operation>
struct predicting_operation : frozen_operation<Operation> {};
template <class Operation>
  requires(info_of<Operation>.traits.only_trains)
struct predicting_operation<Operation> {
  using type = no_operation;
};

/// The items of a program with the operations that predictions use: batch_norm uses its moving statistics, and there is no
/// dropout. The parameters are those of the items, at the same places of the arena.
template <class Items>
struct predicting {};
template <class Items>
struct structure<predicting<Items>> {
  using replaced = replaced_operations<predicting_operation, typename structure<Items>::types>;
  using types = typename replaced::types;

  static constexpr int record(recorder& r, int in) {
    const int out = structure<Items>::record(r, in);
    if (!r.failed->happened()) replaced::replace_in(r.nodes);
    return out;
  }
};
}  // namespace detail

namespace core {
/// A program whose plan computes gradients of inputs, a bit of Inputs for each, and none of parameters. The gradient of a sample
/// is that of its own loss, so it needs no reduction.
template <class Program, unsigned Inputs>
struct input_gradient_program : Program {
  using items = detail::predicting<typename Program::items>;
  static constexpr unsigned wanted_inputs = Inputs;
};

/// Computes such a program on the host; defined in cpu/engine/input_gradients.hpp.
template <class Program>
class input_gradient_engine;
}  // namespace core

}  // namespace strata
