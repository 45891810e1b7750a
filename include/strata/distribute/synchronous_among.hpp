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
  using options_type = typename core::engine_options<Backend>::type;
  Communicator processes;
  options_type options;
  communication_options communication;  // how gradients are sent. Its timeout is not used: the communicator has its own

  explicit synchronous_among(Communicator c, options_type o = {}, communication_options sent = {}, Sharding = {})
      : processes(std::move(c)), options(std::move(o)), communication(std::move(sent)) {}
  template <class First, class... Given>
    requires(!std::is_convertible_v<First, options_type>)
  synchronous_among(const Communicator& c, const First&, const Given&...) : processes(c) {
    static_assert(
        detail::diagnosed<detail::refused_with<
            reasons::synchronous_among_takes_a_communicator_compute_options_communication_options_and_zero_in_this_order,
            Communicator, First, Given...>>[0]);
  }

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
