// The arithmetic of the CPU backend on arrays of the host, without an engine.
#pragma once
#include <strata/cpu/backend.hpp>
#include <strata/cpu/engine/sum_leaves.hpp>
#include <strata/cpu/engine/team.hpp>
#include <strata/cpu/engine/weight_update.hpp>
#include <strata/program/engine_for.hpp>

namespace strata::core {

template <>
struct host_arithmetic<cpu> {
  using team = thread_team;
  using scope = flush_denormals;
  template <class T, class Optimizer>
  using update = weight_update<T, Optimizer>;

  template <class T>
  static void sum_leaves(T* to, const T* const* arrays, int count, long begin, long end) {
    strata::core::sum_leaves(to, arrays, count, begin, end);
  }
};

}  // namespace strata::core
