// Several steps in one call of a module: a loop on the device around the function of a step.
#pragma once
#include <strata/base/linkage.hpp>
#include <strata/xla/emitter/graph.hpp>
#include <string>

namespace strata::stablehlo::detail {

/// The module that computes `steps` steps, one after the other. `one`: of a training step, whose text is the function @one_step
/// alone. Each of its arguments and results has one more extent, the steps, except for parameters and slots, which a step gets
/// from the step before: such a result has an argument that is donated to it. attributes: of the module. Throws
/// strata_error.
module_text in_a_loop(const module_text& one, int steps, const std::string& attributes);

}  // namespace strata::stablehlo::detail

#if STRATA_DEFINES
#include <strata/xla/emitter/loop.ipp>
#endif
