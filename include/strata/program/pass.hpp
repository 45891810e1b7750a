// One pass of a plan over a micro-batch: which kernels run, and their operands. It is the same on every device: an engine
// provides the memory and the queue.
#pragma once
#include <memory>
#include <span>
#include <strata/base/no_callback.hpp>
#include <strata/concepts/batch_source.hpp>
#include <strata/concepts/device.hpp>
#include <strata/kernel/kernel_observer.hpp>
#include <strata/network/leaves.hpp>
#include <strata/network/parameter_ranges.hpp>
#include <strata/program/compiled.hpp>
#include <strata/program/leaf_sums.hpp>
#include <strata/program/measure.hpp>
#include <strata/program/metric_sums.hpp>
#include <strata/program/step_context.hpp>
#include <strata/program/trained_groups.hpp>
#include <strata/program/workspace.hpp>
#include <vector>

namespace strata {

namespace detail {

/// The calls of kernels that all passes over a plan share, wherever their arrays are. first: the index in the global batch of the
/// first sample of the batch.
template <class Program, class Backend, purpose Why>
class kernel_calls {
 protected:
  using T = typename Program::value_type;
  using device = device_of<Backend>;
  static constexpr const auto& plan = plan_of<Program, Backend, Why>;
  static constexpr const auto& code = code_table<Program, Backend, Why>;
  const step_context<T, device>& step_;
  leaf_sums<Program, Backend> sums_;
  const samples<T>& batch_;
  std::int64_t first_;

  kernel_calls(const step_context<T, device>& step, leaf_sums<Program, Backend> sums, const samples<T>& batch, std::int64_t first)
      : step_(step), sums_(sums), batch_(batch), first_(first) {}

  void run(typename kernel_code<T, typename device::queue>::call call, const operands<T>& o, int g, pass_direction direction,
           bool collects = false) {
    observed(o, {g, direction, o.count, o.first_sample, collects}, [&] { detail::launch(step_.queue, call, o); });
  }
  template <class Launch>
  void observed(const operands<T>& o, const observed_call& call, Launch&& launch) {
    if (step_.observer) [[unlikely]]
      step_.observer->begins(call);
    launch();
    if (step_.observer) [[unlikely]]
      tell_end(o, call);
  }
  [[gnu::cold, gnu::noinline]] void tell_end(const operands<T>& o, const observed_call& call) {
    if constexpr (!device::is_host) step_.on->wait(step_.queue);
    observed_numbers numbers = observed_numbers_of(o);
    numbers.reader = step_.reader;
    numbers.has_narrow_input = plan.groups[call.group].has_narrow_input;
    numbers.has_narrow_output = plan.groups[call.group].has_narrow_output;
    step_.observer->ended(call, numbers);
  }

  bool trains(int g) const { return step_.trained ? step_.trained[g].trains : plan.groups[g].trains; }
  bool trains(int g, int parameter) const {
    return step_.trained ? step_.trained[g].parameters[parameter] : plan.groups[g].trainable[parameter];
  }

  /// The offset in the arena at which the gradient array of a leaf begins while this group is computed.
  static constexpr long gradient_begin(const kernel_group& it) { return plan.is_cut ? plan.begin_of_segment[it.segment] : 0; }
  const T* weights_of(const kernel_group& it, int parameter) const {
    if constexpr (plan.is_cut)
      if (step_.segments && it.trainable[parameter]) return step_.segments[it.segment];
    return step_.weights;
  }

  /// The operands except y, dy, saved and scratch. input(k), input_gradient(k): addresses of inputs other than the batch.
  template <class Input, class Gradient>
  operands<T> operands_of(int g, Input&& input, Gradient&& input_gradient) {
    const kernel_group& it = plan.groups[g];
    operands<T> o;
    o.count = batch_.count;
    for (int k = 0; k < it.arity; ++k) {
      const int from = it.input[k];
      o.x[k] = from < 0 ? batch_.inputs[-1 - from] : input(k);
      if (from >= 0)
        o.dx[k] = it.wants_dx[k] && trains(from) ? input_gradient(k) : nullptr;
      else if constexpr (wanted_inputs_of<Program> != 0)
        o.dx[k] =
            it.wants_dx[k] ? step_.input_gradients[-1 - from] + first_ * ends_of_program<Program>.inputs[-1 - from] : nullptr;
      o.adds_dx[k] = it.adds_dx[k];
    }
    for (int k = 0; k < it.parameter_count; ++k) {
      o.w[k] = weights_of(it, k) + it.parameters[k];
      if (sums_.gradient && trains(g, k)) o.dw[k] = sums_.gradient + it.parameters[k] - gradient_begin(it);
    }
    if (step_.prepared) o.prepared = step_.prepared[g].get();
    o.derived = step_.derived + it.derived;
    o.statistics = step_.statistics + it.statistics;
    if (sums_.sums) o.statistics_of_leaf = sums_.statistics_at(it.statistics);
    o.total = step_.total;
    o.leaves = step_.leaves;
    o.ranks = step_.ranks;
    o.random = step_.random.fork(std::uint64_t(it.first));
    if (step_.random_of_group) o.random_at = step_.random_of_group + g;
    o.first_sample = first_;
    if (const int k = it.number_of_output; k >= 0) {
      o.labels = batch_.truths[k].labels;
      o.targets = batch_.truths[k].targets;
      o.weights = batch_.truths[k].weights;
      o.loss = sums_.loss_at(k);
    }
    return o;
  }
  /// The weights of the gradient of a loss, if they are others than those of the loss; else null.
  const T* gradient_weights_of(int g) const {
    const int k = plan.groups[g].number_of_output;
    return k >= 0 ? batch_.truths[k].gradient_weights : nullptr;
  }
};

/// One pass of the plan over `batch`. first: the index of its first sample in the global batch; at: that in its leaf.
template <class Program, class Backend, purpose Why>
class pass : kernel_calls<Program, Backend, Why> {
  using calls = kernel_calls<Program, Backend, Why>;
  using calls::batch_, calls::code, calls::gradient_weights_of, calls::operands_of, calls::plan, calls::run, calls::step_,
      calls::sums_, calls::trains;
  using typename calls::T, typename calls::device;
  workspace<Program, Backend, Why>& work_;
  int at_;

 public:
  pass(const step_context<T, device>& step, workspace<Program, Backend, Why>& work, leaf_sums<Program, Backend> sums,
       const samples<T>& batch, std::int64_t first, int at = 0)
      : calls(step, sums, batch, first), work_(work), at_(at) {}

  /// True if a kernel has to be prepared for the number of samples and leaves.
  static constexpr bool prepares = [] {
    for (const auto& each : code)
      if (each.prepare) return true;
    return false;
  }();
  /// Prepares the kernels for this number of samples and leaves: the result for each group, null if it needs none.
  std::vector<std::shared_ptr<const void>> prepare(bool for_training) {
    std::vector<std::shared_ptr<const void>> all(code.size());
    for (std::size_t g = 0; g < code.size(); ++g)
      if (code[g].prepare) all[g] = code[g].prepare(step_.queue, of(int(g)), for_training);
    return all;
  }

  void forward(int segment) {
    for (int g = plan.first_of_segment[segment]; g < plan.first_of_segment[segment + 1]; ++g) run_forward(g);
    if (!plan.is_cut && segment + 1 < plan.segment_count) {
      const int next = plan.first_of_segment[segment + 1];
      run(code[std::size_t(next)].collect, collecting(next), next, pass_direction::forward, true);
    }
  }

  /// From the whole-batch group after the segment down to the group after the one that opens it. The backward of the latter
  /// needs the statistics of the whole batch, so it is part of the next pass; where the plan is cut, of this one. Calls passed(g)
  /// when the gradients of group g have been added.
  template <class Passed = no_callback>
  void backward(int segment, bool adds, Passed&& passed = {}) {
    const bool last = segment + 1 == plan.segment_count || plan.is_cut;
    backward_from(plan.first_of_segment[segment + 1] - (last ? 1 : 0), segment, adds, passed);
  }

  /// forward and backward of the last segment. The backend may have one kernel for both directions of the last group.
  template <class Passed = no_callback>
  void forward_backward(Passed&& passed = {}) {
    constexpr int segment = plan.segment_count - 1;
    int last = plan.group_count - 1;  // no constant, so that the next line is no comparison of one
    const auto both = code[std::size_t(last)].forward_backward;
    if (!both || !trains(last) || gradient_weights_of(last) || step_.observer) {  // an observer sees both directions
      forward(segment);
      return backward(segment, false, passed);
    }
    for (int g = plan.first_of_segment[segment]; g < last; ++g) run_forward(g);
    detail::launch(step_.queue, both, of(last));
    passed(last);
    backward_from(last - 1, segment, false, passed);
  }

  /// Backward of the only micro-batch of the only leaf, with an update of each parameter as soon as its gradient is known. No
  /// layer is frozen at run time.
  /// update(begin, end, gradients of the elements [begin, end)), update_product(factors, first element)
  template <class Update, class UpdateProduct>
  void backward_and_update(Update&& update, UpdateProduct&& update_product) {
    for (int g = plan.group_count - 1; g >= 0; --g) {
      const kernel_group& it = plan.groups[g];
      compute_again_before(g);
      if (!it.trains) continue;
      const operands<T> o = of(g);
      if (const auto into = code[std::size_t(g)].backward_into) {
        struct everything {
          Update& update;
          UpdateProduct& update_product;
          const kernel_group& it;
        } all{update, update_product, it};
        const gradient_sink<T> sink{
            &all,
            [](void* context, int parameter, long first, long size, T* sums) {
              const everything& to = *static_cast<everything*>(context);
              const long begin = to.it.parameters[parameter] + first;
              constexpr long whole = gradient_sink<T>::alignment;  // the kernel has written zeros up to a multiple of this
              to.update(begin, begin + (size + whole - 1) / whole * whole, sums);
            },
            [](void* context, int parameter, const T* x, const T* dz, int count, int rows, int columns) {
              const everything& to = *static_cast<everything*>(context);
              to.update_product(gradient_product<T>{x, dz, count, rows, columns}, to.it.parameters[parameter]);
            }};
        this->observed(o, {g, pass_direction::backward, o.count, o.first_sample},
                       [&] { detail::launch(step_.queue, into, o, sink); });
      } else {
        run(code[std::size_t(g)].backward, o, g, pass_direction::backward);
        for (int k = 0; k < it.parameter_count; ++k)
          if (it.trainable[k]) update(it.parameters[k], trained_end(it.parameters[k]), sums_.gradient + it.parameters[k]);
      }
    }
  }

  void infer() {
    for (int g = 0; g < plan.group_count; ++g) detail::launch(step_.queue, code[std::size_t(g)].infer, of(g, true));
  }

  /// infer() without labels: the kernel of the loss only computes predictions.
  void predict() {
    for (int g = 0; g < plan.group_count; ++g) {
      operands<T> o = of(g, true);
      o.loss = nullptr;
      detail::launch(step_.queue, code[std::size_t(g)].infer, o);
    }
  }

  void update_state(int g, T* weights) {
    T* w[max_group_parameters] = {};
    for (int k = 0; k < plan.groups[g].parameter_count; ++k) w[k] = weights + plan.groups[g].parameters[k];
    detail::launch(step_.queue, code[std::size_t(g)].update_state, of(g), w);
  }

  /// The predictions for each output, on the device.
  output_rows<const T> predictions() {
    output_rows<const T> all;
    for (int k = 0; k < plan.output_count; ++k) {
      const kernel_group& it = plan.groups[plan.output_group[k]];
      all.at[k] = place(it.output, it.size);
    }
    return all;
  }

 private:
  void run_forward(int g) {
    const operands<T> o = of(g, true);
    if constexpr (!device::is_host)
      if (g == 0 && step_.forward_from_stored)
        return this->observed(o, {g, pass_direction::forward, o.count, o.first_sample},
                              [&] { step_.forward_from_stored(step_.queue, o, step_.stored_batch); });
    run(code[std::size_t(g)].forward, o, g, pass_direction::forward);
  }
  template <class Passed>
  void backward_from(int group, int segment, bool adds, Passed& passed) {
    const int opens = segment > 0 ? plan.first_of_segment[segment] - (plan.is_cut ? 1 : 0) : -1;
    for (int g = group; g > opens; --g) {
      compute_again_before(g);
      if (!plan.groups[g].trains) continue;
      if (trains(g)) {
        operands<T> o = of(g);
        o.adds_dw = adds || plan.groups[g].adds_dw;
        run(code[std::size_t(g)].backward, o, g, pass_direction::backward);
      }
      passed(g);
    }
    if (!plan.is_cut && segment > 0 && trains(opens))
      run(code[std::size_t(opens)].collect_backward, collecting(opens), opens, pass_direction::backward, true);
  }

  /// The end of the trained parameter that begins at `begin`, padding included.
  static long trained_end(long begin) {
    static constexpr auto trained = trained_ranges(layout_of_program<Program>);
    for (int i = 0; i < trained.count; ++i)
      if (trained.ranges[i].begin == begin) return trained.ranges[i].end;
    return begin;
  }

  T* place(workspace_location where, int size) { return work_.at(where, size, at_); }

  /// in_forward: called from the forward pass. Later, recomputed activations of a piece may be at other addresses.
  [[gnu::noinline]] operands<T> of(int g, bool in_forward = false) {
    const kernel_group& it = plan.groups[g];
    const auto output_of = [&](const kernel_group& from) {
      if constexpr (plan.piece_count > 1)
        if (in_forward) return place(from.first_output, from.stored_size());
      return place(from.output, from.stored_size());
    };
    operands<T> o = operands_of(
        g, [&](int k) { return output_of(plan.groups[it.input[k]]); },
        [&](int k) { return place(plan.groups[it.input[k]].gradient, plan.groups[it.input[k]].stored_size()); });
    o.y = output_of(it);
    o.dy = place(it.gradient, it.stored_size());
    o.saved = place(plan.piece_count > 1 && in_forward ? it.first_saved : it.saved, it.kernel.saved);
    o.scratch = work_.scratch();
    if (const T* const weights = gradient_weights_of(g); weights && !in_forward) o.weights = weights;
    return o;
  }

  /// Before the backward of the last group of a piece, recomputes the activations of the piece.
  void compute_again_before([[maybe_unused]] int g) {
    if constexpr (plan.piece_count > 1) {
      const int piece = plan.groups[g].piece;
      if (g + 1 != plan.first_of_piece[piece + 1]) return;
      for (int h = plan.first_of_piece[piece]; h <= g; ++h)
        if (plan.groups[h].runs_again) run(code[std::size_t(h)].forward, of(h), h, pass_direction::forward);
    }
  }

  /// The operands while statistics are collected: these are then the sums of the leaf.
  operands<T> collecting(int g) {
    operands<T> o = of(g);
    o.statistics = sums_.statistics_at(plan.groups[g].statistics);
    return o;
  }
};

}  // namespace detail

}  // namespace strata
