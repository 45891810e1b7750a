// Learning-rate schedules against the recordings.
#include <strata/optimizers/learning_rate.hpp>
#include <strata/optimizers/schedules.hpp>

#include "recorded.hpp"

using namespace strata;

TEST_CASE("schedules") {
  test::recording recorded("schedules");
  const std::vector<std::int32_t> steps = recorded.integers("steps");
  const auto check = [&](const std::string& name, const learning_rate_schedule& schedule) {
    const std::vector<double> expected = recorded.tensor(name);
    REQUIRE(expected.size() == steps.size());
    for (std::size_t i = 0; i < steps.size(); ++i) {
      INFO(name << " at step " << steps[i]);
      CHECK(std::abs(schedule(steps[i]) - expected[i]) <= 1e-14);
    }
  };
  check("exponential_decay", exponential_decay{0.1, 10, 0.9});
  check("exponential_decay_staircase", exponential_decay{0.1, 10, 0.9, true});
  check("inverse_time_decay", inverse_time_decay{0.1, 10, 0.5});
  check("inverse_time_decay_staircase", inverse_time_decay{0.1, 10, 0.5, true});
  check("piecewise_constant_decay", piecewise_constant_decay{{10, 20}, {1.0, 0.5, 0.1}});
  check("polynomial_decay", polynomial_decay{0.1, 20});
  check("polynomial_decay_power", polynomial_decay{0.1, 20, 0.01, 2});
  check("polynomial_decay_cycle", polynomial_decay{0.1, 15, 0.01, 0.5, true});
  check("cosine_decay", cosine_decay{0.1, 20});
  check("cosine_decay_alpha", cosine_decay{0.1, 20, 0.1});
  check("cosine_decay_warmup", cosine_decay{0.01, 20, 0.1, 0.2, 10});
  check("cosine_decay_warmup_from_0",
        cosine_decay{.initial_learning_rate = 0, .decay_steps = 40, .warmup_target = 0.1, .warmup_steps = 7});
  check("cosine_decay_warmup_steps_alone", cosine_decay{.initial_learning_rate = 0.1, .decay_steps = 20, .warmup_steps = 10});
  check("cosine_decay_restarts", cosine_decay_restarts{0.1, 10});
  check("cosine_decay_restarts_equal", cosine_decay_restarts{0.1, 15, 1, 0.9, 0.1});
  check("cosine_decay_restarts_settings", cosine_decay_restarts{0.2, 8, 1.5, 0.8, 0.05});
  CHECK(recorded.forgotten() == "");
}
