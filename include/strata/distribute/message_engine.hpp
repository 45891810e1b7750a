// Another library that carries the messages of multi_worker_mirrored, where a program includes its header.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <strata/distribute/communication_options.hpp>
#include <strata/distribute/wait_state.hpp>

namespace strata::detail {

/// What a communicator does, from and into any memory that stays where it is.
struct message_engine {
  virtual ~message_engine() = default;
  virtual int machine_of(int rank) const = 0;
  virtual void send(std::byte* from, std::size_t bytes, int to) = 0;
  virtual void receive(std::byte* to, std::size_t bytes, int from) = 0;
  virtual std::uint64_t begun() const = 0;
  virtual void wait_received(const char* what, std::uint64_t mark) = 0;
  virtual void wait(const char* what) = 0;
};

/// For process `rank` of `size`; throws communication_error if the library numbers them otherwise.
using make_message_engine = std::unique_ptr<message_engine> (*)(int rank, int size, std::chrono::milliseconds timeout,
                                                                std::shared_ptr<wait_state> waits);
/// strata/distribute/mpi.hpp sets it.
inline make_message_engine make_mpi_engine = nullptr;

}  // namespace strata::detail
