// The output of fit, and the logs that it prints and returns.
#include <doctest/doctest.h>

#include <functional>
#include <limits>
#include <sstream>
#include <strata/state/logs.hpp>
#include <strata/train/progress.hpp>

using namespace strata;
using namespace strata::core;

namespace {

double fake_now = 0;
double fake_clock() { return fake_now; }

constexpr detail::terminal colour_terminal{true, true, 0}, plain_terminal{true, false, 0}, no_terminal{};

struct scenario {
  int epoch = 0, epochs = 1;
  long known_steps = 0, steps = 0;
  double first_step = 0, other_steps = 0, validation = 1.25;
};

/// Runs an epoch as the trainer does, by the clock of the scenario.
void run(progress_bar& bar, const scenario& s, const std::function<logs(long)>& values, const logs& last) {
  fake_now = 1000;
  bar.begin_epoch(s.epoch, s.epochs, s.known_steps);
  for (long i = 1; i <= s.steps; ++i) {
    fake_now += i == 1 ? s.first_step : s.other_steps;
    if (bar.due()) bar.step(i, values(i));
  }
  fake_now += s.validation;
  bar.end_epoch(last);
}

std::string printed(verbosity v, detail::terminal t, const scenario& s, const std::function<logs(long)>& values,
                    const logs& last) {
  std::ostringstream out;
  progress_bar bar(out, v, t, &fake_clock);
  run(bar, s, values, last);
  return out.str();
}

logs falling(long i) { return {{"loss", 1.0 / double(i)}, {"accuracy", 0.5 + double(i) / 2000}}; }

// What keras.utils.Progbar of Keras 3.15.1 prints by the same clock, without its backspaces and empty colours.
const std::string keras_eight_steps =
    "\r\x1b[1m1/8\x1b[0m \x1b[32m━━\x1b[0m\x1b[37m━━━━━━━━━━━━━━━━━━\x1b[0m \x1b[1m10s\x1b[0m 2s/step - accuracy: 0.5005 - loss: "
    "1.0000"
    "\r\x1b[1m2/8\x1b[0m \x1b[32m━━━━━\x1b[0m\x1b[37m━━━━━━━━━━━━━━━\x1b[0m \x1b[1m1s\x1b[0m 250ms/step - accuracy: 0.5010 - "
    "loss: 0.5000"
    "\r\x1b[1m3/8\x1b[0m \x1b[32m━━━━━━━\x1b[0m\x1b[37m━━━━━━━━━━━━━\x1b[0m \x1b[1m1s\x1b[0m 250ms/step - accuracy: 0.5015 - "
    "loss: 0.3333"
    "\r\x1b[1m4/8\x1b[0m \x1b[32m━━━━━━━━━━\x1b[0m\x1b[37m━━━━━━━━━━\x1b[0m \x1b[1m1s\x1b[0m 250ms/step - accuracy: 0.5020 - "
    "loss: 0.2500"
    "\r\x1b[1m5/8\x1b[0m \x1b[32m━━━━━━━━━━━━\x1b[0m\x1b[37m━━━━━━━━\x1b[0m \x1b[1m0s\x1b[0m 250ms/step - accuracy: 0.5025 - "
    "loss: 0.2000"
    "\r\x1b[1m6/8\x1b[0m \x1b[32m━━━━━━━━━━━━━━━\x1b[0m\x1b[37m━━━━━\x1b[0m \x1b[1m0s\x1b[0m 250ms/step - accuracy: 0.5030 - "
    "loss: 0.1667"
    "\r\x1b[1m7/8\x1b[0m \x1b[32m━━━━━━━━━━━━━━━━━\x1b[0m\x1b[37m━━━\x1b[0m \x1b[1m0s\x1b[0m 250ms/step - accuracy: 0.5035 - "
    "loss: 0.1429"
    "\r\x1b[1m8/8\x1b[0m \x1b[32m━━━━━━━━━━━━━━━━━━━━\x1b[0m \x1b[1m0s\x1b[0m 250ms/step - accuracy: 0.5040 - loss: 0.1250"
    "\r\x1b[1m8/8\x1b[0m \x1b[32m━━━━━━━━━━━━━━━━━━━━\x1b[0m \x1b[1m4s\x1b[0m 429ms/step - accuracy: 0.5040 - loss: 0.1250"
    " - val_accuracy: 0.2500 - val_loss: 7.5000e-04\n";

const std::string keras_unknown_number =
    "\r      1/Unknown \x1b[1m0s\x1b[0m 100ms/step - accuracy: 0.5005 - loss: 1.0000"
    "\r      2/Unknown \x1b[1m0s\x1b[0m 100ms/step - accuracy: 0.5010 - loss: 0.5000"
    "\r      3/Unknown \x1b[1m0s\x1b[0m 100ms/step - accuracy: 0.5015 - loss: 0.3333"
    "\r\x1b[1m3/3\x1b[0m \x1b[32m━━━━━━━━━━━━━━━━━━━━\x1b[0m \x1b[1m2s\x1b[0m 725ms/step - accuracy: 0.5015 - loss: 0.3333\n";

const std::string keras_hours =
    "\r\x1b[1m1/3\x1b[0m \x1b[32m━━━━━━\x1b[0m\x1b[37m━━━━━━━━━━━━━━\x1b[0m \x1b[1m2:46:40\x1b[0m 5000s/step - loss: nan"
    "\r\x1b[1m2/3\x1b[0m \x1b[32m━━━━━━━━━━━━━\x1b[0m\x1b[37m━━━━━━━\x1b[0m \x1b[1m1:23:20\x1b[0m 5000s/step - loss: nan"
    "\r\x1b[1m3/3\x1b[0m \x1b[32m━━━━━━━━━━━━━━━━━━━━\x1b[0m \x1b[1m0s\x1b[0m 5000s/step - loss: nan     "
    "\r\x1b[1m3/3\x1b[0m \x1b[32m━━━━━━━━━━━━━━━━━━━━\x1b[0m \x1b[1m15001s\x1b[0m 5001s/step - loss: nan\n";

// 100 steps within 10 ms: only the first is shown.
const std::string keras_microseconds =
    "\r\x1b[1m  1/100\x1b[0m \x1b[37m━━━━━━━━━━━━━━━━━━━━\x1b[0m \x1b[1m0s\x1b[0m 100us/step - loss: -5.0000e-07"
    "\r\x1b[1m100/100\x1b[0m \x1b[32m━━━━━━━━━━━━━━━━━━━━\x1b[0m \x1b[1m1s\x1b[0m 13ms/step - loss: -5.0000e-07 \n";

}  // namespace

TEST_CASE("the bar moves as Keras' does") {
  logs last = falling(8);
  last.set("val_loss", 0.00075);
  last.set("val_accuracy", 0.25);
  CHECK(printed(verbosity::bar, colour_terminal, {.known_steps = 8, .steps = 8, .first_step = 1.5, .other_steps = 0.25}, falling,
                last) == keras_eight_steps);
  CHECK(printed(verbosity::bar, colour_terminal, {.steps = 3, .first_step = 0.1, .other_steps = 0.1}, falling, falling(3)) ==
        keras_unknown_number);
  const auto constant = [](double loss) { return [loss](long) { return logs{{"loss", loss}}; }; };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(printed(verbosity::bar, colour_terminal, {.known_steps = 3, .steps = 3, .first_step = 5000, .other_steps = 5000},
                constant(nan), {{"loss", nan}}) == keras_hours);
  CHECK(printed(verbosity::bar, colour_terminal, {.known_steps = 100, .steps = 100, .first_step = 1e-4, .other_steps = 1e-4},
                constant(-5e-7), {{"loss", -5e-7}}) == keras_microseconds);
}

TEST_CASE("a terminal without colours sees no escape sequences, and the state of the bar") {
  const std::string text =
      printed(verbosity::bar, plain_terminal, {.epochs = 2, .known_steps = 2, .steps = 2, .first_step = 1, .other_steps = 1},
              falling, falling(2));
  CHECK(text ==
        "Epoch 1/2\n"
        "\r1/2 ━━━━━━━━━━           1s 1s/step - accuracy: 0.5005 - loss: 1.0000"
        "\r2/2 ━━━━━━━━━━━━━━━━━━━━ 0s 1s/step - accuracy: 0.5010 - loss: 0.5000"
        "\r2/2 ━━━━━━━━━━━━━━━━━━━━ 3s 2s/step - accuracy: 0.5010 - loss: 0.5000\n");
}

TEST_CASE("what is no terminal gets one plain line per epoch") {
  const std::string expected = "Epoch 2/5 - 4s - 531ms/step - accuracy: 0.5040 - loss: 0.1250\n";
  const scenario s{
      .epoch = 1, .epochs = 5, .known_steps = 8, .steps = 8, .first_step = 1.5, .other_steps = 0.25, .validation = 1};
  CHECK(printed(verbosity::bar, no_terminal, s, falling, falling(8)) == expected);
  CHECK(printed(verbosity::line, no_terminal, s, falling, falling(8)) == expected);
  CHECK(printed(verbosity::line, colour_terminal, s, falling, falling(8)) == expected);
  CHECK(printed(verbosity::off, colour_terminal, s, falling, falling(8)).empty());
  CHECK_FALSE(detail::terminal::of(std::ostringstream()).moves);
}

TEST_CASE("a line that moves is never wider than the terminal, the last one is complete") {
  const detail::terminal narrow{true, true, 31};  // of which the last column stays free
  const std::string text =
      printed(verbosity::bar, narrow, {.known_steps = 8, .steps = 1, .first_step = 1.5}, falling, falling(1));
  const std::string moving = text.substr(0, text.find('\r', 1));
  CHECK(moving == "\r\x1b[1m1/8\x1b[0m \x1b[32m━━\x1b[0m\x1b[37m━━━━━━━━━━━━━━━━━━\x1b[0m \x1b[1m10s\x1b[0m 2");
  CHECK(text.ends_with("3s/step - accuracy: 0.5005 - loss: 1.0000\n"));
}

TEST_CASE("the last line of an epoch fits into 100 columns, with a shorter bar") {
  logs values = falling(938);
  values.set("val_loss", 0.5);
  values.set("val_accuracy", 0.25);
  const detail::terminal usual{true, false, 100};
  const std::string text =
      printed(verbosity::bar, usual, {.known_steps = 938, .steps = 938, .first_step = 1, .other_steps = 0.012}, falling, values);
  CHECK(text.substr(text.rfind('\r') + 1) ==
        "938/938 ━ 13s 13ms/step - accuracy: 0.9690 - loss: 0.0011 - val_accuracy: 0.2500 - val_loss: 0.5000\n");
}

TEST_CASE("samples per second, where the size of a batch is known") {
  const auto line = [](double seconds, int batch_size) {
    std::ostringstream out;
    progress_bar bar(out, verbosity::line, no_terminal, &fake_clock);
    fake_now = 0;
    bar.begin_epoch(0, 1, 2, batch_size);
    bar.due(), bar.due();
    fake_now = 2 * seconds;
    bar.end_epoch({});
    return out.str();
  };
  CHECK(line(0.003, 64) == "Epoch 1/1 - 0s - 3ms/step, 21.3k samples/s\n");
  CHECK(line(2, 64) == "Epoch 1/1 - 4s - 2s/step, 32 samples/s\n");
  CHECK(line(1e-5, 100) == "Epoch 1/1 - 0s - 10us/step, 10M samples/s\n");
  CHECK(line(0.1, 99) == "Epoch 1/1 - 0s - 100ms/step, 990 samples/s\n");
  CHECK(line(0.064, 64) == "Epoch 1/1 - 0s - 64ms/step, 1k samples/s\n");
  CHECK(line(0, 64) == "Epoch 1/1 - 0s - 0s/step\n");
}

TEST_CASE("a number of steps that was unknown is that of the epoch before") {
  std::ostringstream out;
  progress_bar bar(out, verbosity::bar, plain_terminal, &fake_clock);
  const scenario s{.epochs = 2, .steps = 4, .first_step = 1, .other_steps = 1};
  run(bar, s, falling, falling(4));
  CHECK(out.str().find("1/Unknown") != std::string::npos);
  out.str("");
  run(bar, {.epoch = 1, .epochs = 2, .steps = 4, .first_step = 1, .other_steps = 1}, falling, falling(4));
  CHECK(out.str().find("1/4 ━━━━━") != std::string::npos);
  CHECK(out.str().find("Unknown") == std::string::npos);
}

TEST_CASE("nothing is due within 50 ms of the last update, and the line is closed if the epoch is not") {
  std::ostringstream out;
  {
    progress_bar bar(out, verbosity::bar, plain_terminal, &fake_clock);
    fake_now = 0;
    bar.begin_epoch(0, 1, 100);
    CHECK(bar.due());
    bar.step(1, falling(1));
    fake_now = 0.049;
    CHECK_FALSE(bar.due());
    fake_now = 0.051;
    CHECK(bar.due());
  }
  CHECK(out.str().ends_with("loss: 1.0000\n"));
}

TEST_CASE("logs keep their order and say what they have") {
  logs l{{"loss", 0.5}, {"accuracy", 0.25}};
  l.set("loss", 0.75);
  l.set("val_loss", 1);
  CHECK(l.size() == 3);
  CHECK(l["loss"] == 0.75);
  CHECK(l.names() == "loss, accuracy, val_loss");
  CHECK(l.find("val_loss") == 1.0);
  CHECK_FALSE(l.contains("auc"));
  CHECK_THROWS_WITH_AS(l["auc"], "there is no 'auc' in the logs; they have loss, accuracy, val_loss", strata_error);
  CHECK_THROWS_WITH_AS(logs{}["auc"], "there is no 'auc' in the logs: they are empty", strata_error);
  std::ostringstream out;
  out << l;
  CHECK(out.str() == "loss: 0.75 - accuracy: 0.25 - val_loss: 1");
}

TEST_CASE("a history is read by metric") {
  training_history h;
  CHECK_THROWS_WITH_AS(h["loss"], "there is no 'loss' in the history: it is empty", strata_error);
  h.add(3, {{"loss", 0.5}});
  h.add(4, {{"loss", 0.25}, {"val_loss", 0.75}});
  CHECK(h["loss"] == std::vector{0.5, 0.25});
  CHECK(h["val_loss"] == std::vector{0.75});
  CHECK(h.epochs() == std::vector{3, 4});
  CHECK(h.contains("val_loss"));
  CHECK_THROWS_WITH_AS(h["auc"], "there is no 'auc' in the history; it has loss, val_loss", strata_error);
  std::ostringstream out;
  out << h;
  CHECK(out.str() == "Epoch 4 - loss: 0.5\nEpoch 5 - loss: 0.25 - val_loss: 0.75\n");
}
