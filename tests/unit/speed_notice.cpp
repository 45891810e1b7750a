// The notice of speed, in a program that is compiled without optimization, as most unit tests are.
#undef STRATA_NO_SPEED_NOTICE
#include <doctest/doctest.h>

#include <iostream>
#include <sstream>
#include <strata/strata.hpp>
using namespace strata;

namespace {
struct net : sequential<input<28, 28, 1>, flatten, dense<10, softmax>> {};
}  // namespace

TEST_CASE("a program is told to optimize, or to use the vectors of the machine") {
  using detail::notice_of_speed;
  CHECK(notice_of_speed(true, true, true).empty());
  CHECK(notice_of_speed(true, false, false).empty());
  CHECK(notice_of_speed(true, false, true).find("-march=native") != std::string_view::npos);
  CHECK(notice_of_speed(false, true, true).find("-O3") != std::string_view::npos);
}

TEST_CASE("fit tells it once, and not in silence") {
  trainer model{net{}, sgd{}, sparse_categorical_crossentropy{}};
  auto source = data::synthetic_digits(16) | data::batch<8>;
  std::ostringstream log, progress;
  std::streambuf *const clog = std::clog.rdbuf(log.rdbuf()), *const cout = std::cout.rdbuf(progress.rdbuf());
  model.fit(source, verbosity::off);
  const std::string silent = log.str();
  model.fit(source, verbosity::line);
  model.fit(source, verbosity::line);
  std::clog.rdbuf(clog);
  std::cout.rdbuf(cout);
  CHECK(silent.empty());
  CHECK(log.str() == std::string(detail::notice_of_speed(false, true, true)) + '\n');
}
