// The processes of ranks that divide layers, once they have found that they train the same program in the same way.
#pragma once
#include <cstdint>
#include <memory>
#include <strata/base/error.hpp>
#include <strata/base/text.hpp>
#include <strata/concepts/communicator.hpp>
#include <strata/exchange/process_group_over.hpp>
#include <strata/exchange/ranks_of_process.hpp>
#include <strata/network/network_of_rank.hpp>
#include <strata/network/tape.hpp>
#include <strata/program/compute_options.hpp>
#include <strata/synchronous/agreed_values.hpp>
#include <string>
#include <utility>

namespace strata::detail {

/// The layers that ranks divide, and how each is divided.
template <class Program, class Map, int Ranks>
[[gnu::cold]] std::string text_of_divided_layers() {
  using items = typename network_of_rank<typename Program::network, Map, Ranks>::items;
  std::string divided;
  constexpr const auto& t = tape_of<items>;
  for (int i = 0; i < t.size; ++i)
    if (divisions_of<items>[i].shard_of)
      divided += text_of({divided.empty() ? "" : ", ", name_of_layer(t, i).view(), " ", divisions_of<items>[i].how()});
  return divided;
}
/// Throws strata_error in all processes if their number is not that of the ranks, or if they have other programs or
/// divide other layers. groups: the current number of groups. places: the places of each rank, each in a process of its own.
template <class Program, class Map, int Ranks, int Groups, communicator C>
[[gnu::cold]] one_rank_per_process<C> agreed_ranks(C processes, const typename Program::optimizer& optimizer, std::uint64_t seed,
                                                   const compute_options& compute, int groups = Groups, int places = 1) {
  one_rank_per_process<C> all{std::make_unique<process_group_over<C>>(std::move(processes))};
  refuse_differences(*all.group_, with_program<Program>({{"number of ranks that divide layers", std::to_string(Ranks)},
                                                         {"number of groups that divide batches", std::to_string(Groups)},
                                                         {"divided layers", text_of_divided_layers<Program, Map, Ranks>()}},
                                                        optimizer, seed, compute));
  if (const int wanted = Ranks * places * groups; all.group_->size() != wanted)
    throw_error({"layers are divided among ", Ranks, Ranks == 1 ? " process" : " processes",
                 places > 1 ? text_of({" at each of ", places, " places"}) : "",
                 Groups > 1 ? text_of({" in each of ", groups, " groups"}) : "",
                 wanted > Ranks ? text_of({", which are ", wanted}) : "", ", but there are ", all.group_->size()});
  return all;
}

}  // namespace strata::detail
