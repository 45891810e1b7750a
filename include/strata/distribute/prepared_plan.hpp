// A plan with its memory: a workspace for each thread, or for each leaf, and the derived layouts of the weights.
#pragma once
#include <algorithm>
#include <bit>
#include <strata/distribute/leaf.hpp>
#include <strata/distribute/team.hpp>
#include <vector>

namespace strata {

template <class Program, class Backend, purpose Why>
class prepared_plan {
  using T = typename Program::value_type;
  static constexpr const auto& plan = plan_of<Program, Backend, Why>;
  static constexpr const auto& code = code_table<Program, Backend, Why>;
  std::vector<workspace<Program, Backend, Why>> works_;
  arena<T> derived_{std::size_t(plan.derived)};
  int micro_batch_ = 0;
  bool derived_is_stale_ = true;

 public:
  /// For leaves of up to `capacity` samples. micro_batch: 0 for as many samples as the cache holds.
  void prepare(int leaves, int capacity, int threads, int micro_batch) {
    const bool whole = plan.needs_whole_leaf();
    const int wanted = whole ? capacity : std::min(capacity, micro_batch > 0 ? micro_batch : samples_in_cache());
    micro_batch_ = std::max(micro_batch_, wanted);
    works_.resize(std::max(works_.size(), std::size_t(whole ? leaves : threads)));
    for (auto& each : works_) each.prepare(micro_batch_);
  }

  int micro_batch() const { return micro_batch_; }
  workspace<Program, Backend, Why>& work_of(int rank, int leaf) { return works_[std::size_t(plan.needs_whole_leaf() ? leaf : rank)]; }
  const T* derived() const { return derived_.data(); }

  void weights_changed() { derived_is_stale_ = true; }
  /// Rebuilds the derived weight layouts, each group by one thread.
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

 private:
  /// As many samples as keep their activations within a second-level cache, beside the weights that pass by.
  static constexpr int samples_in_cache() {
    constexpr long cache = 1 << 20;
    const long bytes = long(plan.workspace + plan.scratch_per_sample + 1) * long(sizeof(T));
    return int(std::clamp<long>(long(std::bit_floor(std::uint64_t(cache / bytes + 1))), 4, 256));
  }
};

}  // namespace strata
