// A plan with its memory: a workspace for each thread, or for each leaf of this process, and the derived layouts of weights.
#pragma once
#include <algorithm>
#include <bit>
#include <strata/cpu/engine/team.hpp>
#include <strata/program/pass.hpp>
#include <vector>

namespace strata {

template <class Program, class Backend, purpose Why>
class prepared_plan {
  using T = typename Program::value_type;
  static constexpr const auto& plan = plan_of<Program, Backend, Why>;
  static constexpr const auto& code = code_table<Program, Backend, Why>;
  std::vector<workspace<Program, Backend, Why>> works_;
  arena<T> derived_{std::size_t(plan.derived)};
  int micro_batch_[plan.segment_count] = {};
  bool derived_is_stale_ = true;

 public:
  /// Allocates for up to `leaves` leaves at a time, of up to `capacity` samples. micro_batch: 0 for as many samples as the cache
  /// holds. A plan with several segments ignores it, because statistics of the whole batch are sums over micro-batches.
  void prepare(int leaves, int capacity, int threads, int micro_batch) {
    const bool whole = plan.needs_whole_leaf();
    for (int k = 0; k < plan.segment_count; ++k) {
      const int wanted = whole || micro_batch <= 0 ? samples_in_cache(k) : micro_batch;
      micro_batch_[k] = whole ? wanted : std::max(micro_batch_[k], std::min(capacity, wanted));
    }
    works_.resize(std::max(works_.size(), std::size_t(whole ? leaves : threads)));
    const int most = *std::max_element(micro_batch_, micro_batch_ + plan.segment_count);
    for (auto& each : works_) each.prepare({}, whole ? capacity : 0, whole ? std::min(capacity, most) : most);
  }

  int micro_batch(int segment = 0) const { return micro_batch_[segment]; }
  /// `leaf`: the index among the leaves of this process. It is used only by plans that keep the workspaces of all leaves.
  workspace<Program, Backend, Why>& work_of(int thread, int leaf = 0) {
    return works_[std::size_t(plan.needs_whole_leaf() ? leaf : thread)];
  }
  const T* derived() const { return derived_.data(); }

  void weights_changed() { derived_is_stale_ = true; }
  /// Rebuilds the derived weight layouts. One thread computes each group.
  void derive(thread_team& team, const T* weights) {
    if constexpr (plan.derived > 0)
      if (derived_is_stale_)
        team.for_tasks(plan.group_count, [&](int g, int) {
          if (!code[std::size_t(g)].derive) return;
          const T* w[max_group_parameters] = {};
          for (int k = 0; k < plan.groups[g].parameter_count; ++k) w[k] = weights + plan.groups[g].parameters[k];
          code[std::size_t(g)].derive(w, derived_.data() + plan.groups[g].derived);
        });
    derived_is_stale_ = false;
  }

  /// The samples whose activations stay in a second-level cache while the weights pass through it. With several segments, the
  /// next segment reads activations only after all samples, so only the output of one group and of the next one must fit.
  static constexpr int samples_in_cache(int segment) {
    constexpr long cache = std::max(1L << 20, long(layout_of_program<Program>.trainable) * long(sizeof(T)));
    long numbers = plan.passing + plan.scratch_per_sample + 1;
    if (plan.needs_whole_leaf()) {
      numbers = 1;
      for (int g = plan.first_of_segment[segment]; g < plan.first_of_segment[segment + 1]; ++g)
        numbers = std::max(numbers, 4L * plan.groups[g].size);
    }
    return int(std::clamp<long>(long(std::bit_floor(std::uint64_t(cache / (numbers * long(sizeof(T))) + 1))), 4, 256));
  }
};

}  // namespace strata
