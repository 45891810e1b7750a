// An evaluator beside a training: it reads new weights, only complete ones, and ends when the training does.
#include <doctest/doctest.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <strata/strata.hpp>
#include <strata/train/backup_and_restore.hpp>
#include <strata/train/sidecar_evaluator.hpp>
#include <thread>
#include <vector>

#include "error_of.hpp"
#include "scratch_folder.hpp"

using namespace strata;
using namespace strata::test;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

using small = sequential<input<28, 28, 1>, flatten, dense<8, relu>, batch_norm<>, dense<10, softmax>>;

auto make_model() { return trainer{small{}, adam{}, sparse_categorical_crossentropy{}, accuracy{}, seed(3)}; }
auto train_data() { return data::synthetic_digits(128, 1) | data::batch<32>; }
auto test_data() { return data::synthetic_digits(64, 2) | data::batch<32>; }

}  // namespace

TEST_CASE("each snapshot gives what the model that wrote it gives, and the end of the training ends the evaluator") {
  const scratch_folder at("sidecar");
  const fs::path backup = at / "backup";
  std::vector<sidecar_evaluator::evaluation> seen;
  std::atomic<int> evaluated = 0;
  std::thread beside([&] {
    auto model = make_model();
    seen = sidecar_evaluator{backup / "snapshot.safetensors", {.interval = 2ms}}.run(
        model, test_data(), [&](const sidecar_evaluator::evaluation&) { ++evaluated; });
  });

  struct slow_down {
    std::atomic<int>& evaluated;
    void on_epoch_begin(const training_state& s) {
      while (evaluated < s.epoch) std::this_thread::sleep_for(1ms);  // until the snapshot of the previous epoch is evaluated
    }
    void on_train_end(const training_state& s) {
      while (evaluated < s.epochs) std::this_thread::sleep_for(1ms);
    }
  };
  auto model = make_model();
  const training_history past =
      model.fit(train_data(), epochs(4), validation(test_data()), backup_and_restore{backup}, slow_down{evaluated}, verbose::off);
  beside.join();
  REQUIRE(seen.size() == 4);
  for (std::size_t e = 0; e < 4; ++e) {
    CHECK(seen[e].step == long(e + 1) * 4);
    CHECK(seen[e].values["loss"] == past["val_loss"][e]);
    CHECK(seen[e].values["accuracy"] == past["val_accuracy"][e]);
  }
  std::ostringstream text;
  text << seen[0];
  CHECK(text.str().starts_with("step 4 - loss: "));
}

TEST_CASE("a file that is missing between two renames does not end the evaluator") {
  const scratch_folder at("sidecar");
  const fs::path newest = at / "snapshot.safetensors", before = at / "snapshot.previous.safetensors";
  auto model = make_model();
  model.save_weights(newest);
  std::atomic<bool> has_ended = false;
  std::atomic<int> evaluated = 0;
  std::thread beside([&] {
    auto other = make_model();
    sidecar_evaluator{newest, {.interval = 1ms}}.run(other, test_data(),
                                                     [&](const sidecar_evaluator::evaluation&) { ++evaluated; });
    has_ended = true;
  });
  while (evaluated < 1) std::this_thread::sleep_for(1ms);
  fs::rename(newest, before);
  std::this_thread::sleep_for(50ms);
  CHECK(!has_ended);
  model.save_weights(newest);
  while (evaluated < 2) std::this_thread::sleep_for(1ms);
  fs::remove(newest);
  fs::remove(before);
  beside.join();
  CHECK(evaluated == 2);
}

TEST_CASE("weights files: as many evaluations as wanted") {
  const scratch_folder at("sidecar");
  auto model = make_model();
  model.save_weights(at / "weights.safetensors");
  auto other = make_model();
  const auto seen = sidecar_evaluator{at / "weights.safetensors", {.max_evaluations = 3, .interval = 1ms}}.run(
      other, test_data(), [&](const sidecar_evaluator::evaluation&) {
        model.fit(train_data(), verbose::off);
        model.save_weights(at / "weights.safetensors");
      });
  REQUIRE(seen.size() == 3);
  CHECK(!seen[0].step);
  CHECK(seen[0].values["loss"] != seen[2].values["loss"]);
}

TEST_CASE("no new weights for too long, or none at all") {
  const scratch_folder at("sidecar");
  auto model = make_model();
  CHECK(sidecar_evaluator{at / "weights.safetensors", {.timeout = 20ms, .interval = 1ms}}.run(model, test_data()).empty());
  model.save_weights(at / "weights.safetensors");
  const auto quiet = [](const sidecar_evaluator::evaluation&) {};
  CHECK(sidecar_evaluator{at / "weights.safetensors", {.timeout = 20ms, .interval = 1ms}}.run(model, test_data(), quiet).size() ==
        1);
}

TEST_CASE("SIGTERM ends it") {
  const scratch_folder at("sidecar");
  auto model = make_model();
  model.save_weights(at / "weights.safetensors");
  CHECK(sidecar_evaluator{at / "weights.safetensors", {.interval = 1ms}}
            .run(model, test_data(), [](const sidecar_evaluator::evaluation&) { std::raise(SIGTERM); })
            .size() == 1);
}

TEST_CASE("weights of another network, damaged snapshots, options that make no sense") {
  const scratch_folder at("sidecar");
  auto model = make_model();
  trainer other{sequential<input<28, 28, 1>, flatten, dense<10, softmax>>{}, adam{}, sparse_categorical_crossentropy{}};
  other.save_weights(at / "weights.safetensors");
  CHECK(contains(error_of([&] { sidecar_evaluator{at / "weights.safetensors"}.run(model, test_data()); }),
                 "does not fit the network"));

  const fs::path backup = at / "backup", snapshot = backup / "snapshot.safetensors";
  model.fit(train_data(), backup_and_restore{backup, {.delete_checkpoint = false}}, verbose::off);
  auto fresh = make_model();
  fresh.load_weights(snapshot);
  CHECK(std::memcmp(fresh.parameters().data(), model.parameters().data(), model.parameters().size_bytes()) == 0);
  std::fstream(snapshot, std::ios::in | std::ios::out | std::ios::binary).seekp(-100, std::ios::end).put('x').put('y');
  CHECK(contains(error_of([&] { sidecar_evaluator{snapshot}.run(model, test_data()); }), "is damaged: its checksum"));

  CHECK(contains(error_of([&] { sidecar_evaluator{"weights", {.interval = 0ms}}.run(model, test_data()); }),
                 "the interval must be positive"));
}
