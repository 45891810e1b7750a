// The callback that writes a log: its lines, which process writes them, and to which logger.
// needs: spdlog
#include <doctest/doctest.h>

#include <spdlog/sinks/ostream_sink.h>

#include <memory>
#include <sstream>
#include <strata/callbacks/logging.hpp>
#include <strata/strata.hpp>
#include <string>
#include <vector>

#include "error_of.hpp"
using namespace strata;
using strata::test::error_of;

namespace {

using net = sequential<input<2>, dense<2, softmax>>;
const std::vector<float> x(20);
const std::vector<int> y = {0, 1, 0, 1, 0, 1, 0, 1, 0, 1};
auto make() { return trainer{net{}, sgd{.learning_rate = 0.0}, sparse_categorical_crossentropy{}, accuracy{}}; }

struct memory_log {
  std::ostringstream text;
  std::shared_ptr<spdlog::logger> logger =
      std::make_shared<spdlog::logger>("training", std::make_shared<spdlog::sinks::ostream_sink_mt>(text));
  memory_log() { logger->set_pattern("%n %l %v"); }
};

}  // namespace

TEST_CASE("a line when a training begins, after each epoch, after some updates, and at the end") {
  memory_log log;
  auto model = make();
  model.fit(x, y, epochs(2), batch_size(2), validation(x, y), verbose::off, logging{.every_batches = 4, .to = log.logger});
  CHECK(log.text.str() ==
        "training info training begins: 2 epochs\n"
        "training info epoch 1/2, update 4: loss: 0.693147, learning_rate: 0\n"
        "training info epoch 1/2: loss: 0.693147 - accuracy: 0.5 - val_loss: 0.693147 - val_accuracy: 0.5\n"
        "training info epoch 2/2, update 8: loss: 0.693147, learning_rate: 0\n"
        "training info epoch 2/2: loss: 0.693147 - accuracy: 0.5 - val_loss: 0.693147 - val_accuracy: 0.5\n"
        "training info training ends after 10 updates\n");
}

TEST_CASE("an evaluation, with another level") {
  memory_log log;
  auto model = make();
  model.evaluate(x, y, logging{.level = spdlog::level::warn, .to = log.logger});
  CHECK(log.text.str() == "training warning evaluation of 10 samples: loss: 0.693147 - accuracy: 0.5\n");
}

TEST_CASE("the default logger") {
  memory_log log;
  const auto before = spdlog::default_logger();
  spdlog::set_default_logger(log.logger);
  auto model = make();
  model.fit(x, y, verbose::off, logging{});
  spdlog::set_default_logger(before);
  CHECK(log.text.str().find("training info epoch 1/1: loss: 0.693147 - accuracy: 0.5\n") != std::string::npos);
}

TEST_CASE("what makes no sense") {
  CHECK(error_of([] { make().fit(x, y, verbose::off, logging{.to = nullptr}); }) == "logging: the logger is null");
  CHECK(error_of([] { make().fit(x, y, verbose::off, logging{.every_batches = -1}); }) ==
        "logging: every_batches = -1: it must be at least 0");
}
