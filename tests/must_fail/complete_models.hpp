// A complete executor and a complete strategy: a test hides one member, and expects the diagnostic about it.
#pragma once
#include <strata/strata.hpp>

namespace strata::test {
using namespace core;

template <class P, class Group = solo_group>
struct complete_executor : executor_defaults, counted_optimizer<typename P::optimizer> {
  explicit complete_executor(typename P::optimizer o) : counted_optimizer<typename P::optimizer>(o) {}
  void prepare(int, purpose) {}
  metric_sums<P> train_step(samples<float>) { return {}; }
  metric_sums<P> finish() { return {}; }
  metric_sums<P> evaluate_step(samples<float>) { return {}; }
  void predict(samples<float>, output_rows<float>) {}
  std::span<float> parameters() { return {}; }
  std::span<const float> parameters() const { return {}; }
  void parameters_changed() {}
  Group& group() { return group_; }
  const Group& group() const { return group_; }
  Group group_;
};

template <template <class> class Executor>
struct complete_strategy {
  static constexpr auto name = "complete_strategy";
  template <class P>
  using executor = Executor<P>;
  template <class P>
  Executor<P> make(typename P::optimizer o, std::uint64_t) const {
    return Executor<P>(o);
  }
};

using small_net = sequential<input<8>, dense<10, softmax>>;

}  // namespace strata::test
