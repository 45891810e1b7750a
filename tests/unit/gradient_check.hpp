// The generic gradient check of whole programs: one training step in double against central differences of its own loss.
#pragma once
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <strata/cpu/engine/engine.hpp>
#include <strata/distribute/one_device.hpp>
#include <strata/program/row_tables.hpp>
#include <string>
#include <vector>

namespace strata::test {
using namespace core;

/// An optimizer that changes nothing and keeps the reduced gradient in its slot.
struct keep_gradient {
  static constexpr auto name = "keep_gradient";
  learning_rate_schedule learning_rate = 1.0;
  double weight_decay = 0, clipnorm = 0, clipvalue = 0, global_clipnorm = 0;

  template <class T>
  struct rule {
    static constexpr int slots = 1;
    template <class V>
    constexpr void operator()(V&, reduced_gradient<V> gradient, V& kept) const {
      kept = gradient.value();
    }
  };
  int slots() const { return 1; }
  void validate() const {}
  template <class T, class F>
  void with_rule(long, double, F&& f) const {
    f(rule<T>{});
  }
};

/// Elements in [-1, 1) that depend only on their index and the key.
template <class T>
std::vector<T> random_numbers(std::size_t count, std::uint64_t key) {
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<T>(2 * philox{key}.uniform(i) - 1);
  return values;
}

/// A random batch that fits the network and the loss; the inputs of embeddings are row numbers.
template <class Program>
struct random_batch {
  using T = typename Program::value_type;
  std::vector<T> x, targets;
  std::vector<std::int32_t> labels;

  explicit random_batch(int count, std::uint64_t key = 7) {
    constexpr std::size_t in = std::size_t(Program::network::input_shape.size()),
                          out = std::size_t(Program::network::output_shape.size());
    x = random_numbers<T>(std::size_t(count) * in, key);
    if constexpr (!row_tables_of_program<Program>.empty()) {
      const int rows = std::ranges::min(row_tables_of_program<Program>, {}, &row_table::rows).rows;
      for (const row_table& table : row_tables_of_program<Program>)
        for_each_row_name(table, x.data(), long(in), {0, count}, [&](T& number, long, long) {
          const bool is_row = number >= 0 && number == std::floor(number);  // of another table, too
          if (!is_row) number = std::floor((number + 1) / 2 * T(rows));
        });
    }
    if constexpr (Program::loss::labels == label_kind::sparse) {
      for (int n = 0; n < count; ++n)
        labels.push_back(
            std::int32_t(philox{key + 1}(std::uint64_t(n))[0] % std::uint32_t(Program::network::output_shape.last())));
    } else {
      targets = random_numbers<T>(std::size_t(count) * out, key + 1);
      for (T& t : targets) t = (t + 1) / 2;
    }
  }
  samples<T> view() const {
    return {x.data(),
            {labels.empty() ? nullptr : labels.data(), targets.empty() ? nullptr : targets.data()},
            int(x.size()) / Program::network::input_shape.size()};
  }
};

/// Checks up to `probes` elements of each parameter of a program with the optimizer keep_gradient. Biases start away from zero,
/// so that no gradient vanishes by symmetry.
template <class P, class Backend>
void check_gradients_of(const samples<double>& batch, int probes = 6, double tolerance = 1e-6) {
  constexpr const auto& layout = layout_of_program<P>;
  synchronous_executor<P, Backend> executor(keep_gradient{}, 3, {.threads = 1, .leaves = 2, .micro_batch = 2});
  executor.prepare(batch.count, purpose::training);
  for (double& w : executor.parameters()) w += 0.05;
  executor.parameters_changed();

  const auto loss = [&] {
    executor.set_step(0);
    executor.parameters_changed();
    return executor.train_step(batch)[0].mean();
  };
  loss();
  const std::vector<double> gradient(executor.slots().begin(), executor.slots().end());

  for (int s = 0; s < layout.count; ++s) {
    const parameter_slot& slot = layout.slots[s];
    if (!slot.what.trainable) continue;
    const int size = slot.what.extents.size();
    for (int k = 0; k < probes && k < size; ++k) {
      const std::size_t at =
          std::size_t(slot.offset + (size <= probes ? k : int(philox{99}(std::uint64_t(k))[0] % std::uint32_t(size))));
      double& w = executor.parameters()[at];
      const double before = w, h = 1e-5;
      w = before + h;
      const double above = loss();
      w = before - h;
      const double below = loss();
      w = before;
      const double expected = (above - below) / (2 * h);
      INFO("parameter " << s << " (" << slot.what.name << ") of node " << slot.node << ", element "
                        << at - std::size_t(slot.offset));
      CHECK(gradient[at] == doctest::Approx(expected).epsilon(tolerance).scale(0.1));
    }
  }
}

template <class Network, class Loss, class Backend>
void check_gradients(int count, int probes = 6, double tolerance = 1e-6) {
  using P = program<Network, Loss, keep_gradient, type_list<>, precision::f64>;
  const random_batch<P> batch(count);
  check_gradients_of<P, Backend>(batch.view(), probes, tolerance);
}

}  // namespace strata::test
