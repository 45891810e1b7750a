// How gradients travel between the processes of a synchronous strategy.
#pragma once
#include <chrono>
#include <cstddef>

namespace strata {

/// tf.distribute.experimental.CommunicationImplementation
/// https://www.tensorflow.org/api_docs/python/tf/distribute/experimental/CommunicationImplementation
enum class communication_implementation {
  automatic,  // shared memory where it reaches, TCP elsewhere
  tcp,        // TCP for everybody
  gloo,       // Gloo for everybody: include strata/distribute/communicators/gloo.hpp
  mpi         // the MPI that has started the processes: include strata/distribute/communicators/mpi.hpp; not elastic
};

/// tf.distribute.experimental.CommunicationOptions
/// https://www.tensorflow.org/api_docs/python/tf/distribute/experimental/CommunicationOptions
struct communication_options {
  /// Gradients are sent in packs of whole layers, the last layers first, as soon as the backward has completed that many bytes.
  /// 0: the default of strata. The bits of the sums do not depend on it.
  std::size_t bytes_per_pack = 0;
  /// For each wait, and for a connection.
  std::chrono::milliseconds timeout = std::chrono::seconds(30);
  communication_implementation implementation = communication_implementation::automatic;
  /// What is sent is rounded to bfloat16: half the bytes. What rounding takes away is added in the next step (error feedback). All
  /// processes still have the same parameters, but no longer the bits of one process.
  bool bf16_gradients = false;
};

}  // namespace strata
