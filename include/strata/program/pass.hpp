// One pass of a plan over a micro-batch: which kernels run, and their operands. It is the same on every device: an engine
// provides the memory and the queue.
#pragma once
#include <algorithm>
#include <memory>
#include <span>
#include <strata/base/no_callback.hpp>
#include <strata/base/rounded.hpp>
#include <strata/concepts/batch_source.hpp>
#include <strata/concepts/device.hpp>
#include <strata/kernel/kernel_observer.hpp>
#include <strata/network/leaves.hpp>
#include <strata/network/parameter_ranges.hpp>
#include <strata/program/compiled.hpp>
#include <strata/program/metric_sums.hpp>
#include <strata/program/trained_groups.hpp>
#include <tuple>
#include <vector>

namespace strata {

/// The inputs of a step that are the same for all leaves. Addresses are those of the device.
template <class T, class Device>
struct step_context {
  const T* weights = nullptr;
  const T* derived = nullptr;
  double* statistics = nullptr;  // of the whole batch, reduced
  double total = 0;              // samples in the global batch
  philox random{};
  [[no_unique_address]] typename Device::queue queue{};
  kernel_observer* observer = nullptr;                    // of training
  const Device* on = nullptr;                             // set with an observer, unless the device is the host
  const number_reader* reader = nullptr;                  // for the observer
  leaves_of_call leaves{};                                // of each pass
  const philox* random_of_group = nullptr;                // in memory of a device whose kernels read it there
  const trained_group* trained = nullptr;                 // which groups train while layers are frozen; null: those of the plan
  const std::shared_ptr<const void>* prepared = nullptr;  // of each group, what pass::prepare made; null: no kernel prepares
  rank_exchange<T>* ranks = nullptr;                      // that divide layers
  /// Of a training step whose batch is not there yet: the forward of the first group, which makes it of `batch_from`.
  void (*forward_of_first)(const typename Device::queue&, const operands<T>&, const void* batch_from) = nullptr;
  const void* batch_from = nullptr;
  const T* const* segments = nullptr;  // instead of `weights`, for the trained parameters of each segment of a plan that is cut
};

/// Memory for activations and their gradients (of a leaf, and of a micro-batch), and scratch.
template <class Program, class Backend, purpose Why>
class workspace {
  using T = typename Program::value_type;
  using device = device_of<Backend>;
  using buffer = typename device::template buffer<T>;
  static constexpr const auto& plan = plan_of<Program, Backend, Why>;
  buffer lasting_, passing_, scratch_;
  int leaf_ = 0, micro_batch_ = 0;

 public:
  /// Of all its memory, in elements.
  static constexpr std::size_t size(int leaf, int micro_batch) {
    return std::size_t(leaf) * std::size_t(plan.workspace) + std::size_t(micro_batch) * std::size_t(plan.passing) +
           std::size_t(plan.scratch) + std::size_t(micro_batch) * std::size_t(plan.scratch_per_sample);
  }
  /// leaf: the number of samples whose activations are kept between passes, if the plan needs that.
  void prepare(const device& on, int leaf, int micro_batch) {
    leaf = std::max(leaf_, leaf), micro_batch = std::max(micro_batch_, micro_batch);
    leaf_ = micro_batch_ = 0;  // until all of it is there
    grow(on, lasting_, std::size_t(leaf) * std::size_t(plan.workspace));
    grow(on, passing_, std::size_t(micro_batch) * std::size_t(plan.passing));
    grow(on, scratch_, std::size_t(plan.scratch) + std::size_t(micro_batch) * std::size_t(plan.scratch_per_sample));
    leaf_ = leaf, micro_batch_ = micro_batch;
  }
  /// Where a micro-batch begins in a buffer of `size` elements per sample. first: the index of its first sample in the leaf.
  T* at(workspace_location where, int size, int first) {
    if (where.offset < 0) return nullptr;
    if (where.passes) return passing_.data() + std::size_t(where.offset) * std::size_t(micro_batch_);
    return lasting_.data() + std::size_t(where.offset) * std::size_t(leaf_) + std::size_t(first) * std::size_t(size);
  }
  T* scratch() { return scratch_.data(); }
  /// The predictions of the last forward or infer, for output k: (count, output shape).
  const T* predictions(int k) { return at(plan.groups[plan.output_group[k]].output, 0, 0); }

 private:
  static void grow(const device& on, buffer& memory, std::size_t size) {
    if (size <= memory.size()) return;
    if constexpr (!device::is_host) memory = {};  // it may not have room for both
    memory = on.template allocate<T>(size);
    if constexpr (device::is_host) detail::poison(memory.span());
  }
};

/// The sums over the samples of a leaf: the gradient, and in `sums` statistics | (sum, count) of the loss of each output | of the
/// metrics of each output. Strategies add up these and nothing else.
template <class Program, class Backend>
struct leaf_sums {
  using T = typename Program::value_type;
  static constexpr std::size_t statistics = std::size_t(plan_of<Program, Backend>.statistics),
                               metric_count = detail::sum_counts<Program>::of_leaf,
                               size = statistics + 2 * metric_count;  // without the gradient

  T* gradient = nullptr;  // null: another process computes this leaf
  double* sums = nullptr;

  double* statistics_at(int offset) const { return sums + offset; }
  double* loss_at(int output) const { return sums + statistics + 2 * output; }
  double* metrics() const { return sums + statistics + 2 * detail::sum_counts<Program>::outputs; }
};

/// The metric sums over all leaves of the current batch. The loss includes the penalties of regularizers for each sample.
template <class Engine>
metric_sums<typename Engine::program> add_metric_sums(Engine& engine) {
  using counts = detail::sum_counts<typename Engine::program>;
  constexpr auto first = leaf_sums<typename Engine::program, typename Engine::backend>::statistics;
  metric_sums<typename Engine::program> out;
  const int leaves = engine.leaves();
  const auto sum_of = [&](std::size_t i) { return sum_in_tree([&](int l) { return engine.sums(l)[first + i]; }, 0, leaves); };
  constexpr std::size_t total = counts::reported - counts::of_leaf;
  for (std::size_t k = 0; k < counts::of_leaf; ++k) out[total + k] = {sum_of(2 * k), sum_of(2 * k + 1)};
  if constexpr (total > 0) {
    out[0].count = out[1].count;
    for (std::size_t k = 0; k < counts::outputs; ++k) out[0].sum += out[total + k].sum;
  }
  if constexpr (layout_of_program<typename Engine::program>.has_regularizers())
    for (const double penalty : engine.penalties()) out[0].sum += detail::rounded(penalty * out[0].count);
  return out;
}

namespace detail {

/// What passes over a plan have in common, wherever their arrays lie. first: the index of the first sample of the batch in the
/// global batch.
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
    step_.observer->ended(call, numbers);
  }

  bool trains(int g) const { return step_.trained ? step_.trained[g].trains : plan.groups[g].trains; }
  bool trains(int g, int parameter) const {
    return step_.trained ? step_.trained[g].parameters[parameter] : plan.groups[g].trainable[parameter];
  }

  /// Where the gradient of a leaf begins in the arena, while this group is computed.
  static constexpr long gradient_begin(const kernel_group& it) { return plan.is_cut ? plan.begin_of_segment[it.segment] : 0; }
  const T* weights_of(const kernel_group& it, int parameter) const {
    if constexpr (plan.is_cut)
      if (step_.segments && it.trainable[parameter]) return step_.segments[it.segment];
    return step_.weights;
  }

  /// All but y, dy, saved and scratch. input(k), input_gradient(k): where those lie that are not the batch.
  template <class Input, class Gradient>
  operands<T> operands_of(int g, Input&& input, Gradient&& input_gradient) {
    const kernel_group& it = plan.groups[g];
    operands<T> o;
    o.count = batch_.count;
    for (int k = 0; k < it.arity; ++k) {
      const int from = it.input[k];
      o.x[k] = from < 0 ? batch_.inputs[-1 - from] : input(k);
      o.dx[k] = it.wants_dx[k] && trains(from) ? input_gradient(k) : nullptr;
      o.adds_dx[k] = it.adds_dx[k];
    }
    for (int k = 0; k < it.parameter_count; ++k) {
      o.w[k] = weights_of(it, k) + it.parameters[k];
      if (sums_.gradient && trains(g, k)) o.dw[k] = sums_.gradient + it.parameters[k] - gradient_begin(it);
    }
    if (step_.prepared) o.prepared = step_.prepared[g].get();
    o.derived = step_.derived + it.derived;
    o.statistics = step_.statistics + it.statistics;
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
};

/// One pass of the plan over `batch`. first: the index of its first sample in the global batch; at: that in its leaf.
template <class Program, class Backend, purpose Why>
class pass : kernel_calls<Program, Backend, Why> {
  using calls = kernel_calls<Program, Backend, Why>;
  using calls::batch_, calls::code, calls::operands_of, calls::plan, calls::run, calls::step_, calls::sums_, calls::trains;
  using typename calls::T, typename calls::device;
  workspace<Program, Backend, Why>& work_;
  int at_;

 public:
  pass(const step_context<T, device>& step, workspace<Program, Backend, Why>& work, leaf_sums<Program, Backend> sums,
       const samples<T>& batch, std::int64_t first, int at = 0)
      : calls(step, sums, batch, first), work_(work), at_(at) {}

  /// Whether a kernel has to be prepared for a number of samples and leaves.
  static constexpr bool prepares = [] {
    for (const auto& each : code)
      if (each.prepare) return true;
    return false;
  }();
  /// What kernels have to know before the first pass over so many samples and leaves, group by group.
  std::vector<std::shared_ptr<const void>> prepare(bool trains) {
    std::vector<std::shared_ptr<const void>> all(code.size());
    for (std::size_t g = 0; g < code.size(); ++g)
      if (code[g].prepare) all[g] = code[g].prepare(step_.queue, of(int(g)), trains);
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
    if (!both || !trains(last) || step_.observer) {  // an observer sees both directions
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

  /// Of each output, on the device.
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
      if (g == 0 && step_.forward_of_first)
        return this->observed(o, {g, pass_direction::forward, o.count, o.first_sample},
                              [&] { step_.forward_of_first(step_.queue, o, step_.batch_from); });
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
        o.adds_dw = adds;
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

  /// in_forward: of the forward pass. Later, what a piece of the plan has computed again may lie elsewhere.
  [[gnu::noinline]] operands<T> of(int g, [[maybe_unused]] bool in_forward = false) {
    const kernel_group& it = plan.groups[g];
    const auto output_of = [&](const kernel_group& from) {
      if constexpr (plan.piece_count > 1)
        if (in_forward) return place(from.first_output, from.size);
      return place(from.output, from.size);
    };
    operands<T> o = operands_of(
        g, [&](int k) { return output_of(plan.groups[it.input[k]]); },
        [&](int k) { return place(plan.groups[it.input[k]].gradient, plan.groups[it.input[k]].size); });
    o.y = output_of(it);
    o.dy = place(it.gradient, it.size);
    o.saved = place(plan.piece_count > 1 && in_forward ? it.first_saved : it.saved, it.kernel.saved);
    o.scratch = work_.scratch();
    return o;
  }

  /// Before the backward of the last group of a piece: the activations of the piece.
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

/// Adds what metric M says of one sample to its sums, and goes on to those of the next metric.
template <class M, class T, class Truth>
constexpr void measure_sample(std::span<const T> prediction, Truth truth, double*& sums) {
  if constexpr (adds_several<M>) {
    M::add(prediction, truth, std::span<double>(sums, std::size_t(M::sums(int(prediction.size())))));
  } else {
    sums[0] += double(M::measure(prediction, truth));
    sums[1] += 1;
  }
  sums += 2 * pairs_of_sums<M>(int(prediction.size()));
}

/// Adds the metrics of one output, for each sample, to the sums at `to`.
template <class Loss, class... M, class T>
constexpr void measure_output(type_list<M...>, const T* predictions, std::size_t size, const truth_rows<T>& y, int count,
                              double* to) {
  for (int n = 0; n < count; ++n) {
    const std::span<const T> one(predictions + std::size_t(n) * size, size);
    [[maybe_unused]] double* sums = to;
    if constexpr (Loss::labels == label_kind::sparse)
      (measure_sample<M>(one, y.labels[n], sums), ...);
    else
      (measure_sample<M>(one, std::span<const T>(y.targets + std::size_t(n) * size, size), sums), ...);
  }
}

/// The same for all outputs, one after the other.
template <class Program, class T = typename Program::value_type>
constexpr void measure(const output_rows<const T>& predictions, const samples<T>& batch, double* to) {
  constexpr const end_sizes& ends = ends_of_program<Program>;
  [&]<class... Output>(type_list<Output...>) {
    [[maybe_unused]] int k = 0;
    const auto next = [&]<class One>(std::type_identity<One>) {
      measure_output<typename One::loss>(typename One::metrics{}, predictions.at[k], std::size_t(ends.outputs[k]),
                                         batch.truths[k], batch.count, to);
      to += 2 * pairs_of_metrics<Program>(std::size_t(k), typename One::metrics{});
      ++k;
    };
    (next(std::type_identity<Output>{}), ...);
  }(typename Program::outputs{});
}

/// What an engine of the host does with the predictions of a micro-batch. A backend whose ranks have a part of them specialises
/// it.
template <class Program, class Backend>
struct use_of_predictions {
  using T = typename Program::value_type;

  static void measure(const output_rows<const T>& predictions, const samples<T>& batch, double* to, rank_exchange<T>*) {
    detail::measure<Program>(predictions, batch, to);
  }
  /// Copies those of output k for `count` samples. to: null, where they are not wanted.
  static void give(const T* predictions, int k, int count, T* to, rank_exchange<T>*) {
    if (to) std::copy_n(predictions, count * ends_of_program<Program>.outputs[k], to);
  }
};

}  // namespace detail

}  // namespace strata
