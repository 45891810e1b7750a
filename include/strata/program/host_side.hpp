// Access to an engine's arrays on the host: the arrays themselves if the device is the host, copies otherwise.
#pragma once
#include <memory>
#include <span>
#include <strata/base/arena.hpp>
#include <strata/concepts/engine.hpp>
#include <strata/program/engine_for.hpp>
#include <strata/program/program.hpp>
#include <vector>

namespace strata::detail {

template <class Engine>
using host_arithmetic_of = host_arithmetic<typename host_backend_of<typename Engine::backend>::type>;

/// Gives access to the arrays of an engine on the host, without copies.
template <class Engine>
class host_side {
  using T = typename Engine::value_type;

 public:
  explicit host_side(int) {}
  static std::span<T> parameters(Engine& e) { return e.parameters(); }
  static std::span<T> slots(Engine& e) { return e.slots(); }
  static void written(Engine& e) { e.parameters_changed(); }
  static void updated() {}
  static auto& team(const Engine& e) { return e.team(); }
  static leaf_gradients<T, host_device> gradients(Engine& e) { return e.gradients(); }
  /// Writes the mean gradient, element by element, to `to`.
  static void read_gradient(Engine&, const global_gradient<T, host_device>& from, std::span<T> to) {
    host_arithmetic_of<Engine>::sum_leaves(to.data(), from.arrays(), from.count(), 0, long(to.size()));
    for (T& each : to) each = from.mean().of(each).value();
  }
};

/// Copies the arrays of another device when they are read, and back after they were written to.
template <class Engine>
  requires(!Engine::device::is_host)
class host_side<Engine> {
  using T = typename Engine::value_type;
  static constexpr const auto& layout = layout_of_program<typename Engine::program>;
  struct copy {
    arena<T> values;
    bool is_valid = false;
  };
  copy parameters_, slots_;
  std::vector<arena<T>> gradients_;
  std::vector<T*> gradients_at_;
  std::unique_ptr<typename host_arithmetic_of<Engine>::team> team_ =
      std::make_unique<typename host_arithmetic_of<Engine>::team>(1);

 public:
  explicit host_side(int slots)
      : parameters_{arena<T>(std::size_t(layout.size))}, slots_{arena<T>(std::size_t(layout.trainable) * std::size_t(slots))} {}

  std::span<T> parameters(Engine& e) {
    if (!parameters_.is_valid) e.read_parameters(parameters_.values.span());  // which may throw
    parameters_.is_valid = true;
    return parameters_.values.span();
  }
  std::span<T> slots(Engine& e) {
    if (!slots_.is_valid) e.read_slots(slots_.values.span());  // which may throw
    slots_.is_valid = true;
    return slots_.values.span();
  }
  /// Writes the valid copies back to the engine, because the caller may have changed them.
  void written(Engine& e) {
    if (parameters_.is_valid) e.write_parameters(parameters_.values.span());
    if (slots_.is_valid) e.write_slots(slots_.values.span());
  }
  /// Marks the copies as stale: the engine has changed its arrays.
  void updated() { parameters_.is_valid = slots_.is_valid = false; }
  auto& team(const Engine&) const { return *team_; }
  leaf_gradients<T, host_device> gradients(Engine& e) {
    const leaf_gradients<T, typename Engine::device> theirs = e.gradients();
    if (theirs.count > int(gradients_.size())) gradients_.resize(std::size_t(theirs.count));
    gradients_at_.clear();
    for (int i = 0; i < theirs.count; ++i) {
      arena<T>& to = gradients_[std::size_t(i)];
      to.grow(std::size_t(layout.trainable));
      e.on().copy_to_host(e.queue(), static_cast<const T*>(theirs.arrays[i]), to.span());
      gradients_at_.push_back(to.data());
    }
    e.on().wait(e.queue());
    return {gradients_at_.data(), theirs.count, theirs.begin, theirs.end, theirs.leaves};
  }
  void read_gradient(Engine& e, const global_gradient<T, typename Engine::device>& from, std::span<T> to) {
    if constexpr (Engine::traits.reads_gradients) return e.read_gradient(from, to);
    std::vector<arena<T>> copies(std::size_t(from.count()));
    std::vector<const T*> at;
    for (int i = 0; i < from.count(); ++i) {
      arena<T>& leaf = copies[std::size_t(i)];
      leaf.grow(to.size());
      e.on().copy_to_host(e.queue(), static_cast<const T*>(from.arrays()[i]), leaf.span());
      at.push_back(leaf.data());
    }
    e.on().wait(e.queue());
    host_arithmetic_of<Engine>::sum_leaves(to.data(), at.data(), from.count(), 0, long(to.size()));
    for (T& each : to) each = from.mean().of(each).value();
  }
};

}  // namespace strata::detail
