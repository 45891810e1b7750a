// Learning rates that change with the step, which counts from 0: adam{.learning_rate = cosine_decay{1e-3, 10'000}}.
// Names, formulas and defaults are Keras': https://keras.io/api/optimizers/learning_rate_schedules
#pragma once
#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <strata/base/text.hpp>
#include <strata/optimizers/validation.hpp>
#include <vector>

namespace strata {

/// initial_learning_rate * decay_rate ^ (step / decay_steps); staircase: the quotient is rounded down.
struct exponential_decay {
  static constexpr auto name = "exponential_decay";
  double initial_learning_rate;
  long decay_steps;
  double decay_rate;
  bool staircase = false;

  double operator()(long step) const {
    const double periods = double(step) / double(decay_steps);
    return initial_learning_rate * std::pow(decay_rate, staircase ? std::floor(periods) : periods);
  }
  /// Throws strata_error for wrong settings. A learning_rate_schedule calls it for every schedule.
  void validate() const {
    detail::check_at_least_0(name, "initial_learning_rate", initial_learning_rate);
    detail::check_positive(name, "decay_steps", double(decay_steps));
    detail::check_positive(name, "decay_rate", decay_rate);
  }
};

/// initial_learning_rate / (1 + decay_rate * step / decay_steps); staircase: the quotient is rounded down.
struct inverse_time_decay {
  static constexpr auto name = "inverse_time_decay";
  double initial_learning_rate;
  long decay_steps;
  double decay_rate;
  bool staircase = false;

  double operator()(long step) const {
    const double periods = double(step) / double(decay_steps);
    return initial_learning_rate / (1 + decay_rate * (staircase ? std::floor(periods) : periods));
  }
  void validate() const {
    detail::check_at_least_0(name, "initial_learning_rate", initial_learning_rate);
    detail::check_positive(name, "decay_steps", double(decay_steps));
    detail::check_at_least_0(name, "decay_rate", decay_rate);
  }
};

/// values[0] up to and including step boundaries[0], then values[1], and so on. There is one value more than boundaries.
struct piecewise_constant_decay {
  static constexpr auto name = "piecewise_constant_decay";
  std::vector<long> boundaries;
  std::vector<double> values;

  double operator()(long step) const {
    std::size_t passed = 0;
    while (passed < boundaries.size() && boundaries[passed] < step) ++passed;
    return values[passed];
  }
  void validate() const {
    if (values.size() != boundaries.size() + 1)
      throw_error({name, ": ", values.size(), " values for ", boundaries.size(),
                   " boundaries; there must be one value more than boundaries"});
    for (std::size_t i = 1; i < boundaries.size(); ++i)
      if (boundaries[i] <= boundaries[i - 1])
        detail::refuse(name, "a boundary", double(boundaries[i]),
                       detail::text_of({"greater than the one before it, ", boundaries[i - 1]}));
    for (double v : values) detail::check_at_least_0(name, "a value", v);
  }
};

/// (initial - end) * (1 - step / decay_steps) ^ power + end for decay_steps steps, then the end rate. cycle: at each end,
/// decay_steps is stretched to its next multiple instead.
struct polynomial_decay {
  static constexpr auto name = "polynomial_decay";
  double initial_learning_rate;
  long decay_steps;
  double end_learning_rate = 1e-4, power = 1;
  bool cycle = false;

  double operator()(long step) const {
    const double length = double(decay_steps), at = double(step);
    const double done = cycle ? at / (length * std::max(1., std::ceil(at / length))) : std::min(at, length) / length;
    return (initial_learning_rate - end_learning_rate) * std::pow(1 - done, power) + end_learning_rate;
  }
  void validate() const {
    detail::check_at_least_0(name, "initial_learning_rate", initial_learning_rate);
    detail::check_positive(name, "decay_steps", double(decay_steps));
    detail::check_at_least_0(name, "end_learning_rate", end_learning_rate);
    detail::check_at_least_0(name, "power", power);
  }
};

/// Half a cosine from the initial rate to alpha times the initial rate, over decay_steps (Loshchilov and Hutter 2017). With a
/// warmup_target, the rate first rises linearly to the target during warmup_steps, and the cosine starts from the target.
struct cosine_decay {
  static constexpr auto name = "cosine_decay";
  double initial_learning_rate;
  long decay_steps;
  double alpha = 0;
  std::optional<double> warmup_target{};
  long warmup_steps = 0;

  double operator()(long step) const {
    if (warmup_target && step < warmup_steps)
      return initial_learning_rate + (*warmup_target - initial_learning_rate) * double(step) / double(warmup_steps);
    const long at = std::min(warmup_target ? step - warmup_steps : step, decay_steps);
    const double cosine = (1 + std::cos(std::numbers::pi * double(at) / double(decay_steps))) / 2;
    return warmup_target.value_or(initial_learning_rate) * ((1 - alpha) * cosine + alpha);
  }
  void validate() const {
    detail::check_at_least_0(name, "initial_learning_rate", initial_learning_rate);
    detail::check_positive(name, "decay_steps", double(decay_steps));
    detail::check_at_least_0(name, "alpha", alpha);
    if (warmup_target) detail::check_at_least_0(name, "warmup_target", *warmup_target);
    detail::check_at_least_0(name, "warmup_steps", double(warmup_steps));
  }
};

/// Half cosines in sequence (SGDR). Each is t_mul times as long as the one before, and starts at m_mul times its rate.
struct cosine_decay_restarts {
  static constexpr auto name = "cosine_decay_restarts";
  double initial_learning_rate;
  long first_decay_steps;
  double t_mul = 2, m_mul = 1, alpha = 0;

  double operator()(long step) const {
    // Periods are subtracted, because the closed form, a quotient of logarithms, may round to the wrong period.
    double at = double(step), length = double(first_decay_steps), restarts = 0;
    if (t_mul == 1) {
      restarts = std::floor(at / length);
      at -= restarts * length;
    } else {
      for (; at >= length; ++restarts) at -= length, length *= t_mul;
    }
    const double cosine = std::pow(m_mul, restarts) * (1 + std::cos(std::numbers::pi * at / length)) / 2;
    return initial_learning_rate * ((1 - alpha) * cosine + alpha);
  }
  void validate() const {
    detail::check_at_least_0(name, "initial_learning_rate", initial_learning_rate);
    detail::check_positive(name, "first_decay_steps", double(first_decay_steps));
    detail::check_finite(name, "t_mul", t_mul);
    if (t_mul < 1) detail::refuse(name, "t_mul", t_mul, "at least 1");
    detail::check_at_least_0(name, "m_mul", m_mul);
    detail::check_at_least_0(name, "alpha", alpha);
  }
};

}  // namespace strata
