// The synchronous strategy over any communicator.
#pragma once
#include <strata/base/meta.hpp>
#include <strata/base/refused_arguments.hpp>
#include <strata/concepts/communicator.hpp>
#include <strata/exchange/zero/sharding_verdict.hpp>
#include <strata/synchronous/among_processes.hpp>
#include <utility>

namespace strata {

/// Each process passes its own end of the communicator and reads the same batches; it computes its share of the leaves.
template <class Communicator, class Backend = core::default_backend, class Sharding = zero<0>>
struct synchronous_among {
  static_assert(detail::diagnosed<typename detail::communicator_verdict<Communicator>::type>[0]);
  using backend = Backend;
  static constexpr auto name = "synchronous_among";
  Communicator processes;
  typename core::engine_options<Backend>::type options{};
  communication_options communication{};  // how gradients are sent. Its timeout is not used: the communicator has its own
  [[no_unique_address]] Sharding sharding{};

  template <class Program>
  using executor = core::synchronous_executor<Program, typename Sharding::template backend<Backend>, Communicator, Sharding>;
  template <class Program>
  using verdict = detail::sharding_verdict<Program, typename Sharding::template backend<Backend>, Sharding>;

  template <class Program>
  executor<Program> make(typename Program::optimizer optimizer, std::uint64_t seed) const {
    return {std::move(optimizer), seed, options, processes, communication};
  }
};

template <class C>
synchronous_among(C) -> synchronous_among<C>;
template <class C>
synchronous_among(C, compute_options) -> synchronous_among<C>;
template <class C>
synchronous_among(C, compute_options, communication_options) -> synchronous_among<C>;
template <class C, int Stage>
synchronous_among(C, compute_options, communication_options, zero<Stage>)
    -> synchronous_among<C, core::default_backend, zero<Stage>>;

}  // namespace strata

#include <strata/distribute/synchronous_among.ipp>
