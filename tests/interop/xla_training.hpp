// Common parts of programs that train networks on a PJRT plugin and on this machine's cores: the same steps, and a line with
// the differences of their results.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <initializer_list>
#include <limits>
#include <strata/strata.hpp>
#include <strata/xla/xla.hpp>
#include <vector>

#include "unit/larger.hpp"

namespace xla_training {

using namespace strata;
using namespace strata::core;

struct outcome {
  std::vector<double> losses;   // of all steps
  std::vector<double> weights;  // after the last one
};

/// Trains on batches of `batch` samples, each seventh of which is short: 20 samples instead of 32.
template <class Network, class Precision = precision::f32, class Loss = sparse_categorical_crossentropy<>>
outcome trained(const auto& data, const auto& optimizer, const auto& strategy, int steps, int batch = 32) {
  trainer model{Network{}, optimizer, Loss{}, accuracy{}, Precision{}, strategy, seed(7)};
  model.executor().prepare(batch, purpose::training);
  outcome out;
  for (int i = 0; i < steps; ++i) {
    const int rows = i % 7 == 6 ? batch * 5 / 8 : batch;
    out.losses.push_back(step_result<typename decltype(model)::program_type>(
                             model.executor().train_step(
                                 data.rows(batch * (i % 7), rows, ends_of_program<typename decltype(model)::program_type>)))
                             .get()[0]
                             .mean());
  }
  out.weights.assign(model.parameters().begin(), model.parameters().end());
  return out;
}

/// Prints what was trained, replicas, the largest relative difference of the losses, and the largest difference of the weights.
inline void tell(const char* what, int replicas, const outcome& one, const outcome& other) {
  const auto largest = [](const std::vector<double>& a, const std::vector<double>& b, auto difference) {
    double worst = a.empty() || a.size() != b.size() ? std::numeric_limits<double>::infinity() : 0;
    for (std::size_t i = 0; i < a.size() && i < b.size(); ++i)
      worst = strata::test::larger(worst, std::abs(difference(a[i], b[i])));
    return worst;
  };
  const double loss = largest(one.losses, other.losses, [](double a, double b) { return a / b - 1; });
  const double weight = largest(one.weights, other.weights, [](double a, double b) { return a - b; });
  std::printf("%s %d %g %g\n", what, replicas, loss, weight);
  std::fflush(stdout);
}

}  // namespace xla_training
