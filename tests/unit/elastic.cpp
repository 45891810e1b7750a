// An elastic training that loses a process at any of its messages, and readmits it: the bits of one device. Processes are
// threads.
#include <doctest/doctest.h>

#include "elastic_outcome.hpp"
#include "mortal_process.hpp"
#include "repetitions.hpp"
#include "scratch_folder.hpp"
#include <algorithm>
#include <memory>
#include <strata/strata.hpp>
#include <strata/synchronous/among_processes.hpp>
#include <strata/train/backup_and_restore.hpp>
#include <strata/train/late_workers.hpp>
#include <string>
#include <thread>
#include <vector>
using namespace strata;
using namespace strata::core;
using strata::test::is_sanitized;
using strata::test::mortal, strata::test::outcome, strata::test::registry, strata::test::take_time;
using strata::test::repetitions;
using namespace std::chrono_literals;

namespace {
using normalized =
    sequential<input<28, 28, 1>, flatten, dense<6>, batch_norm<>, activation<relu>, dropout<0.2_r>, dense<10, softmax>>;

struct elastic_among {
  static constexpr auto name = "elastic_among";
  mortal processes;
  using fit_callback = late_workers;

  template <class Program>
  using executor = synchronous_executor<Program, cpu, mortal>;
  template <class Program>
  executor<Program> make(typename Program::optimizer optimizer, std::uint64_t seed) const {
    return {std::move(optimizer), seed, {.threads = 1, .leaves = 8}, processes};
  }
};

outcome trained(const auto& strategy, std::chrono::milliseconds pause = 0ms) {
  static const data::digits digits = data::synthetic_digits(150, 3);
  static const strata::test::scratch_folder folder("elastic");
  trainer model{normalized{}, adam{}, sparse_categorical_crossentropy{}, accuracy{}, strategy, seed(7)};
  backup_and_restore backup{folder.path / "backup",
                            {.save_every_epochs = 0}};  // writes nothing, but all members agree on whether a snapshot exists
  const training_history past =
      model.fit(digits | data::shuffle(150) | data::batch<64>, epochs(2), validation(digits | data::batch<80>), take_time{pause},
                backup, verbose::off);  // 150 = 2 x 64 + 22
  const auto w = model.executor().parameters();
  return strata::test::outcome_of(w, past);
}
outcome survived(const mortal& process, std::chrono::milliseconds pause = 0ms) {
  return strata::test::survived(process, [&] { return trained(elastic_among{process}, pause); });
}

/// Lets the last of three processes die at a wait. Returns whether it died before the end.
bool dies_at(int lives, const outcome& expected) {
  CAPTURE(lives);
  const auto all = std::make_shared<registry>(3);
  std::vector<outcome> outcomes(3);
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&, i] { outcomes[std::size_t(i)] = survived(mortal(all, i, false, i == 2 ? lives : -1)); });
  for (auto& t : threads) t.join();
  for (const outcome& o : outcomes) {
    CHECK(o.problem == "");
    if (!o.died) CHECK(o == expected);
  }
  return outcomes[2].died;
}
}  // namespace

TEST_CASE("a process that dies at any of its messages: the others have the bits of one device") {
  const outcome expected = trained(one_device{{.threads = 1, .leaves = 8}});
  int lives = 1;
  while (dies_at(lives, expected)) lives += is_sanitized ? 3 : 1;
  CHECK(lives >
        40);  // 6 steps of batch_norm, 4 batches to evaluate, what there is to restore, whether to stop, the final barrier
}

TEST_CASE("a process dies while another one still connects: the others have the bits of one device") {
  const outcome expected = trained(one_device{{.threads = 1, .leaves = 8}});
  const auto all = std::make_shared<registry>(3);
  const mortal connected(all, 1, false);
  all->die(2);
  outcome first, second;
  std::thread connects([&] { first = survived(mortal::starting_again(all, 0)); });
  second = survived(connected);
  connects.join();
  for (const outcome& o : {first, second}) {
    CHECK(o.problem == "");
    CHECK(o == expected);
  }
}

TEST_CASE("it comes back, and may die again at any message from then on") {
  const outcome expected = trained(one_device{{.threads = 1, .leaves = 8}});
  int came_back = 0, died_twice = 0;
  const int rounds = repetitions(16, 6);
  for (int again = 0; again < rounds; ++again) {
    CAPTURE(again);
    const auto all = std::make_shared<registry>(3);
    std::vector<outcome> outcomes(4);
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; ++i)
      threads.emplace_back([&, i] { outcomes[std::size_t(i)] = survived(mortal(all, i, false), 20ms); });
    threads.emplace_back([&] {
      outcomes[2] = survived(mortal(all, 2, false, 3 + again % 5));
      outcomes[3] = survived(mortal(all, 2, true, again == 0 ? -1 : again));
    });
    for (auto& t : threads) t.join();
    CHECK(outcomes[2].died);
    for (const std::size_t i : {0u, 1u, 3u}) {
      CHECK(outcomes[i].problem == "");
      if (!outcomes[i].died) CHECK(outcomes[i] == expected);
    }
    (outcomes[3].died ? died_twice : came_back) += 1;
  }
  CHECK(came_back > 0);
  CHECK(died_twice > rounds / 2);
}

TEST_CASE("a late process can do nothing before fit") {
  const auto all = std::make_shared<registry>(2);
  const data::digits digits = data::synthetic_digits(64, 3);
  const elastic_among strategy{mortal(all, 1, true)};
  trainer model{normalized{}, adam{}, sparse_categorical_crossentropy{}, accuracy{}, strategy, seed(7)};
  CHECK_THROWS_WITH_AS(model.evaluate(digits | data::batch<64>),
                       "the training has already begun: a worker that joins late has to call fit before anything else",
                       strata_error);
}
