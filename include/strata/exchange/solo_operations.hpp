// The process group of a synchronous executor that is alone. Between processes: collective_operations.hpp.
#pragma once
#include <cstddef>
#include <span>
#include <strata/concepts/communicator.hpp>
#include <strata/concepts/process_group.hpp>
#include <strata/program/plan.hpp>

namespace strata::core {

template <class Self, communicator Communicator>
class collective_operations;

/// One process: nothing to send.
template <class Self>
class collective_operations<Self, detail::alone> {
 protected:
  static constexpr bool among_processes = false, may_be_elastic = false;
  using connections = detail::alone;

 public:
  solo_group& group() { return group_; }
  const solo_group& group() const { return group_; }
  static constexpr double communicating() { return 0; }
  static constexpr double waiting() { return 0; }
  static constexpr bool is_elastic() { return false; }

 protected:
  explicit collective_operations(detail::alone) {}

  [[no_unique_address]] detail::alone processes_;

  template <class Operation>
  static void together(std::span<std::byte>, Operation&& operation) {
    operation();
  }
  static void announce_operation() {}
  static constexpr bool may_prepare_messages(int, purpose) { return true; }
  static constexpr int first_size(detail::alone) { return 1; }
  static std::span<std::byte> bytes_of(auto& one) { return std::as_writable_bytes(std::span(&one, 1)); }

 private:
  solo_group group_;
};

}  // namespace strata::core
