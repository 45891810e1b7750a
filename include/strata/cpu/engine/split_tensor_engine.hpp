// The engine of one of the ranks that divide layers, where each rank computes its part of them in stages.
#pragma once
#include <algorithm>
#include <cstddef>
#include <strata/cpu/engine/split_engine.hpp>
#include <strata/cpu/engine/tensor_engine.hpp>
#include <strata/program/stages/split_ranks.hpp>

namespace strata {

namespace detail {
template <class Program, class Base, class Split>
  requires(classes_of_rank_in<typename Program::network::items> > 0)
struct use_of_predictions<Program, split_backend<tensor_backend<Base>, Split>>
    : use_of_predictions<Program, tensor_backend<Base>> {};
}  // namespace detail

namespace core {
/// A rank has a thread for each place. The threads at one place of all ranks exchange parts of layers: they have the same turns,
/// and so the same exchanges in the same order. A thread waits for those at its own place and, as in split_engine, for stages of
/// its own rank. Deadlock-free: all ranks take the same turns in lockstep, so it suffices that the timetable ends for one rank.
/// An evaluation is shared by the same threads: each computes the same leaves in all ranks.
template <class Program, class Backend>
class split_tensor_engine : public engine_of_rank<Program, split_engine<Program, Backend>> {
  using base = engine_of_rank<Program, split_engine<Program, Backend>>;
  using engine = cpu_engine<Program, Backend>;
  using base::context_, base::leaves_, base::places, base::ranks_;
  using typename base::T;
  using inference_pass = typename engine::inference_pass;
  using use_of_predictions = typename engine::use_of_predictions;

 public:
  using options = tensor_options<T>;

  split_tensor_engine(const options& how, leaf_policy policy, int slots)
      : base(with_a_thread_for_each_place(how), policy, slots, how.ranks) {
    std::copy_n(how.ranks.begin(), std::size_t(places), ranks_.begin());
  }

  void measure() {
    this->penalize();
    for_leaves(leaves_.own(), [&](const step_context<T, host_device>& context, int l, int thread) {
      this->clear_sums(l);
      leaves_.in_micro_batches(l, this->inference().micro_batch(), [&](const samples<T>& some, long first) {
        inference_pass pass(context, this->inference().work_of(thread), this->sums_of(l), some, first);
        pass.infer();
        use_of_predictions::measure(pass.predictions(), some, this->sums_of(l).metrics(), context.ranks);
      });
    });
    this->share_penalties();
  }
  /// Needs no labels. A null output is not written.
  void predict(const output_rows<T>& out) {
    for_leaves({0, leaves_.occupied()}, [&](const step_context<T, host_device>& context, int l, int thread) {
      leaves_.in_micro_batches(l, this->inference().micro_batch(), [&](const samples<T>& some, long first) {
        auto& work = this->inference().work_of(thread);
        inference_pass pass(context, work, this->sums_of(l), some, first);
        pass.predict();
        for (int k = 0; k < engine::ends.output_count; ++k)
          use_of_predictions::give(work.predictions(k), k, some.count,
                                   out.at[k] ? out.at[k] + first * engine::ends.outputs[k] : nullptr, context.ranks);
      });
    });
  }

 private:
  static compute_options with_a_thread_for_each_place(compute_options how) {
    how.threads = 1;
    return how;
  }

  /// Calls f(context, leaf, thread). Each thread exchanges as one place does, for leaves that are the same in all ranks.
  template <class F>
  void for_leaves(leaf_range all, F&& f) {
    this->team().for_tasks(places, [&](int i, int thread) {
      step_context<T, host_device> context = context_;
      context.ranks = ranks_[std::size_t(i)];
      const leaf_range share = share_of(all.size(), i, places);
      for (int l = all.begin + share.begin; l < all.begin + share.end; ++l) f(context, l, thread);
    });
  }
};

template <class Program, class Base, class Split>
  requires(device_of<Base>::is_host)
struct engine_for<Program, split_backend<tensor_backend<Base>, Split>> {
  using type = split_tensor_engine<Program, split_backend<tensor_backend<Base>, Split>>;
};
}  // namespace core

}  // namespace strata
