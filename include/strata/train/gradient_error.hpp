// Compares the gradients of a program's own loss or layer with differences of the loss.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <strata/base/precision.hpp>
#include <strata/base/random.hpp>
#include <strata/concepts/batch_source.hpp>
#include <strata/network/layout.hpp>
#include <strata/optimizers/sgd.hpp>
#include <strata/train/trainer.hpp>
#include <vector>

namespace strata {

/// Compares the gradients of one training step in double with central differences of its loss, for up to `probes` elements of
/// each parameter. Returns the largest difference as a share of the largest gradient: below 1e-6 if the gradients are right.
/// Only gradients of parameters are compared: put a dense in front of a layer of your own, or the gradient of its input is not
/// checked. A parameter at a kink, such as relu of exactly 0, has no gradient to compare with.
template <class Network, class Loss>
double gradient_error(Network, Loss, const core::samples<double>& batch, int probes = 10) {
  trainer model{Network{}, sgd{.learning_rate = 1}, Loss{}, precision::f64{}};
  constexpr const auto& layout = core::layout_of<typename Network::items>;
  static_assert(layout.trainable > 0, "gradient_error compares gradients of parameters: put a dense in front of the layer");
  std::vector<double> weights(model.parameters().begin(), model.parameters().end()), gradient(weights);
  const std::span slots(layout.slots, std::size_t(layout.count));
  for (const core::parameter_slot& s : slots)  // away from zero, so that no gradient vanishes by symmetry
    for (long i = 0; s.what.trainable && i < s.what.extents.size(); ++i) weights[std::size_t(s.offset + i)] += 0.05;
  const auto loss = [&] {
    model.set_parameters(weights);
    model.executor().set_step(0);  // the same random numbers in each step
    return model.train_step(batch)[0].mean();
  };
  loss();
  for (std::size_t i = 0; i < weights.size(); ++i) gradient[i] = weights[i] - model.parameters()[i];

  double worst = 0, largest = 0;
  for (int s = 0; s < layout.count; ++s) {
    const int size = layout.slots[s].what.extents.size();
    for (int k = 0; layout.slots[s].what.trainable && k < std::min(probes, size); ++k) {
      const int element = size <= probes ? k : int(core::philox{std::uint64_t(s)}.uniform(std::uint64_t(k)) * size);
      const auto at = std::size_t(layout.slots[s].offset + element);
      const double before = weights[at], h = 1e-5;
      weights[at] = before + h;
      const double above = loss();
      weights[at] = before - h;
      const double difference = std::abs(gradient[at] - (above - loss()) / (2 * h));
      weights[at] = before;
      largest = std::max(largest, std::abs(gradient[at]));
      if (!(std::isnan(worst) || difference <= worst)) worst = difference;  // a nan stays
    }
  }
  return worst / std::max(largest, 1e-30);
}

}  // namespace strata
