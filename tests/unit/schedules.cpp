// Learning-rate schedules: beginning, end, corners and bad arguments.
#include <doctest/doctest.h>

#include <cmath>
#include <strata/base/error.hpp>
#include <strata/optimizers/learning_rate.hpp>
#include <strata/optimizers/schedules.hpp>
#include <string>

using namespace strata;
using doctest::Approx;

namespace {

template <class Schedule>
std::string complaint(Schedule s) {
  try {
    learning_rate_schedule rate = s;
  } catch (const strata_error& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a learning rate is a number, a schedule or any function of the step") {
  CHECK(learning_rate_schedule(0.25)(7) == 0.25);
  CHECK(learning_rate_schedule(exponential_decay{1, 10, 0.5})(10) == 0.5);
  CHECK(learning_rate_schedule([](long step) { return 1. / double(step + 1); })(3) == 0.25);
  learning_rate_schedule rate = cosine_decay{1, 10};
  rate = 0.5;
  CHECK(rate(10) == 0.5);
}

TEST_CASE("exponential decay") {
  const exponential_decay smooth{0.1, 10, 0.5}, stairs{0.1, 10, 0.5, true};
  CHECK(smooth(0) == 0.1);
  CHECK(smooth(5) == Approx(0.1 * std::sqrt(0.5)));
  CHECK(smooth(20) == Approx(0.025));
  CHECK(stairs(9) == 0.1);
  CHECK(stairs(10) == Approx(0.05));
  CHECK(stairs(19) == Approx(0.05));
}

TEST_CASE("inverse time decay") {
  const inverse_time_decay smooth{0.1, 10, 2}, stairs{0.1, 10, 2, true};
  CHECK(smooth(0) == 0.1);
  CHECK(smooth(5) == Approx(0.05));
  CHECK(smooth(10) == Approx(0.1 / 3));
  CHECK(stairs(9) == 0.1);
  CHECK(stairs(10) == Approx(0.1 / 3));
}

TEST_CASE("piecewise constant decay: a boundary belongs to the piece before it") {
  const piecewise_constant_decay rate{{10, 20}, {1, 0.5, 0.1}};
  CHECK(rate(0) == 1);
  CHECK(rate(10) == 1);
  CHECK(rate(11) == 0.5);
  CHECK(rate(20) == 0.5);
  CHECK(rate(21) == 0.1);
  CHECK(piecewise_constant_decay{{}, {0.3}}(5) == 0.3);
}

TEST_CASE("polynomial decay") {
  const polynomial_decay line{0.1, 20}, curve{0.1, 20, 0.02, 2}, cycles{0.1, 20, 0.02, 1, true};
  CHECK(line(0) == Approx(0.1));
  CHECK(line(20) == Approx(1e-4));
  CHECK(line(1000) == Approx(1e-4));
  CHECK(curve(10) == Approx(0.08 / 4 + 0.02));
  CHECK(cycles(0) == Approx(0.1));
  CHECK(cycles(20) == Approx(0.02));
  CHECK(cycles(30) == Approx(0.08 * 0.25 + 0.02));
  CHECK(cycles(40) == Approx(0.02));
  CHECK(cycles(50) == Approx(0.08 / 6 + 0.02));
}

TEST_CASE("cosine decay") {
  const cosine_decay plain{0.1, 20}, low{0.1, 20, 0.1};
  CHECK(plain(0) == Approx(0.1));
  CHECK(plain(5) == Approx(0.05 * (1 + std::sqrt(0.5))));
  CHECK(plain(10) == Approx(0.05));
  CHECK(plain(20) == Approx(0));
  CHECK(low(10) == Approx(0.055));
  CHECK(low(99) == Approx(0.01));
  SUBCASE("with a warm-up the cosine starts at its target, after it") {
    const cosine_decay warm{
        .initial_learning_rate = 0.02, .decay_steps = 20, .alpha = 0.1, .warmup_target = 0.2, .warmup_steps = 10};
    CHECK(warm(0) == Approx(0.02));
    CHECK(warm(5) == Approx(0.11));
    CHECK(warm(10) == Approx(0.2));
    CHECK(warm(20) == Approx(0.11));
    CHECK(warm(30) == Approx(0.02));
    CHECK(warm(31) == Approx(0.02));
  }
  SUBCASE("warm-up steps without a target do nothing") {
    const cosine_decay cold{.initial_learning_rate = 0.1, .decay_steps = 20, .warmup_steps = 10};
    CHECK(cold(10) == Approx(0.05));
  }
}

TEST_CASE("cosine decay with restarts") {
  const cosine_decay_restarts doubling{1, 10},
      equal{.initial_learning_rate = 1, .first_decay_steps = 10, .t_mul = 1, .m_mul = 0.5, .alpha = 0.2};
  CHECK(doubling(0) == Approx(1));
  CHECK(doubling(5) == Approx(0.5));
  CHECK(doubling(9) < 0.03);
  CHECK(doubling(10) == Approx(1));
  CHECK(doubling(20) == Approx(0.5));
  CHECK(doubling(29) < 0.01);
  CHECK(doubling(30) == Approx(1));
  CHECK(doubling(70) == Approx(1));
  CHECK(equal(10) == Approx(0.8 * 0.5 + 0.2));
  CHECK(equal(20) == Approx(0.8 * 0.25 + 0.2));
  CHECK(equal(25) == Approx(0.8 * 0.125 + 0.2));
  SUBCASE("a restart is not missed by rounding") {
    const cosine_decay_restarts third{.initial_learning_rate = 1, .first_decay_steps = 16, .t_mul = 1.5};
    long at = 0;
    for (double length = 16; length == std::floor(length); length *= 1.5) {
      CHECK(third(at) == Approx(1));
      at += long(length);
    }
    CHECK(at == 16 + 24 + 36 + 54 + 81);
  }
}

TEST_CASE("schedules that make no sense are refused where they are given") {
  CHECK(complaint(exponential_decay{0.1, 10, 0.5}).empty());
  CHECK(complaint(exponential_decay{0.1, 0, 0.5}) == "exponential_decay: decay_steps = 0 must be greater than 0 and finite");
  CHECK(complaint(exponential_decay{-0.1, 10, 0.5}) ==
        "exponential_decay: initial_learning_rate = -0.1 must be at least 0 and finite");
  CHECK(complaint(inverse_time_decay{0.1, -1, 0.5}).find("inverse_time_decay: decay_steps = -1") == 0);
  CHECK(complaint(polynomial_decay{0.1, 0}).find("polynomial_decay: decay_steps = 0") == 0);
  CHECK(complaint(cosine_decay{0.1, 0}).find("cosine_decay: decay_steps = 0") == 0);
  CHECK(complaint(cosine_decay_restarts{0.1, 10, 0.5}) == "cosine_decay_restarts: t_mul = 0.5 must be at least 1");
  CHECK(complaint(exponential_decay{0.1, 10, 0}) == "exponential_decay: decay_rate = 0 must be greater than 0 and finite");
  CHECK(complaint(inverse_time_decay{0.1, 10, -2}) == "inverse_time_decay: decay_rate = -2 must be at least 0 and finite");
  CHECK(complaint(polynomial_decay{0.1, 10, -1}) == "polynomial_decay: end_learning_rate = -1 must be at least 0 and finite");
  CHECK(complaint(polynomial_decay{0.1, 10, 0, -3}) == "polynomial_decay: power = -3 must be at least 0 and finite");
  CHECK(complaint(cosine_decay{0.1, 10, -0.5}) == "cosine_decay: alpha = -0.5 must be at least 0 and finite");
  CHECK(complaint(cosine_decay{0.1, 10, 0, -1}) == "cosine_decay: warmup_target = -1 must be at least 0 and finite");
  CHECK(complaint(cosine_decay{0.1, 10, 0, 1, -4}) == "cosine_decay: warmup_steps = -4 must be at least 0 and finite");
  CHECK(complaint(cosine_decay_restarts{0.1, 0}) ==
        "cosine_decay_restarts: first_decay_steps = 0 must be greater than 0 and finite");
  CHECK(complaint(cosine_decay_restarts{0.1, 10, 2, -1}) == "cosine_decay_restarts: m_mul = -1 must be at least 0 and finite");
  CHECK(complaint(cosine_decay_restarts{0.1, 10, 2, 1, -1}) == "cosine_decay_restarts: alpha = -1 must be at least 0 and finite");
  CHECK(complaint(piecewise_constant_decay{{1}, {1, -2}}) ==
        "piecewise_constant_decay: a value = -2 must be at least 0 and finite");
  CHECK(complaint(piecewise_constant_decay{{1, 2}, {1, 2}}) ==
        "piecewise_constant_decay: 2 values for 2 boundaries; there must be one value more than boundaries");
  CHECK(complaint(piecewise_constant_decay{{2, 2}, {1, 2, 3}}) ==
        "piecewise_constant_decay: a boundary = 2 must be greater than the one before it, 2");
}
