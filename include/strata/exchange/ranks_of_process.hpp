// The ranks that divide layers in this process, one or all in threads, and their connections to the others.
#pragma once
#include <chrono>
#include <cstddef>
#include <memory>
#include <strata/communicators/in_process.hpp>
#include <strata/concepts/communicator.hpp>
#include <strata/concepts/process_group.hpp>
#include <strata/exchange/process_group_over.hpp>
#include <type_traits>
#include <utility>
#include <vector>

namespace strata::detail {

/// Each process is a rank.
template <communicator C>
struct one_rank_per_process {
  static constexpr bool in_one_process = false;
  using connection = std::remove_reference_t<decltype(std::declval<process_group_over<C>&>().processes())>;
  std::unique_ptr<process_group_over<C>> group_;

  auto& trained_by() { return *group_; }
  const auto& trained_by() const { return *group_; }
  int count() const { return 1; }
  connection& connection_of(int, int = 0) { return group_->processes(); }
};
/// Each rank is a thread of this process, or several: one for each place of a pipeline.
struct all_ranks_in_one_process {
  static constexpr bool in_one_process = true;
  using connection = in_process;
  std::vector<std::vector<in_process>> members_;  // for each place of a pipeline all ranks
  solo_group group_;

  explicit all_ranks_in_one_process(int count, int places = 1) {
    // They wait as long as it takes: a member cannot be lost.
    for (int p = 0; p < places; ++p) members_.push_back(in_process::group(count, std::chrono::hours(24 * 365)));
  }
  auto& trained_by() { return group_; }
  const auto& trained_by() const { return group_; }
  int count() const { return int(members_.front().size()); }
  connection& connection_of(int i, int place = 0) { return members_[std::size_t(place)][std::size_t(i)]; }
};

}  // namespace strata::detail
