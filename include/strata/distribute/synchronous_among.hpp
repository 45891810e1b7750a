// The synchronous strategy over any communicator: for those who bring their own.
#pragma once
#include <strata/concepts/communicator.hpp>
#include <strata/distribute/synchronous/synchronous.hpp>
#include <utility>

namespace strata {

/// Each process calls it with its own end of the communicator and reads the same batches; each computes its share of the leaves.
template <communicator Communicator, class Backend = cpu>
struct synchronous_among {
  static constexpr auto name = "synchronous_among";
  Communicator processes;
  compute_options options{};
  communication_options communication{};  // how gradients are sent; the communicator has a time-out of its own

  template <class Program>
  using executor = synchronous_executor<Program, Backend, Communicator>;

  template <class Program>
  executor<Program> make(typename Program::optimizer optimizer, std::uint64_t seed) const {
    return {std::move(optimizer), seed, options, processes, communication};
  }
};
template <class C>
synchronous_among(C, compute_options, communication_options) -> synchronous_among<C>;
template <class C>
synchronous_among(C, compute_options) -> synchronous_among<C>;
template <class C>
synchronous_among(C) -> synchronous_among<C>;

}  // namespace strata
