// The training step of a program, compiled for devices that this machine does not have.
#pragma once
#include <strata/base/error.hpp>
#include <strata/train/trainer.hpp>
#include <strata/xla/emitter/emitter.hpp>
#include <strata/xla/pjrt/find_plugin.hpp>
#include <strata/xla/pjrt/topology.hpp>

namespace strata {

/// Compiles the training step of a trainer for batches of `batch_size` on the first `replicas` devices of a topology; 0: all of
/// them. It shows that the program compiles for them, and what XLA thinks that a step costs:
///   compile_step(model, pjrt::topology(pjrt::plugin::load(pjrt::find_plugin("tpu")), "v5e:2x4"), 256).cost["flops"]
/// libtpu needs no TPU for it, but queries a metadata server for a minute unless the environment has TPU_SKIP_MDS_QUERY=1.
/// Throws strata_error and plugin_error.
template <class Program, class Strategy>
pjrt::compiled_ahead compile_step(trainer<Program, Strategy>& model, const pjrt::topology& on, int batch_size, int replicas = 0) {
  if (replicas == 0) replicas = on.devices();
  if (batch_size < 1 || replicas < 1)
    throw_error({"compile_step: a batch of ", batch_size, " samples on ", replicas, " replicas"});
  const int rows = stablehlo::rows_of_replica(batch_size, replicas);
  return on.compile(stablehlo::training_module<Program>(model.executor().optimizer(),
                                                        {.rows = rows,
                                                         .replicas = replicas,
                                                         .is_padded = batch_size % replicas != 0,
                                                         .platform = stablehlo::traits_of_platform(on.platform())}));
}

}  // namespace strata
