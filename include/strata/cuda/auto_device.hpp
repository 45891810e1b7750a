// auto_device: the GPUs of this machine where there are some, else its CPU. The file that has the trainer is compiled by nvcc.
#pragma once
#include <functional>
#include <iostream>
#include <optional>
#include <span>
#include <strata/cuda/engine/engine.hpp>
#include <strata/program/kernel_list.hpp>
#include <strata/synchronous/synchronous.hpp>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace strata {

namespace core {
/// The executor of auto_device: that of all GPUs, or that of the CPU. Both are compiled.
template <class Program>
class auto_executor {
  using T = typename Program::value_type;
  using on_cpu = synchronous_executor<Program, default_backend>;
  using on_gpus = synchronous_executor<Program, cuda>;
  std::variant<on_cpu, on_gpus> chosen_;

  template <class Chosen, class F>
  static decltype(auto) visit(Chosen& chosen, F&& f) {
    if (auto* const gpus = std::get_if<on_gpus>(&chosen)) return f(*gpus);
    return f(*std::get_if<on_cpu>(&chosen));
  }

 public:
  static constexpr executor_traits traits = on_gpus::traits;

  auto_executor(typename Program::optimizer optimizer, std::uint64_t seed, const compute_options& cpu)
      : chosen_(std::in_place_type<on_cpu>, std::move(optimizer), seed, cpu) {}
  auto_executor(typename Program::optimizer optimizer, std::uint64_t seed, const cuda_options& gpus)
      : chosen_(std::in_place_type<on_gpus>, std::move(optimizer), seed, gpus) {}

  bool is_on_gpus() const { return std::holds_alternative<on_gpus>(chosen_); }

  void prepare(int batch, purpose why) {
    visit(chosen_, [&](auto& e) { e.prepare(batch, why); });
  }
  step_result<Program> train_step(const samples<T>& batch) {
    return visit(chosen_, [&](auto& e) -> step_result<Program> { return e.train_step(batch); });
  }
  metric_sums<Program> finish() { return {}; }
  void launch_together(long n) {
    visit(chosen_, [&](auto& e) { e.launch_together(n); });
  }
  /// See synchronous_executor; false on the CPU.
  bool keep_samples(const stored_samples& set)
    requires(traits.keeps_samples)
  {
    auto* const gpus = std::get_if<on_gpus>(&chosen_);
    return gpus && gpus->keep_samples(set);
  }
  void release_samples()
    requires(traits.keeps_samples)
  {
    if (auto* const gpus = std::get_if<on_gpus>(&chosen_)) gpus->release_samples();
  }
  metric_sums<Program> evaluate_step(const samples<T>& batch) {
    return visit(chosen_, [&](auto& e) { return e.evaluate_step(batch); });
  }
  void predict(const samples<T>& batch, const output_rows<T>& out) {
    visit(chosen_, [&](auto& e) { e.predict(batch, out); });
  }

  std::span<T> parameters() {
    return visit(chosen_, [](auto& e) { return e.parameters(); });
  }
  std::span<const T> parameters() const {
    return visit(chosen_, [](const auto& e) { return e.parameters(); });
  }
  std::span<T> slots() {
    return visit(chosen_, [](auto& e) { return e.slots(); });
  }
  void parameters_changed() {
    visit(chosen_, [](auto& e) { e.parameters_changed(); });
  }
  const typename Program::optimizer& optimizer() const {
    return visit(chosen_, [](const auto& e) -> const auto& { return e.optimizer(); });
  }
  long step() const {
    return visit(chosen_, [](const auto& e) { return e.step(); });
  }
  void set_step(long step) {
    visit(chosen_, [&](auto& e) { e.set_step(step); });
  }
  double learning_rate() const {
    return visit(chosen_, [](const auto& e) { return e.learning_rate(); });
  }
  void set_learning_rate(double rate) {
    visit(chosen_, [&](auto& e) { e.set_learning_rate(rate); });
  }
  std::optional<double> learning_rate_by_hand() const {
    return visit(chosen_, [](const auto& e) { return e.learning_rate_by_hand(); });
  }
  std::uint64_t seed() const {
    return visit(chosen_, [](const auto& e) { return e.seed(); });
  }

  solo_group& group() {
    return visit(chosen_, [](auto& e) -> auto& { return e.group(); });
  }
  const solo_group& group() const {
    return visit(chosen_, [](const auto& e) -> const auto& { return e.group(); });
  }
  static constexpr bool serve() { return false; }
  row_choice own_rows() const {
    return visit(chosen_, [](const auto& e) { return e.own_rows(); });
  }
  row_writers writers() const {
    return visit(chosen_, [](const auto& e) { return e.writers(); });
  }
  static constexpr double communicating() { return 0; }
  static constexpr double waiting() { return 0; }
  static void drop_rounding_errors() {}

  void observe(kernel_observer* observer) {
    visit(chosen_, [&](auto& e) { e.observe(observer); });
  }
  std::vector<listed_kernel> kernels() const {
    return is_on_gpus() ? kernel_list<Program, cuda>() : kernel_list<Program, default_backend>();
  }
  void freeze(std::span<const bool> slots) {
    visit(chosen_, [&](auto& e) { e.freeze(slots); });
  }
  void keep_gradient(bool keep) {
    visit(chosen_, [&](auto& e) { e.keep_gradient(keep); });
  }
  std::span<const T> gradient() const {
    return visit(chosen_, [](const auto& e) { return e.gradient(); });
  }
};
}  // namespace core

/// `auto_device{}` trains as `mirrored{gpus()}` does where this machine has a GPU, and as `one_device{}` does elsewhere.
struct auto_device {
  using backend = core::default_backend;
  static constexpr auto name = "auto_device";
  compute_options options{};  // on GPUs only `leaves` is used
  /// Called after the choice, with one line of text about it.
  std::function<void(const std::string&)> on_choice = [](const std::string& what) { std::clog << what + '\n'; };

  template <class Program>
  using executor = core::auto_executor<Program>;

  template <class Program>
  executor<Program> make(typename Program::optimizer optimizer, std::uint64_t seed) const {
    const int count = machine::device_count();
    if (count == 0) {
      tell(detail::text_of({"auto_device: trains on the CPU: ", machine::why_no_device()}));
      return {std::move(optimizer), seed, options};
    }
    tell(count == 1 ? "auto_device: trains on gpu(0)" : detail::text_of({"auto_device: trains on ", count, " GPUs"}));
    return {std::move(optimizer), seed, gpus().with({.leaves = options.leaves})};
  }

 private:
  void tell(const std::string& what) const {
    if (on_choice) on_choice(what);
  }
};

}  // namespace strata
