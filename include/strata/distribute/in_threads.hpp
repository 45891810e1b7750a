// Strategies whose places or ranks are threads of this process.
#pragma once
#include <cstdint>
#include <strata/program/compute_options.hpp>
#include <utility>

namespace strata::core {

/// A division of a network, pipelines or tensor_ranks, each of whose places is a thread: pipeline, tensor_parallel and mesh.
template <class Division>
struct in_threads {
  using division = Division;
  using backend = typename Division::backend;
  static constexpr auto name = Division::name;
  compute_options options{};

  template <class Program>
  using verdict = typename Division::template verdict<Program>;
  template <class Program>
  using executor = typename Division::template in_threads<Program>;
  template <class Program>
  executor<Program> make(typename Program::optimizer optimizer, std::uint64_t seed) const {
    return Division::template make_in_threads<Program>(std::move(optimizer), seed, options);
  }
};

}  // namespace strata::core
