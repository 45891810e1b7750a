// The outcome of an elastic training in a mortal process, for comparison with one device.
#pragma once
#include "mortal_process.hpp"

#include <chrono>
#include <cstring>
#include <exception>
#include <strata/state/logs.hpp>
#include <strata/state/training_state.hpp>
#include <string>
#include <thread>
#include <vector>

namespace strata::test {

struct outcome {
  std::vector<float> weights{};
  double loss = 0, val_accuracy = 0;
  bool died = false;
  std::string problem{};

  bool operator==(const outcome& o) const {
    return weights.size() == o.weights.size() &&
           std::memcmp(weights.data(), o.weights.data(), weights.size() * sizeof(float)) == 0 && loss == o.loss &&
           val_accuracy == o.val_accuracy;
  }
};
outcome outcome_of(const auto& weights, const training_history& past) {
  return {{weights.begin(), weights.end()}, past["loss"].back(), past["val_accuracy"].back()};
}

/// Slows the training down, so that a late process can still join.
struct take_time {
  std::chrono::milliseconds pause;
  void on_batch_end(training_state&) { std::this_thread::sleep_for(pause); }
};

/// The outcome of train() in this process; or whether the process died, or the error that ended it.
outcome survived(const mortal& process, auto&& train) {
  outcome out;
  try {
    out = train();
    process.end();
  } catch (const death&) {
    out.died = true;
  } catch (const std::exception& e) {
    out.problem = e.what();
  }
  return out;
}

}  // namespace strata::test
