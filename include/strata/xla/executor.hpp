// The executor of strategies whose step is one module that a PJRT plugin runs, on one device or on several replicas.
#pragma once
#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <strata/base/arena.hpp>
#include <strata/base/error.hpp>
#include <strata/base/random.hpp>
#include <strata/concepts/process_group.hpp>
#include <strata/distribute/counted_optimizer.hpp>
#include <strata/distribute/executor.hpp>
#include <strata/program/initialize.hpp>
#include <strata/program/metric_sums.hpp>
#include <strata/program/program.hpp>
#include <strata/xla/choose_devices.hpp>
#include <strata/xla/module.hpp>
#include <strata/xla/pjrt/client.hpp>
#include <strata/xla/pjrt/executable_cache.hpp>
#include <strata/xla/running_module.hpp>
#include <tuple>
#include <utility>
#include <vector>

namespace strata {

/// Where the modules of a program come from: of the emitter, or in tests of the test itself.
///   `training(optimizer, options)`, `evaluation(options)`, `prediction(options)`   return a stablehlo::module_text
///   `step_scalars(optimizer, step, rate)`   a std::vector<T>: the argument step_scalars of a step
template <class M, class Program>
concept module_source = requires(const typename Program::optimizer& optimizer, const stablehlo::module_options& options) {
  { M::training(optimizer, options) } -> std::same_as<stablehlo::module_text>;
  { M::evaluation(options) } -> std::same_as<stablehlo::module_text>;
  { M::prediction(options) } -> std::same_as<stablehlo::module_text>;
  { M::step_scalars(optimizer, 0L, 0.1) } -> std::same_as<std::vector<typename Program::value_type>>;
};

/// Parameters and the optimizer's state lie on the devices, a copy on each; the host has copies of them when they are read. A
/// batch is cut into as many parts of equal size as there are replicas; where it is shorter than the batches that were prepared,
/// the last rows are padding, which counts for nothing. Each size of batch that is prepared is a module of its own.
template <class Program, class Modules>
class module_executor : public executor_defaults, public counted_optimizer<typename Program::optimizer> {
  static_assert(module_source<Modules, Program>);
  using counted = counted_optimizer<typename Program::optimizer>;
  using T = typename Program::value_type;
  using running_module = detail::running_module;
  static constexpr const auto& layout = layout_of_program<Program>;
  static constexpr std::size_t places = std::size_t(layout.count);

  enum class kind { training, evaluation, prediction };
  struct made_module {
    kind what;
    stablehlo::module_options options;
    std::unique_ptr<running_module> module;
  };
  struct copy {
    arena<T> values;
    bool is_valid = true;    // equal to what the devices have
    bool is_written = true;  // the devices do not have it yet
  };

  module_devices on_;
  philox seed_;
  solo_group group_;
  pjrt::executable_cache cache_;
  mutable detail::device_state state_;
  mutable copy parameters_, slots_;
  std::vector<stablehlo::tensor_type> types_of_slots_;  // [arena][slot of the layout]; known with the first training module
  std::vector<made_module> modules_;
  std::vector<int> rows_[2];  // of replicas, that have been prepared: for training, for inference
  std::vector<T> step_scalars_;
  arena<T> gradient_;  // see keep_gradient

 public:
  using counted::learning_rate, counted::optimizer, counted::set_step, counted::step;

  module_executor(typename Program::optimizer o, std::uint64_t seed, module_devices on)
      : counted(std::move(o)),
        on_(std::move(on)),
        seed_{seed},
        cache_(on_.cache),
        state_(places * std::size_t(1 + optimizer().slots()), on_.replicas),
        parameters_{arena<T>(std::size_t(layout.size))},
        slots_{arena<T>(std::size_t(layout.trainable) * std::size_t(optimizer().slots()))} {
    initialize_parameters(layout, parameters_.values.span(), seed);
  }

  const pjrt::client& client() const { return *on_.client; }
  int replicas() const { return on_.replicas; }
  std::uint64_t seed() const { return seed_.key; }
  solo_group& group() { return group_; }
  const solo_group& group() const { return group_; }

  std::span<T> parameters() {
    return read(parameters_, [this](const auto& f) { this->each_parameter(f); });
  }
  std::span<const T> parameters() const {
    return read(parameters_, [this](const auto& f) { this->each_parameter(f); });
  }
  /// What the optimizer keeps: one array of the layout's trainable size after the other.
  std::span<T> slots() {
    return read(slots_, [this](const auto& f) { this->each_slot(f); });
  }
  /// The spans that were read may have been written to.
  void parameters_changed() {
    parameters_.is_written = parameters_.is_valid;
    slots_.is_written = slots_.is_valid;
  }
  static void drop_rounding_errors() {}
  /// Whether gradient() is kept from the next step on.
  [[gnu::cold]] void keep_gradient(bool keep) { gradient_ = arena<T>(keep ? std::size_t(layout.trainable) : 0); }
  /// The mean over the samples of the last step, before penalties and clipping, at the places of the layout; 0 before the first
  /// step. Empty if it is not kept.
  std::span<const T> gradient() const { return gradient_.span(); }
  static void observe(kernel_observer* observer) {
    if (observer)
      throw_error(
          "a step of this strategy is one module on a device, whose kernels cannot be observed: profiler and check_numerics need "
          "another strategy, such as one_device");
  }

  /// Compiles the training module of this batch size, if it is new.
  void prepare(int batch, purpose why) {
    const int rows = (batch + on_.replicas - 1) / on_.replicas;
    std::vector<int>& known = rows_[why == purpose::inference];
    if (const auto at = std::lower_bound(known.begin(), known.end(), rows); at == known.end() || *at != rows)
      known.insert(at, rows);
    if (why == purpose::training) module(kind::training, rows, batch, false);
  }

  metric_sums<Program> train_step(const samples<T>& batch) {
    running_module& step_module = module_for(kind::training, batch);
    write_state();
    step_scalars_ = Modules::step_scalars(optimizer(), step(), learning_rate());
    detail::host_arguments from = arguments_of(batch);
    from.step_scalars = std::as_bytes(std::span(step_scalars_));
    from.random_key = seed_.fork(std::uint64_t(step()) + (1ull << 32)).key;
    parameters_.is_valid = slots_.is_valid = false;
    step_module.run(state_, from);
    set_step(step() + 1);
    if (gradient_.size() > 0) [[unlikely]]
      read_gradient(step_module);
    return sums_of(step_module);
  }

  metric_sums<Program> finish() { return {}; }

  metric_sums<Program> evaluate_step(const samples<T>& batch) {
    running_module& m = module_for(kind::evaluation, batch);
    write_state();
    m.run(state_, arguments_of(batch));
    return sums_of(m);
  }

  /// For each output the predictions of each sample, row after row. Labels are not needed.
  void predict(const samples<T>& batch, const output_rows<T>& out) {
    running_module& m = module_for(kind::prediction, batch);
    write_state();
    m.run(state_, arguments_of(batch));
    std::vector<std::byte> rows;
    for (std::size_t i = 0; i < m.results().size(); ++i) {
      const stablehlo::argument& result = m.results()[i];
      if (result.what != stablehlo::role::prediction) continue;
      const std::size_t bytes = result.type.bytes(), of_row = bytes / std::size_t(m.rows());
      std::byte* to = reinterpret_cast<std::byte*>(out.at[result.index]);
      for (int r = 0, left = batch.count; left > 0; ++r, left -= m.rows()) {
        const std::size_t own = std::size_t(std::min(left, m.rows())) * of_row;
        if (own == bytes) {
          m.result(i, r).copy_to_host(result.type, {to, bytes}).wait("read the predictions");
        } else {
          rows.resize(bytes);
          m.result(i, r).copy_to_host(result.type, rows).wait("read the predictions");
          std::copy_n(rows.data(), own, to);
        }
        to += own;
      }
    }
  }

 private:
  /// The module for a batch of this size: of the smallest size that was prepared and is large enough.
  running_module& module_for(kind what, const samples<T>& batch) {
    const bool infers = what != kind::training;
    std::vector<int>& known = rows_[infers];
    const int least = (batch.count + on_.replicas - 1) / on_.replicas;
    if (known.empty() || known.back() < least) prepare(batch.count, infers ? purpose::inference : purpose::training);
    const int rows = *std::lower_bound(known.begin(), known.end(), least);
    bool has_weights = false;
    for (int k = 0; k < ends_of_program<Program>.output_count; ++k) has_weights |= batch.truths[k].weights != nullptr;
    return module(what, rows, batch.count, has_weights);
  }
  running_module& module(kind what, int rows, int count, bool has_weights) {
    const bool predicts = what == kind::prediction;
    const stablehlo::module_options options{.rows = rows,
                                            .replicas = on_.replicas,
                                            .is_padded = !predicts && count < rows * on_.replicas,
                                            .has_weights = !predicts && has_weights,
                                            .keeps_gradient = what == kind::training && gradient_.size() > 0,
                                            .platform = stablehlo::traits_of_platform(on_.client->platform())};
    for (const made_module& m : modules_)
      if (m.what == what && m.options == options) return *m.module;
    return make_module(what, options);
  }
  [[gnu::cold, gnu::noinline]] running_module& make_module(kind what, const stablehlo::module_options& options) {
    stablehlo::module_text text = what == kind::training     ? Modules::training(optimizer(), options)
                                  : what == kind::evaluation ? Modules::evaluation(options)
                                                             : Modules::prediction(options);
    if (what == kind::training && types_of_slots_.empty()) {
      types_of_slots_.resize(places * std::size_t(optimizer().slots()));
      for (const stablehlo::argument& a : text.arguments)
        if (a.what == stablehlo::role::slot) types_of_slots_[std::size_t(a.arena) * places + std::size_t(a.index)] = a.type;
    }
    pjrt::executable code = cache_.compile(*on_.client, text);
    modules_.push_back(
        {what, options, std::make_unique<running_module>(on_.client, std::move(code), std::move(text), options.rows, place_of)});
    return *modules_.back().module;
  }

  /// The number in the state of what stays there: parameters, then the slots of the optimizer, arena after arena.
  static std::size_t place_of(const stablehlo::argument& a) {
    if (a.what == stablehlo::role::parameter) return std::size_t(a.index);
    if (a.what == stablehlo::role::slot) return std::size_t(1 + a.arena) * places + std::size_t(a.index);
    return running_module::no_state;
  }

  /// f(number in the state, type, elements of the copy on the host)
  void each_parameter(const auto& f) const {
    for (std::size_t i = 0; i < places; ++i) {
      const parameter_slot& p = layout.slots[i];
      stablehlo::tensor_type type{stablehlo::element_of<T>, {}};
      for (int d = 0; d < p.what.extents.rank(); ++d) type.extents.push_back(p.what.extents[d]);
      f(i, type, parameters_.values.data() + p.offset);
    }
  }
  void each_slot(const auto& f) const {
    for (std::size_t i = 0; i < types_of_slots_.size(); ++i)
      if (const parameter_slot& p = layout.slots[i % places]; p.what.trainable)
        f(places + i, types_of_slots_[i], slots_.values.data() + long(i / places) * layout.trainable + p.offset);
  }

  std::span<T> read(copy& to, const auto& each) const {
    if (!to.is_valid) {
      if (state_.is_lost)
        throw_error(
            "the weights are lost: the last training step failed on the device while it changed them. Make a new trainer, and "
            "load what was saved");
      std::vector<pjrt::event> events;
      each([&](std::size_t place, const stablehlo::tensor_type& type, T* values) {
        events.push_back(state_.at(place, 0).copy_to_host(type, {reinterpret_cast<std::byte*>(values), type.bytes()}));
      });
      for (const pjrt::event& e : events) e.wait("read the weights");
      to.is_valid = true;
    }
    return to.values.span();
  }

  void write_state() {
    if (state_.is_lost) parameters();  // which says so
    write(parameters_, [this](const auto& f) { this->each_parameter(f); });
    if (!types_of_slots_.empty()) write(slots_, [this](const auto& f) { this->each_slot(f); });
  }
  void write(copy& from, const auto& each) {
    if (!from.is_written) return;
    each([&](std::size_t place, const stablehlo::tensor_type& type, const T* values) {
      for (int r = 0; r < on_.replicas; ++r)
        state_.at(place, std::size_t(r)) =
            on_.client->upload({reinterpret_cast<const std::byte*>(values), type.bytes()}, type, r);
    });
    from.is_written = false;  // after an error the next call sends all of them again
  }

  detail::host_arguments arguments_of(const samples<T>& batch) const {
    static constexpr const end_sizes& ends = ends_of_program<Program>;
    detail::host_arguments from;
    from.count = batch.count;
    for (std::size_t k = 0; k < std::size_t(ends.input_count); ++k) from.inputs[k] = batch.inputs[k];
    for (std::size_t k = 0; k < std::size_t(ends.output_count); ++k) {
      const truth_rows<T>& truth = batch.truths[k];
      from.truths[k] = truth.labels ? static_cast<const void*>(truth.labels) : truth.targets;
      from.weights[k] = truth.weights;
    }
    return from;
  }

  [[gnu::cold, gnu::noinline]] void read_gradient(const running_module& m) {
    for (std::size_t i = 0; i < m.results().size(); ++i)
      if (const stablehlo::argument& result = m.results()[i]; result.what == stablehlo::role::gradient) {
        T* const to = gradient_.data() + layout.slots[result.index].offset;
        m.result(i, 0)
            .copy_to_host(result.type, {reinterpret_cast<std::byte*>(to), result.type.bytes()})
            .wait("read the gradient");
      }
  }

  metric_sums<Program> sums_of(const running_module& m) const {
    metric_sums<Program> out;
    for (std::size_t i = 0; i < m.results().size(); ++i) {
      const stablehlo::argument& result = m.results()[i];
      if (result.what != stablehlo::role::sums) continue;
      if (result.type.size() != std::int64_t(2 * out.size()))
        throw_error({"the module has sums of ", result.type.text(), " instead of ", out.size(), " pairs"});
      const auto read = [&](auto zero) {
        std::array<decltype(zero), 2 * std::tuple_size_v<metric_sums<Program>>> values;
        m.result(i, 0).copy_to_host(result.type, std::as_writable_bytes(std::span(values))).wait("read the metrics");
        for (std::size_t k = 0; k < out.size(); ++k) out[k] = {double(values[2 * k]), double(values[2 * k + 1])};
      };
      if (result.type.of == stablehlo::element::f64)
        read(0.0);
      else
        read(0.0f);
    }
    return out;
  }
};

}  // namespace strata
