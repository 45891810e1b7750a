// The engine of gradients of inputs, on the host.
#pragma once
#include <algorithm>
#include <memory>
#include <strata/concepts/batch_source.hpp>
#include <strata/cpu/backend.hpp>
#include <strata/cpu/engine/prepared_plan.hpp>
#include <strata/program/input_gradient_program.hpp>

namespace strata::core {

/// The gradient of a sample depends on that sample alone, so threads divide the samples.
template <class Program>
class input_gradient_engine {
  using T = typename Program::value_type;
  using leaf = leaf_sums<Program, cpu>;
  static constexpr const auto& plan = plan_of<Program, cpu>;
  static constexpr std::size_t sums_stride = (leaf::size + 7) / 8 * 8;
  static_assert(plan.segment_count == 1, "an input_gradient_program has no operation of the whole batch");

  thread_team team_;
  prepared_plan<Program, cpu, purpose::training> plan_;
  arena<double> sums_;  // of the losses, for each thread; they are not read
  const T* weights_ = nullptr;

 public:
  /// threads: 0 for all cores.
  explicit input_gradient_engine(int threads)
      : team_(threads > 0 ? threads : available_cores()), sums_(sums_stride * std::size_t(team_.size())) {}

  /// The arena of the program, at a multiple of 64 bytes. It must outlive the next calls, and is read here: call this again after
  /// it has changed.
  void use_weights(const T* weights) {
    weights_ = weights;
    plan_.weights_changed();
    plan_.derive(team_, weights);
  }
  /// Stores the gradients of the wanted inputs of a batch: to[k] is (count, shape of input k...).
  void compute(const samples<T>& batch, T* const* to) {
    plan_.prepare(1, batch.count, team_.size(), 0);
    step_context<T, host_device> context{weights_, plan_.derived(), nullptr, double(batch.count)};
    context.input_gradients = to;
    std::fill_n(sums_.data(), sums_.size(), 0.0);
    const int threads = team_.size(), size = std::min(plan_.micro_batch(), (batch.count + threads - 1) / threads);
    team_.for_tasks((batch.count + size - 1) / size, [&](int task, int thread) {
      const flush_denormals scope;
      const samples<T> some = batch.rows(task * size, size, ends_of_program<Program>);
      const leaf sums{nullptr, sums_.data() + std::size_t(thread) * sums_stride};
      detail::pass<Program, cpu, purpose::training> pass(context, plan_.work_of(thread), sums, some, long(task) * size);
      pass.forward(0);
      pass.backward(0, false);
    });
  }
};

}  // namespace strata::core
