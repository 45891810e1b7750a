// The callbacks that come with strata in real trainings: what they write, and that an interruption changes nothing.
#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <fstream>
#include <iostream>
#include <iterator>
#include <optional>
#include <set>
#include <sstream>
#include <strata/callbacks/csv_logger.hpp>
#include <strata/callbacks/early_stopping.hpp>
#include <strata/callbacks/lambda_callback.hpp>
#include <strata/callbacks/learning_rate_scheduler.hpp>
#include <strata/callbacks/model_checkpoint.hpp>
#include <strata/callbacks/reduce_lr_on_plateau.hpp>
#include <strata/callbacks/terminate_on_nan.hpp>
#include <strata/distribute/mirrored.hpp>
#include <strata/strata.hpp>
#include <strata/train/backup_and_restore.hpp>
#include <string>
#include <vector>

#include "error_of.hpp"
#include "scratch_folder.hpp"
using namespace strata;
using namespace strata::core;
using strata::test::contains;
using strata::test::error_of;
using strata::test::scratch_folder;

namespace {

using net = sequential<input<4>, dense<6, relu>, dense<3, softmax>>;

auto some_data(std::uint64_t seed) {
  std::vector<float> x(60 * 4);
  std::vector<int> y(60);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(philox{seed}.uniform(i));
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = int(3 * philox{seed + 1}.uniform(i));
  return data::from_tensor_slices(data::array<float, shape{4}>(std::move(x)), y);
}
/// Noise, so that the validation loss soon rises.
auto noise() { return some_data(3) | data::shuffle(60, {.seed = 5}) | data::batch<16>; }
auto other_noise() { return validation(some_data(7) | data::batch<16>); }

auto make(auto... strategy) {
  return trainer{net{}, adam{.learning_rate = 0.05}, sparse_categorical_crossentropy{}, accuracy{}, strategy...};
}
std::vector<float> weights_of(const auto& model) { return {model.parameters().begin(), model.parameters().end()}; }
std::string content(const std::filesystem::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

struct power_cut {};

/// User-defined metrics with names that others have, too.
struct half {
  static constexpr auto name = "loss";
  static constexpr double measure(auto, std::int32_t) { return 0.5; }
};
struct quarter {
  static constexpr auto name = "recall_1";
  static constexpr double measure(auto, std::int32_t) { return 0.25; }
};

}  // namespace

TEST_CASE("a training stops early with the best weights; interrupted anywhere, it ends with the same bits, files and history") {
  const scratch_folder folder("callbacks");
  const auto file = [&](const char* name) { return folder.path / name; };
  struct outcome {
    training_history past;
    std::vector<float> weights;
    std::string csv;
    std::optional<int> stopped, best;
  };
  /// `cut`: the update after which the power fails; 0: never.
  const auto train = [&](const std::string& run, long cut, bool& is_cut) {
    auto model = make();
    early_stopping stops{.patience = 4, .restore_best_weights = true};
    reduce_lr_on_plateau reduces{.factor = 0.5, .patience = 2, .min_delta = 0};
    model_checkpoint saves{file((run + "-{epoch:02d}-{val_loss:.3f}.safetensors").c_str()), {.save_best_only = true}};
    csv_logger writes{file((run + ".csv").c_str())};
    lambda_callback cuts{.on_batch_end = [&](training_state& s) {
      if (s.step == cut) throw power_cut{};
    }};
    outcome o;
    is_cut = false;
    try {
      learning_rate_scheduler slows{[](int epoch, double rate) { return epoch == 0 ? rate : rate * 0.99; }};
      o.past = model.fit(noise(), epochs(40), other_noise(), verbosity::off, slows, stops, reduces, saves, writes, cuts,
                         backup_and_restore{file((run + "-backup").c_str()), {.save_every_batches = 3}});
    } catch (const power_cut&) {
      is_cut = true;
    }
    o.weights = weights_of(model), o.csv = content(file((run + ".csv").c_str()));
    o.stopped = stops.stopped_epoch(), o.best = stops.best_epoch();
    return o;
  };
  bool is_cut = false;
  const outcome whole = train("whole", 0, is_cut);
  REQUIRE(whole.stopped);
  CHECK(*whole.stopped < 39);
  CHECK(*whole.best < *whole.stopped);
  CHECK(whole.past.size() == std::size_t(*whole.stopped) + 1);
  CHECK(whole.past["learning_rate"].back() < whole.past["learning_rate"].front());
  CHECK(whole.csv.starts_with("epoch,accuracy,learning_rate,loss,val_accuracy,val_loss\n0,"));
  {  // the weights are those of the best epoch, and in the newest file of model_checkpoint
    auto model = make();
    CHECK(model.evaluate(some_data(7) | data::batch<16>)["loss"] != whole.past["val_loss"][std::size_t(*whole.best)]);
    model.set_parameters(whole.weights);
    const double loss = model.evaluate(some_data(7) | data::batch<16>)["loss"];
    CHECK(loss == whole.past["val_loss"][std::size_t(*whole.best)]);
    auto other = make();
    other.load_weights(file(detail::formatted("whole-%02d-%.3f.safetensors", *whole.best + 1, loss).c_str()));
    CHECK(weights_of(other) == whole.weights);
  }
  const auto files = [&](const std::string& run) {
    std::set<std::string> names;
    for (const auto& each : std::filesystem::directory_iterator(folder.path))
      if (const std::string name = each.path().filename().string(); name.starts_with(run + '-'))
        names.insert(name.substr(run.size()));
    return names;
  };
  for (const long cut : {1L, 7L, 20L, long(4 * *whole.stopped + 2)}) {
    CAPTURE(cut);
    const std::string run = "cut" + std::to_string(cut);
    (void)train(run, cut, is_cut);
    CHECK(is_cut);
    const std::filesystem::path snapshot = file((run + "-backup").c_str()) / "snapshot.safetensors";
    if (std::filesystem::exists(snapshot)) make().load_weights(snapshot);  // files of callbacks are not mistaken for weights
    if (cut > 8) {                                                         // the power failed while a line was written
      std::ofstream csv(file((run + ".csv").c_str()), std::ios::app);
      csv << "1";
    }
    const outcome again = train(run, 0, is_cut);
    CHECK(again.weights == whole.weights);
    CHECK(again.past.all() == whole.past.all());
    CHECK(again.csv == whole.csv);
    CHECK(again.stopped == whole.stopped);
    CHECK(again.best == whole.best);
    CHECK(files(run) == files("whole"));
  }
  CHECK(contains(error_of([&] {
                   bool ignored = false;
                   (void)train("other", 9, ignored);
                   make().fit(noise(), epochs(40), other_noise(), verbosity::off, backup_and_restore{file("other-backup")});
                 }),
                 "callback learning_rate_scheduler"));
}

TEST_CASE("threads and replicas decide alike") {
  const auto train = [](auto strategy) {
    auto model = make(strategy);
    early_stopping stops{.monitor = "val_accuracy", .patience = 3, .restore_best_weights = true};
    model.fit(noise(), epochs(30), other_noise(), verbosity::off, stops);
    return std::pair(stops.stopped_epoch(), weights_of(model));
  };
  REQUIRE(train(one_device{{.threads = 1, .leaves = 4}}).first);
  CHECK(train(one_device{{.threads = 1, .leaves = 4}}) == train(mirrored{cpus(2), {.leaves = 4}}));
}

TEST_CASE("two callbacks that stop, or set the rate, do not undo each other") {
  auto model = make();
  const lambda_callback third{.on_epoch_end = [](training_state& s) { s.stop_training |= s.epoch == 2; }};
  early_stopping stops{.patience = 100};
  learning_rate_scheduler halves{[](int epoch, double rate) { return epoch == 0 ? rate : rate / 2; }};
  reduce_lr_on_plateau reduces{.monitor = "loss", .factor = 0.1, .patience = 1, .min_delta = 1e9};
  const training_history past = model.fit(noise(), epochs(10), other_noise(), verbosity::off, third, stops, halves, reduces);
  CHECK(past.size() == 3);
  const auto rates = past["learning_rate"];
  CHECK(rates[0] == doctest::Approx(0.05));
  CHECK(rates[1] == doctest::Approx(0.025));
  CHECK(rates[2] == doctest::Approx(0.00125));  // a tenth after the second epoch, and half of that
}

TEST_CASE("the rate of a scheduler holds in its epoch") {
  auto model = trainer{net{}, sgd{.learning_rate = 1}, sparse_categorical_crossentropy{}};
  std::vector<double> used;
  model.fit(noise(), epochs(3), verbosity::off, learning_rate_scheduler{[](int epoch) { return 0.25 * epoch; }},
            lambda_callback{.on_batch_end = [&](training_state& s) { used.push_back(s.learning_rate); }});
  CHECK(used == std::vector<double>{0, 0, 0, 0, .25, .25, .25, .25, .5, .5, .5, .5});
}

TEST_CASE("a loss that is nan is an error, or ends the training where that is asked for") {
  const auto fit = [](auto... callbacks) {
    auto model = trainer{net{}, sgd{.learning_rate = 1e30}, sparse_categorical_crossentropy{}};
    long updates = 0;
    const lambda_callback counts{.on_batch_end = [&](training_state&) { ++updates; }};
    const training_history past = model.fit(noise(), epochs(5), verbosity::off, counts, callbacks...);
    CHECK(past.size() == 1);
    CHECK(!std::isfinite(past["loss"][0]));
    return updates;
  };
  CHECK(contains(error_of([&] { fit(); }), "the loss"));
  CHECK(fit(terminate_on_nan{}) < 4);
}

TEST_CASE("an epoch whose validation loss is nan is no improvement, whatever a metric says, and a line says so") {
  const scratch_folder folder("nan-validation");
  std::vector<float> x(8, 1);
  x[3] = std::nanf("");
  std::ostringstream said, progress;
  auto *const log = std::clog.rdbuf(said.rdbuf()), *const out = std::cout.rdbuf(progress.rdbuf());
  trainer model{net{}, sgd{}, sparse_categorical_crossentropy{}, false_positives<class_id<0>>{}};
  early_stopping stops{.monitor = "val_false_positives", .patience = 1};
  model_checkpoint best{folder / "best.safetensors", {.monitor = "val_false_positives", .save_best_only = true}};
  reduce_lr_on_plateau reduces{.monitor = "val_false_positives", .factor = 0.5, .patience = 1};
  const training_history past = model.fit(noise(), epochs(5), validation(x, std::vector<int>{1, 2}), verbosity::line, stops, best,
                                          reduces, csv_logger{folder / "log.csv"});
  std::clog.rdbuf(log), std::cout.rdbuf(out);
  CHECK(std::isnan(past["val_loss"][0]));
  CHECK(!std::isnan(past["val_false_positives"][0]));
  CHECK(past.size() == 2);
  CHECK(!stops.best());
  CHECK(!best.best());
  CHECK(!std::filesystem::exists(folder / "best.safetensors"));
  CHECK(model.learning_rate() == doctest::Approx(0.0025));
  CHECK(contains(said.str(), "epoch 2: the loss of the validation is nan"));
  CHECK(contains(progress.str(), "val_loss: nan"));
  CHECK(contains(content(folder / "log.csv"), ",nan"));
  CHECK(!contains(content(folder / "log.csv"), "-nan"));
  training_state none;
  CHECK(contains(error_of([&] { early_stopping{.baseline = std::nan("")}.on_train_begin(none); }), "baseline is nan"));
  CHECK(contains(
      error_of([&] { model_checkpoint{"a.safetensors", {.initial_value_threshold = std::nan("")}}.on_train_begin(none); }),
      "is nan"));
}

TEST_CASE("metrics of one name are numbered wherever a name finds them") {
  const scratch_folder folder("names");
  trainer model{net{},
                sgd{.learning_rate = 0},
                sparse_categorical_crossentropy{},
                recall<class_id<0>>{},
                recall<class_id<1>>{},
                quarter{},
                recall<class_id<2>>{},
                half{},
                confusion_matrix{},
                confusion_matrix{}};
  std::vector<float> weights(model.parameters().size());
  weights[weights.size() - 16 + 1] = 5;  // the bias of class 1, which is then always predicted
  model.set_parameters(weights);
  const logs values = model.evaluate(some_data(3) | data::batch<16>);
  CHECK(values.names() == "loss, recall, recall_2, recall_1, recall_3, loss_1");
  CHECK(values["recall"] == 0);
  CHECK(values["recall_2"] == 1);
  CHECK(values["recall_1"] == 0.25);
  CHECK(values["recall_3"] == 0);
  CHECK(values["loss_1"] == 0.5);
  CHECK(values["loss"] > 1);
  CHECK(values.array("confusion_matrix") == values.array("confusion_matrix_1"));
  early_stopping stops{.monitor = "val_recall_2"};
  const training_history past = model.fit(noise(), epochs(2), validation(some_data(3) | data::batch<16>), verbosity::off, stops,
                                          csv_logger{folder / "a.csv"});
  CHECK(past["val_recall_2"] == std::vector<double>{1, 1});
  CHECK(past["recall_2"] == past["val_recall_2"]);
  CHECK(stops.best() == 1);
  CHECK(content(folder / "a.csv")
            .starts_with("epoch,loss,loss_1,recall,recall_1,recall_2,recall_3,val_loss,val_loss_1,val_recall,"));
}

TEST_CASE("csv_logger refuses a separator that would be read as part of a value, and quotes a name that has it") {
  CHECK(contains(error_of([] { make().fit(noise(), verbosity::off, csv_logger{"log.csv", {.separator = '.'}}); }),
                 "the separator '.'"));
  const scratch_folder folder("separators");
  const lambda_callback adds{.on_epoch_end = [](training_state& s) { s.values.set("a, \"b\"", 1); }};
  for (int times = 0; times < 2; ++times) {  // the second one reads the columns that are there
    make().fit(noise(), verbosity::off, adds, csv_logger{folder / "log.csv", {.append = true}});
    const std::string text = content(folder / "log.csv");
    CHECK(text.starts_with("epoch,\"a, \"\"b\"\"\",accuracy,loss\n"));
    CHECK(!contains(text, "NA"));
    CHECK(std::ranges::count(text, '\n') == 2 + times);
  }
}

TEST_CASE("csv_logger replaces a file, or appends to it") {
  const scratch_folder folder("csv-logger");
  const auto path = folder.path / "log.csv";
  const auto lines = [&] {
    const std::string text = content(path);
    return std::count(text.begin(), text.end(), '\n');
  };
  auto model = make();
  model.fit(noise(), epochs(2), verbosity::off, csv_logger{path});
  model.fit(noise(), epochs(3), verbosity::off, csv_logger{path, {.separator = ';'}});
  CHECK(lines() == 4);
  CHECK(content(path).starts_with("epoch;accuracy;loss\n0;"));
  model.fit(noise(), epochs(2), other_noise(), verbosity::off, csv_logger{path, {.separator = ';', .append = true}});
  CHECK(lines() == 6);  // only in the existing columns
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  model.fit(noise(), verbosity::off, csv_logger{path, {.separator = ';', .append = true}});
  CHECK(lines() == 7);  // the unfinished line is now ended
  CHECK(contains(error_of([&] { model.fit(noise(), verbosity::off, csv_logger{path, {.append = true}}); }), "log.csv"));
  CHECK(contains(error_of([&] { model.fit(noise(), verbosity::off, csv_logger{path / "no" / "log.csv"}); }), "log.csv"));
  model.fit(noise(), verbosity::off, csv_logger{folder.path / "new" / "log.csv"});
  CHECK(std::filesystem::exists(folder.path / "new" / "log.csv"));
}

TEST_CASE("model_checkpoint keeps the best value for the next fit, and does not save what is worse than the threshold") {
  const scratch_folder folder("best-checkpoint");
  const auto path = folder.path / "best.safetensors";
  auto model = make();
  model_checkpoint saves{path, {.monitor = "loss", .save_best_only = true, .initial_value_threshold = 1e-9}};
  model.fit(noise(), epochs(2), verbosity::off, saves);
  CHECK(!std::filesystem::exists(path));
  model_checkpoint best{path, {.monitor = "loss", .save_best_only = true}};
  model.fit(noise(), epochs(3), verbosity::off, best);
  const std::string content_of_best = content(path);
  const auto value = best.best();
  auto untrained = make();
  untrained.fit(noise(), epochs(1), verbosity::off, best);
  CHECK(best.best() == value);
  CHECK(content(path) == content_of_best);
}

TEST_CASE("model_checkpoint saves after each epoch, or after every n updates") {
  const scratch_folder folder("checkpoints");
  auto model = make();
  model.fit(noise(), epochs(2), verbosity::off, model_checkpoint{folder.path / "in/epoch{epoch}-{accuracy:.2f}.safetensors"},
            model_checkpoint{folder.path / "batch{batch:03d}.safetensors", {.save_every_batches = 3}});
  std::set<std::string> names;
  for (const auto& each : std::filesystem::recursive_directory_iterator(folder.path))
    if (each.is_regular_file()) names.insert(each.path().filename().string().substr(0, 8));
  CHECK(names == std::set<std::string>{"batch003", "batch006", "epoch1-0", "epoch2-0"});
}

TEST_CASE("steps_per_execution: what counts updates counts all of an execution") {
  const scratch_folder folder("executions");
  auto model = make();
  std::vector<long> seen;
  const lambda_callback sees{.on_batch_end = [&](training_state& s) {
    seen.push_back(s.batches);
    CHECK(s.reaches_multiple_of(3) == (s.step / 3 > (s.step - s.batches) / 3));
  }};
  model.fit(noise(), epochs(2), verbosity::off, steps_per_execution(2), sees,
            model_checkpoint{folder.path / "batch{batch:03d}.safetensors", {.save_every_batches = 3}});
  CHECK(seen == std::vector<long>{2, 2, 2, 2});
  std::set<std::string> names;
  for (const auto& each : std::filesystem::directory_iterator(folder.path)) names.insert(each.path().filename().string());
  CHECK(names == std::set<std::string>{"batch004.safetensors", "batch006.safetensors"});
}

TEST_CASE("settings that make no sense, and values that are not there, are errors that say what there is") {
  const auto fit = [](auto callback) { return error_of([&] { make().fit(noise(), verbosity::off, callback); }); };
  CHECK(contains(fit(early_stopping{}), "early_stopping: there is no 'val_loss'; known: loss, accuracy (val_"));
  CHECK(contains(fit(early_stopping{.monitor = "acuracy", .mode = monitor_mode::max}), "known: loss, accuracy"));
  CHECK(contains(fit(early_stopping{.monitor = "beauty"}), "there is no 'beauty'; known: loss, accuracy"));
  const auto measures = [](auto... adds) {
    return lambda_callback{.on_epoch_end = [](training_state& s) { s.values.set("beauty", 1); }, .adds = {adds...}};
  };
  const auto watch = [](const lambda_callback& measure, const auto& watcher) {
    return error_of([&, own = watcher]() mutable { make().fit(noise(), verbosity::off, measure, own); });
  };
  CHECK(contains(watch(measures(), early_stopping{.monitor = "beauty"}), "known: loss, accuracy (a callback that adds a value"));
  CHECK(contains(watch(measures("beauty"), early_stopping{.monitor = "beauty"}), "set mode to"));
  CHECK(watch(measures("beauty"), early_stopping{.monitor = "beauty", .mode = monitor_mode::max}) == "no error");
  for (const char* name : {"acceleration_mae", "accumulated_cost", "val_previous_mae", "terror"}) {
    CAPTURE(name);
    CHECK(!detail::mode_of(name));  // a known name is only a part of one of its words
  }
  for (const char* name : {"acc", "val_top_5_acc_1", "mean_iou", "true_positives", "f1_score"})
    CHECK(detail::mode_of(name) == monitor_mode::max);
  for (const char* name : {"false_negatives", "val_mean_absolute_error", "log_cosh", "loss_1"})
    CHECK(detail::mode_of(name) == monitor_mode::min);
  CHECK(contains(fit(early_stopping{.monitor = "loss", .patience = -1}), "patience is -1"));
  CHECK(contains(fit(reduce_lr_on_plateau{.factor = 1}), "factor is 1"));
  CHECK(contains(fit(model_checkpoint{"weights.txt"}), ".safetensors"));
  {  // before the first step
    auto model = make();
    const std::vector<float> before = weights_of(model);
    CHECK(error_of([&] { model.fit(noise(), verbosity::off, early_stopping{}); }) != "no error");
    CHECK(error_of([&] { model.fit(noise(), verbosity::off, reduce_lr_on_plateau{}); }) != "no error");
    CHECK(error_of([&] { model.fit(noise(), verbosity::off, model_checkpoint{"{f1}.safetensors"}); }) != "no error");
    early_stopping watcher{.monitor = "beauty", .mode = monitor_mode::max};  // monitors a value of a callback that comes after it
    CHECK(
        contains(error_of([&] { model.fit(noise(), verbosity::off, watcher, measures("beauty")); }),
                 "there is no 'beauty'; known: loss, accuracy (a callback that adds a value has its name in a member `adds`, and "
                 "comes before those that read it)"));
    CHECK(weights_of(model) == before);
  }
  const scratch_folder folder("patterns");
  const auto saves = [&](const char* pattern) { return fit(model_checkpoint{folder.path / pattern}); };
  CHECK(contains(saves("{val_loss}.safetensors"), "there is no 'val_loss'; known: epoch, batch, loss, accuracy"));
  for (const char* pattern : {"{val_loss}.safetensors", "{accuracy}.safetensors"})
    CHECK(fit(model_checkpoint{folder.path / pattern, {.save_every_batches = 1}})
              .ends_with("known: epoch, batch, loss (with save_every_batches, only the loss of the batch is known)"));
  CHECK(contains(saves("{epoch:s}.safetensors"), "the format 's' of 'epoch'"));
  CHECK(contains(saves("{loss:n}.safetensors"), "the format 'n' of 'loss'"));
  CHECK(contains(saves("{loss.safetensors"), "a { has no } after it"));
  for (const char* format : {"1.2.3f", "..f", "999f", "1.999f", "%f", "lf"})
    CHECK(contains(saves(detail::text_of({"{loss:", format, "}.safetensors"}).c_str()), "the format"));
  CHECK(contains(fit(model_checkpoint{"a.safetensors", {.save_best_only = true, .save_every_batches = 2}}),
                 "monitor cannot be 'val_loss'"));
  CHECK(contains(fit(early_stopping{.start_from_epoch = 10}), "there is no 'val_loss'"));
  CHECK(contains(error_of([] { early_stopping{}.set_state({{"wait", 1e300}}); }), "as 'wait'"));
}
