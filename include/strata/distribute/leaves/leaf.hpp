// A leaf: a fixed share of the global batch with its own sums; and the workspace in which it runs the plan.
#pragma once
#include <algorithm>
#include <strata/base/arena.hpp>
#include <strata/cpu/update.hpp>
#include <strata/distribute/executor.hpp>
#include <strata/program/compiled.hpp>

namespace strata {

/// What a step is about, the same for all leaves.
template <class T>
struct step_context {
  const T* weights = nullptr;
  const T* derived = nullptr;
  double* statistics = nullptr;  // of the whole batch, reduced
  double total = 0;              // samples in the global batch
  philox random{};
};

/// Memory for the activations of the samples of a leaf and of a micro-batch, and scratch.
template <class Program, class Backend, purpose Why>
class workspace {
  using T = typename Program::value_type;
  static constexpr const auto& plan = plan_of<Program, Backend, Why>;
  arena<T> lasting_, passing_, scratch_;
  int leaf_ = 0, micro_batch_ = 0;

 public:
  /// leaf: how many samples are kept from pass to pass, if the plan needs that.
  void prepare(int leaf, int micro_batch) {
    leaf_ = std::max(leaf_, leaf), micro_batch_ = std::max(micro_batch_, micro_batch);
    lasting_.grow(std::size_t(leaf_) * std::size_t(plan.workspace));
    passing_.grow(std::size_t(micro_batch_) * std::size_t(plan.passing));
    scratch_.grow(std::size_t(plan.scratch) + std::size_t(micro_batch_) * std::size_t(plan.scratch_per_sample));
  }
  /// Where the numbers of a micro-batch begin in a buffer with `size` of them per sample; `first`: of its samples, in the leaf.
  T* at(location where, int size, int first) {
    if (where.offset < 0) return nullptr;
    if (where.passes) return passing_.data() + std::size_t(where.offset) * std::size_t(micro_batch_);
    return lasting_.data() + std::size_t(where.offset) * std::size_t(leaf_) + std::size_t(first) * std::size_t(size);
  }
  T* scratch() { return scratch_.data(); }
  /// Of the last forward or infer, (count, output shape).
  const T* predictions() { return at(plan.groups[plan.group_count - 1].output, 0, 0); }
};

/// Sums over the samples of a leaf: gradient | statistics | tallies. These are all that strategies ever add up. The gradient lies
/// where it is told to: a process has few of all leaves.
template <class Program, class Backend>
class leaf_sums {
  using T = typename Program::value_type;
  static constexpr const auto& plan = plan_of<Program, Backend>;
  static constexpr const auto& layout = layout_of_program<Program>;
  T* gradient_ = nullptr;
  arena<double> sums_;

 public:
  static constexpr std::size_t statistics = std::size_t(plan.statistics), tally_count = std::tuple_size_v<tallies<Program>>;
  static constexpr std::size_t size = statistics + 2 * tally_count;  // without the gradient

  leaf_sums() : sums_(size) {}
  void place_gradient(T* at) { gradient_ = at; }
  T* gradient() const { return gradient_; }  // null: another process computes this leaf
  double* all() { return sums_.data(); }
  double* statistics_at(int offset) { return sums_.data() + offset; }
  /// (sum, count) of the loss, then of each metric.
  double* tally_at(std::size_t k) { return sums_.data() + statistics + 2 * k; }

  void clear_sums() { std::ranges::fill(sums_.span(), 0.0); }
  void clear_gradient() { std::fill_n(gradient_, layout.trainable, T{}); }
};

namespace detail {

struct nobody_is_told {
  constexpr void operator()(int) const {}
};

/// One pass of the plan over `batch`, whose first sample is number `first` of the global batch, and number `at` of its leaf.
template <class Program, class Backend, purpose Why>
class pass {
  using T = typename Program::value_type;
  static constexpr const auto& plan = plan_of<Program, Backend, Why>;
  static constexpr const auto& code = code_table<Program, Backend, Why>;
  const step_context<T>& step_;
  workspace<Program, Backend, Why>& work_;
  leaf_sums<Program, Backend>& sums_;
  samples<T> batch_;
  std::int64_t first_;
  int at_;

 public:
  pass(const step_context<T>& step, workspace<Program, Backend, Why>& work, leaf_sums<Program, Backend>& sums, samples<T> batch,
       std::int64_t first, int at = 0)
      : step_(step), work_(work), sums_(sums), batch_(batch), first_(first), at_(at) {}

  void forward(int segment) {
    for (int g = plan.first_of_segment[segment]; g < plan.first_of_segment[segment + 1]; ++g) code[std::size_t(g)].forward(of(g));
    if (segment + 1 < plan.segment_count) {
      const int next = plan.first_of_segment[segment + 1];
      code[std::size_t(next)].collect(collecting(next));
    }
  }

  /// From the whole-batch group that ends the segment down to the one that opens it, whose own backward awaits its statistics.
  /// passed(g): the gradients of group g have been added.
  template <class Passed = nobody_is_told>
  void backward(int segment, bool adds, Passed&& passed = {}) {
    const bool last = segment + 1 == plan.segment_count;
    const int opens = segment > 0 ? plan.first_of_segment[segment] : -1;
    for (int g = plan.first_of_segment[segment + 1] - (last ? 1 : 0); g > opens; --g) {
      if (!plan.groups[g].trains) continue;
      operands<T> o = of(g);
      o.adds_dw = adds;
      code[std::size_t(g)].backward(o);
      passed(g);
    }
    if (segment > 0) code[std::size_t(opens)].collect_backward(collecting(opens));
  }

  /// Backward of the only micro-batch of the only leaf, with an update of each parameter as soon as its gradient is known:
  /// update(first element, behind the last one, gradients of these), update_product(factors, first element)
  template <class Update, class UpdateProduct>
  void backward_and_update(Update&& update, UpdateProduct&& update_product) {
    for (int g = plan.group_count - 1; g >= 0; --g) {
      const group& it = plan.groups[g];
      if (!it.trains) continue;
      const operands<T> o = of(g);
      if (const auto into = code[std::size_t(g)].backward_into) {
        struct everything {
          Update& update;
          UpdateProduct& update_product;
          const group& it;
        } all{update, update_product, it};
        into(o, {&all,
                 [](void* context, int parameter, long first, long size, const T* sums) {
                   const everything& to = *static_cast<everything*>(context);
                   const long begin = to.it.parameters[parameter] + first;
                   to.update(begin, begin + (size + slice_alignment - 1) / slice_alignment * slice_alignment, sums);
                 },
                 [](void* context, int parameter, const T* x, const T* dz, int count, int rows, int columns) {
                   const everything& to = *static_cast<everything*>(context);
                   to.update_product(gradient_product<T>{x, dz, count, rows, columns}, to.it.parameters[parameter]);
                 }});
      } else {
        code[std::size_t(g)].backward(o);
        for (int k = 0; k < it.parameter_count; ++k)
          if (it.trainable[k]) update(it.parameters[k], trained_end(it.parameters[k]), sums_.gradient() + it.parameters[k]);
      }
    }
  }

  void infer() {
    for (int g = 0; g < plan.group_count; ++g) code[std::size_t(g)].infer(of(g));
  }

  /// The same without labels: the loss only passes predictions through.
  void predict() {
    for (int g = 0; g < plan.group_count; ++g) {
      operands<T> o = of(g);
      o.loss = nullptr;
      code[std::size_t(g)].infer(o);
    }
  }

  void update_state(int g, T* weights) {
    T* w[max_group_parameters] = {};
    for (int k = 0; k < plan.groups[g].parameter_count; ++k) w[k] = weights + plan.groups[g].parameters[k];
    code[std::size_t(g)].update_state(of(g), w);
  }

  void measure() {
    const std::size_t size = std::size_t(Program::network::output_shape.size());
    const T* prediction = place(plan.groups[plan.group_count - 1].output, int(size));
    [&]<class... M>(list<M...>) {
      for (int n = 0; n < batch_.count; ++n) {
        const std::span<const T> one(prediction + std::size_t(n) * size, size);
        [[maybe_unused]] std::size_t k = 0;
        if constexpr (Program::loss::labels == label_kind::sparse)
          (add(++k, double(M::measure(one, batch_.labels[n]))), ...);
        else
          (add(++k, double(M::measure(one, std::span<const T>(batch_.targets + std::size_t(n) * size, size)))), ...);
      }
    }(typename Program::metrics{});
  }

 private:
  /// Where the trained parameter that begins there ends, padding included.
  static long trained_end(long begin) {
    static constexpr auto trained = trained_ranges(layout_of_program<Program>);
    for (int i = 0; i < trained.count; ++i)
      if (trained.ranges[i].begin == begin) return trained.ranges[i].end;
    return begin;
  }

  void add(std::size_t k, double value) {
    sums_.tally_at(k)[0] += value;
    sums_.tally_at(k)[1] += 1;
  }

  T* place(location where, int size) { return work_.at(where, size, at_); }

  [[gnu::noinline]] operands<T> of(int g) {
    const group& it = plan.groups[g];
    operands<T> o;
    o.count = batch_.count;
    for (int k = 0; k < it.arity; ++k) {
      const int from = it.input[k];
      o.x[k] = from < 0 ? batch_.x : place(plan.groups[from].output, plan.groups[from].size);
      o.dx[k] = it.wants_dx[k] ? place(plan.groups[from].gradient, plan.groups[from].size) : nullptr;
      o.adds_dx[k] = it.adds_dx[k];
    }
    for (int k = 0; k < it.parameter_count; ++k) {
      o.w[k] = step_.weights + it.parameters[k];
      if (it.trainable[k] && sums_.gradient()) o.dw[k] = sums_.gradient() + it.parameters[k];
    }
    o.y = place(it.output, it.size);
    o.dy = place(it.gradient, it.size);
    o.saved = place(it.saved, it.kernel.saved);
    o.scratch = work_.scratch();
    o.derived = step_.derived + it.derived;
    o.statistics = step_.statistics + it.statistics;
    o.total = step_.total;
    o.random = step_.random.fork(std::uint64_t(it.first));
    o.first_sample = first_;
    o.labels = batch_.labels;
    o.targets = batch_.targets;
    o.loss = sums_.tally_at(0);
    return o;
  }

  /// While collecting, the statistics are the leaf's own.
  operands<T> collecting(int g) {
    operands<T> o = of(g);
    o.statistics = sums_.statistics_at(plan.groups[g].statistics);
    return o;
  }
};

}  // namespace detail

}  // namespace strata
