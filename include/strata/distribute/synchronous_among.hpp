// The synchronous strategy over any communicator.
#pragma once
#include <strata/base/meta.hpp>
#include <strata/base/refused_arguments.hpp>
#include <strata/concepts/communicator.hpp>
#include <strata/distribute/one_device.hpp>
#include <strata/exchange/zero/sharding_verdict.hpp>
#include <strata/synchronous/among_processes.hpp>
#include <type_traits>
#include <utility>

namespace strata {

/// Each process passes its own end of the communicator and reads the same batches; it computes its share of the leaves.
template <class Communicator, class Backend = default_backend, class Sharding = zero<0>>
struct synchronous_among {
  static_assert(sizeof(detail::diagnosed<typename detail::communicator_verdict<Communicator>::type>()));
  using backend = Backend;
  static constexpr auto name = "synchronous_among";
  Communicator processes;
  typename engine_options<Backend>::type options{};
  communication_options communication{};  // how gradients are sent. Its timeout is not used: the communicator has its own
  [[no_unique_address]] Sharding sharding{};

  template <class Program>
  using executor = synchronous_executor<Program, typename Sharding::template backend<Backend>, Communicator, Sharding>;
  template <class Program>
  using verdict = detail::sharding_verdict<Program, typename Sharding::template backend<Backend>, Sharding>;

  template <class Program>
  executor<Program> make(typename Program::optimizer optimizer, std::uint64_t seed) const {
    return {std::move(optimizer), seed, options, processes, communication};
  }
};

inline constexpr reason synchronous_among_takes_a_communicator_compute_options_communication_options_and_zero_in_this_order{
    "synchronous_among takes a communicator, compute_options, communication_options and zero, in this order; braces stand for "
    "options: {processes, {}, {}, zero<1>{}}"};

template <class Given, const reason& Why, class Backend, class Sharding>
struct synchronous_among<detail::refused_arguments<Given, Why>, Backend, Sharding> : detail::refusing<one_device<>> {
  static_assert(sizeof(detail::diagnosed<wrong_argument<Given, detail::because<Why>>>()));
  using detail::refusing<one_device<>>::refusing;
  synchronous_among(const auto& processes, const compute_options&, const auto&...) : detail::refusing<one_device<>>(processes) {}
  synchronous_among(const auto& processes, const compute_options&, const communication_options&, const auto&...)
      : detail::refusing<one_device<>>(processes) {}
};
namespace detail {
/// Whether synchronous_among takes these after the communicator.
template <class... Rest>
inline constexpr bool taken_among = sizeof...(Rest) == 0;
template <class A>
inline constexpr bool taken_among<A> = std::is_convertible_v<A, compute_options>;
template <class A, class B>
inline constexpr bool taken_among<A, B> = taken_among<A> && std::is_convertible_v<B, communication_options>;
template <class A, class B, class C>
inline constexpr bool taken_among<A, B, C> = taken_among<A, B> && is_zero<C>;

template <class... Given>
using refused_among =
    refused_arguments<type_list<Given...>,
                      synchronous_among_takes_a_communicator_compute_options_communication_options_and_zero_in_this_order>;
}  // namespace detail

template <class C>
  requires(!std::is_class_v<C>)
synchronous_among(C) -> synchronous_among<detail::refused_among<C>>;
template <class C, class... Rest>
  requires(!detail::taken_among<Rest...>)
synchronous_among(C, Rest...) -> synchronous_among<detail::refused_among<C, Rest...>>;
// The same where braces stand for options.
template <class C, class Given, class... Rest>
  requires(!std::is_convertible_v<Given, communication_options>)
synchronous_among(C, compute_options, Given, Rest...) -> synchronous_among<detail::refused_among<Given, Rest...>>;
template <class C, class Given, class... Rest>
  requires(!detail::is_zero<Given> || sizeof...(Rest) > 0)
synchronous_among(C, compute_options, communication_options, Given, Rest...)
    -> synchronous_among<detail::refused_among<Given, Rest...>>;
template <class C, int Stage>
synchronous_among(C, compute_options, communication_options, zero<Stage>) -> synchronous_among<C, default_backend, zero<Stage>>;
template <class C>
synchronous_among(C, compute_options, communication_options) -> synchronous_among<C>;
template <class C>
synchronous_among(C, compute_options) -> synchronous_among<C>;
template <class C>
synchronous_among(C) -> synchronous_among<C>;

}  // namespace strata
