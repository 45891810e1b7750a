// A plan with its memory: a workspace for each thread, or for each leaf of this process, and the derived layouts of weights.
#pragma once
#include <algorithm>
#include <strata/base/grown_array.hpp>
#include <strata/cpu/engine/team.hpp>
#include <strata/program/micro_batch.hpp>
#include <strata/program/pass.hpp>
#include <strata/program/training_sizes.hpp>

namespace strata::core {

template <class Program, class Backend, purpose Why>
class prepared_plan {
  using T = typename Program::value_type;
  static constexpr const auto& plan = plan_of<Program, Backend, Why>;
  static constexpr const auto& code = code_table<Program, Backend, Why>;
  static constexpr bool whole = plan.needs_whole_leaf(), adds_statistics = whole && !plan.is_cut;
  using works = workspace<Program, Backend, Why>;
  detail::grown_array<works> works_;
  arena<T> derived_{std::size_t(plan.derived)};
  int micro_batch_[plan.segment_count] = {};
  bool derived_is_stale_ = true;

 public:
  /// The samples of a micro-batch for leaves of `capacity` samples, in that segment, or the most of all segments.
  static constexpr int samples_of(int segment, int capacity, int micro_batch) {
    using together = samples_at_a_time<Program, Backend, Why>;
    if (adds_statistics) return together::of(segment);
    return std::min(capacity, micro_batch <= 0 ? together::of(segment) : together::most(micro_batch));
  }
  static constexpr int most_samples_of(int capacity, int micro_batch) {
    int most = 0;
    for (int k = 0; k < plan.segment_count; ++k) most = std::max(most, samples_of(k, capacity, micro_batch));
    return most;
  }
  /// Adds what an object allocates, by its constructor and by prepare.
  static constexpr void add_memory(process_memory& to, int leaves, int capacity, int threads, int micro_batch) {
    const int most = most_samples_of(capacity, micro_batch);
    to.parameters += plan.derived * long(sizeof(T));
    to.activations +=
        (whole ? leaves * long(works::size(capacity, std::min(capacity, most))) : threads * long(works::size(0, most))) *
        long(sizeof(T));
  }

  /// Allocates for up to `leaves` leaves at a time, of up to `capacity` samples. micro_batch: 0 for as many samples as the cache
  /// holds. A plan with several segments ignores it, because statistics of the whole batch are sums over micro-batches.
  void prepare(int leaves, int capacity, int threads, int micro_batch) {
    for (int k = 0; k < plan.segment_count; ++k)
      micro_batch_[k] = std::max(micro_batch_[k], samples_of(k, capacity, micro_batch));
    works_.grow(std::size_t(whole ? leaves : threads));
    const int most = *std::max_element(micro_batch_, micro_batch_ + plan.segment_count);
    for (auto& each : works_) each.prepare({}, whole ? capacity : 0, whole ? std::min(capacity, most) : most);
  }

  int micro_batch(int segment = 0) const { return micro_batch_[segment]; }
  /// `leaf`: the index among the leaves of this process. It is used only by plans that keep the workspaces of all leaves.
  works& work_of(int thread, int leaf = 0) { return works_[std::size_t(plan.needs_whole_leaf() ? leaf : thread)]; }
  const T* derived() const { return derived_.data(); }

  void weights_changed() { derived_is_stale_ = true; }
  /// Rebuilds the derived weight layouts. One thread computes each group.
  void derive(thread_team& team, const T* weights) {
    derive_if(team, weights, [](int) { return true; });
  }
  /// Rebuilds the derived layouts of the groups for which computes(group) is true.
  template <class Computes>
  void derive_if(thread_team& team, const T* weights, Computes&& computes) {
    if constexpr (plan.derived > 0)
      if (derived_is_stale_) derive(team, 0, plan.group_count, [=](bool) { return weights; }, computes);
    derived_is_stale_ = false;
  }
  /// Rebuilds those of one segment, whose trained parameters are in other memory.
  void derive(thread_team& team, const T* weights, int segment, const T* trained) {
    if constexpr (plan.derived > 0)
      derive(
          team, plan.first_of_segment[segment], plan.first_of_segment[segment + 1] - plan.first_of_segment[segment],
          [=](bool trains) { return trains ? trained : weights; }, [](int) { return true; });
  }

 private:
  template <class Weights, class Computes>
  void derive(thread_team& team, int first, int count, Weights&& weights, Computes&& computes) {
    team.for_tasks(count, [&](int i, int) {
      const int g = first + i;
      if (!code[std::size_t(g)].derive || !computes(g)) return;
      const T* w[max_group_parameters] = {};
      for (int k = 0; k < plan.groups[g].parameter_count; ++k)
        w[k] = weights(plan.groups[g].trainable[k]) + plan.groups[g].parameters[k];
      code[std::size_t(g)].derive(w, derived_.data() + plan.groups[g].derived);
    });
  }
};

}  // namespace strata::core
