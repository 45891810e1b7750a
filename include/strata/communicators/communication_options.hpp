// How gradients travel between the processes of a synchronous strategy.
#pragma once
#include <concepts>
#include <cstddef>
#include <memory>
#include <strata/base/namespaces.hpp>
#include <strata/base/standard_clock.hpp>

namespace strata {

namespace detail {
struct message_engine;
struct engine_arguments;
}  // namespace detail

/// The transport of messages between processes. `communication_implementation::automatic` is shared memory on one machine and TCP
/// between machines, `communication_implementation::tcp` is TCP everywhere. `mpi_communication` needs the header
/// strata/communicators/mpi.hpp.
/// https://www.tensorflow.org/api_docs/python/tf/distribute/experimental/CommunicationImplementation
struct communication_implementation {
  const char* description;  // for messages; empty: automatic
  bool shared_memory = false;
  bool elastic = true;  // whether it survives the loss of a process
  /// Makes what carries all messages of a process; null: shared memory and TCP.
  std::unique_ptr<detail::message_engine> (*make_engine)(const detail::engine_arguments&) = nullptr;

  static const communication_implementation automatic, tcp;
};
inline constexpr communication_implementation communication_implementation::automatic{.description = "", .shared_memory = true};
inline constexpr communication_implementation communication_implementation::tcp{.description = "all over TCP"};

namespace detail {
/// An implementation that a header of its own defines, as a specialisation of `Header` for communication_implementation. If the
/// header is not included, the error is the name of the template.
template <template <class> class Header>
struct implementation_of_header {
  template <std::same_as<communication_implementation> Implementation>
  constexpr operator Implementation() const {
    return Header<Implementation>().value;
  }
};
}  // namespace detail

namespace core {
template <class Implementation>
struct please_include_strata_communicators_mpi_hpp;
}  // namespace core

/// The MPI that has started the processes, for all messages.
inline constexpr detail::implementation_of_header<core::please_include_strata_communicators_mpi_hpp> mpi_communication{};

/// tf.distribute.experimental.CommunicationOptions
/// https://www.tensorflow.org/api_docs/python/tf/distribute/experimental/CommunicationOptions
struct communication_options {
  /// Gradients are sent in packs of whole layers, the last layers first, as soon as the backward has completed that many bytes.
  /// 0: the default of strata. The bits of the sums do not depend on it.
  std::size_t bytes_per_pack = 0;
  /// The time limit of each wait, and of a connection.
  std::chrono::milliseconds timeout = std::chrono::seconds(30);
  communication_implementation implementation = communication_implementation::automatic;
  /// Messages are rounded to bfloat16: half the bytes. The rounding errors are added in the next step (error feedback).
  /// All processes still have the same parameters, but not the bits of one process.
  bool bf16_gradients = false;
  /// Gradients travel without encryption although the training has a secret or certificates. MPI cannot encrypt: with
  /// it this has to be set.
  bool unprotected_data = false;
};

}  // namespace strata
