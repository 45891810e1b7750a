// The backend of a rank that has a part of the layers' parameters.
#pragma once
#include <strata/concepts/device.hpp>
#include <strata/network/network_of_rank.hpp>
#include <strata/program/compute_options.hpp>
#include <strata/program/program.hpp>
#include <vector>

namespace strata::core {

template <class T>
class rank_exchange;

/// The kernels of Base, and those of divided operations, which use kernels of Base for their parts.
template <class Base>
struct tensor_backend {
  static constexpr auto name = Base::name;
  using base = Base;
  using device = device_of<Base>;
};

/// compute_options::threads is not used: a rank is one thread, or one at each place of a pipeline.
template <class T>
struct tensor_options : compute_options {
  std::vector<rank_exchange<T>*> ranks{};  // of each place with those at the same place of other ranks; they outlive the engine
};

/// The program of one rank.
template <class Program, class Map, int Ranks>
using program_of_rank = program<network_of_rank<typename Program::network, Map, Ranks>, typename Program::loss,
                                typename Program::optimizer, typename Program::metrics, typename Program::precision>;

}  // namespace strata::core
