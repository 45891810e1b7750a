// Ctrl-C ends fit after the step at hand; a second one ends the process.
#include <doctest/doctest.h>

#include <csignal>
#include <cstddef>
#include <strata/callbacks/stop_on_interrupt.hpp>
#include <strata/strata.hpp>
#include <strata/train/backup_and_restore.hpp>
#include <vector>

#include "scratch_folder.hpp"
using namespace strata;
using namespace strata::core;

namespace {

auto make() { return trainer{sequential<input<4>, dense<3, softmax>>{}, adam{}, sparse_categorical_crossentropy{}}; }
auto batches() {
  std::vector<float> x(48 * 4);
  std::vector<int> y(48);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(philox{3}.uniform(i));
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = int(3 * philox{4}.uniform(i));
  return data::from_tensor_slices(data::array<float, shape{4}>(std::move(x)), y) | data::batch<16>;  // 3 of an epoch
}
std::vector<float> weights_of(const auto& model) { return {model.parameters().begin(), model.parameters().end()}; }
auto handler_of_interrupts() {
  const auto now = std::signal(SIGINT, SIG_DFL);
  std::signal(SIGINT, now);
  return now;
}
/// Restores the state of a program in the foreground: shells let those in the background ignore Ctrl-C.
void be_in_the_foreground() { std::signal(SIGINT, SIG_DFL); }
/// Presses Ctrl-C after an update.
struct user {
  long step;
  bool* second_is_deadly = nullptr;
  int* ends = nullptr;
  void on_batch_end(training_state& s) {
    if (s.step != step) return;
    std::raise(SIGINT);
    if (second_is_deadly) *second_is_deadly = handler_of_interrupts() == SIG_DFL;
  }
  void on_train_end(training_state&) {
    if (ends) ++*ends;
  }
};

}  // namespace

TEST_CASE("fit ends after a step, with the weights of that step and the history so far; then all is as before") {
  be_in_the_foreground();
  const auto handler = handler_of_interrupts();
  const auto data = batches();
  bool second_is_deadly = false;
  int ends = 0;
  auto model = make();
  stop_on_interrupt stops;
  const training_history past = model.fit(data, epochs(10), verbosity::off, user{5, &second_is_deadly, &ends}, stops);
  CHECK(stops.interrupted());
  CHECK(past.size() == 1);
  CHECK(ends == 1);
  CHECK(second_is_deadly);
  CHECK(bool(handler_of_interrupts() == handler));

  auto expected = make();
  expected.fit(data, epochs(1), verbosity::off);
  expected.fit(data, epochs(1), steps_per_epoch(model.executor().step() - 3), verbosity::off);
  CHECK(model.executor().step() < 7);
  CHECK(weights_of(model) == weights_of(expected));

  model.fit(data, epochs(1), verbosity::off, stops);
  CHECK_FALSE(stops.interrupted());
}

TEST_CASE("with backup_and_restore the training goes on later, to the same bits") {
  be_in_the_foreground();
  const test::scratch_folder folder("interrupt");
  const auto data = batches();
  const auto train = [&](auto&... callback) {
    auto model = make();
    model.fit(data, epochs(4), verbosity::off, callback...);
    return weights_of(model);
  };
  for (const long step : {4L, 6L, 12L}) {
    backup_and_restore backup{folder.path / "backup"};
    stop_on_interrupt stops, again;
    user presses{step};
    train(presses, stops, backup);
    CHECK(stops.interrupted());
    CHECK(backup.interrupted());
    CHECK(train(again, backup) == train());
  }
}
