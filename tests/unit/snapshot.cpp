// Snapshots and backup_and_restore: an interrupted training has the results of an uninterrupted one, and damage is detected.
#include <doctest/doctest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <limits>
#include <sstream>
#include <strata/data/views/take.hpp>
#include <strata/io/os.hpp>
#include <strata/strata.hpp>
#include <strata/train/backup_and_restore.hpp>

#include "error_of.hpp"
#include "posix.hpp"
#include "repetitions.hpp"

using namespace strata;
using namespace strata::core;
using namespace strata::test;
namespace fs = std::filesystem;

namespace {

using small = sequential<input<6>, dense<9, relu>, batch_norm<>, dropout<0.3_r>, dense<3, softmax>>;

struct scratch {
  fs::path folder = fs::temp_directory_path() / ("strata-snapshot-" + std::to_string(io::os::process_id()));
  fs::path newest = folder / "snapshot.safetensors", previous = folder / "snapshot.previous.safetensors";
  scratch() { fs::remove_all(folder); }
  ~scratch() { fs::remove_all(folder); }
};

std::string content(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
void write(const fs::path& file, const std::string& text) { std::ofstream(file, std::ios::binary) << text; }

/// 75 samples: batches of 16, 16, 16, 16 and 11.
auto some_data(int count = 75, int first_label = -1) {
  std::vector<float> x(std::size_t(count) * 6);
  std::vector<int> y(std::size_t(count), 0);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(philox{3}.uniform(i));
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = int(3 * philox{4}.uniform(i));
  if (first_label >= 0) y[0] = first_label;
  return data::from_tensor_slices(data::array<float, shape{6}>(std::move(x)), y);
}
auto shuffled() { return some_data() | data::shuffle(75, {.seed = 5}) | data::batch<16>; }

/// A user-defined source that can only be read from the start.
struct own_source {
  using value_type = samples<float>;
  static constexpr int batch_size = 5;
  static constexpr shape sample_shape{6}, target_shape{};
  static constexpr label_kind labels = label_kind::sparse;
  std::vector<float> x = std::vector<float>(35 * 6);
  std::vector<std::int32_t> y = std::vector<std::int32_t>(35);
  std::vector<samples<float>> batches{};
  own_source() {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(philox{8}.uniform(i));
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = int(i % 3);
    for (int i = 0; i < 7; ++i) batches.push_back({x.data() + i * 30, y.data() + i * 5, 5});
  }
  own_source(const own_source&) = delete;
  auto begin() { return batches.begin(); }
  auto end() { return batches.end(); }
};

struct crash {};
/// Ends the training after that step, as a crash of the program would.
struct crash_at {
  long step;
  void on_batch_end(training_state& s) {
    if (s.step == step) throw crash{};
  }
};
/// A callback that depends only on the state of the training, so that it need not be saved.
struct lower_rate {
  void on_epoch_end(training_state& s) {
    if (s.epoch == 1) s.new_learning_rate = 3e-3;
  }
};

auto make_trainer(int threads = 1, std::uint64_t number = 11) {
  return trainer{small{},    adam{.learning_rate = cosine_decay{1e-2, 30}}, sparse_categorical_crossentropy{},
                 accuracy{}, one_device{{.threads = threads, .leaves = 4}}, seed(number)};
}
auto weights_of(const auto& model) { return std::vector(model.parameters().begin(), model.parameters().end()); }
bool equal(const training_history& a, const training_history& b) { return a.epochs() == b.epochs() && a.all() == b.all(); }

/// Trains with a crash after each step, and compares with a training without.
template <class MakeSource, class... Options>
void check_crashes(MakeSource make_source, long steps, backup_options how, Options... options) {
  scratch at;
  auto whole = make_trainer();
  auto all = make_source();
  const training_history expected = whole.fit(all, epochs(3), verbose::off, lower_rate{}, options...);
  REQUIRE(whole.executor().step() == steps);
  for (long step = 1; step <= steps; step += is_sanitized ? 4 : 1) {
    CAPTURE(step);
    {
      auto model = make_trainer();
      auto source = make_source();
      CHECK_THROWS_AS(model.fit(source, epochs(3), verbose::off, lower_rate{}, options..., crash_at{step},
                                backup_and_restore{at.folder, how}),
                      crash);
    }
    auto model = make_trainer(2);  // with another number of threads
    auto source = make_source();
    const training_history past =
        model.fit(source, epochs(3), verbose::off, lower_rate{}, options..., backup_and_restore{at.folder, how});
    REQUIRE(weights_of(model) == weights_of(whole));
    REQUIRE(equal(past, expected));
    REQUIRE(model.executor().step() == steps);
    REQUIRE(model.learning_rate() == whole.learning_rate());
    REQUIRE(!fs::exists(at.folder));
  }
}

/// A folder with two snapshots: of step 14, in the third epoch, and of step 12.
void interrupt_at_15(const scratch& at) {
  auto model = make_trainer();
  CHECK_THROWS_AS(model.fit(shuffled(), epochs(3), verbose::off, lower_rate{}, crash_at{15},
                            backup_and_restore{at.folder, {.save_every_epochs = 0, .save_every_batches = 2}}),
                  crash);
  REQUIRE(fs::exists(at.newest));
  REQUIRE(fs::exists(at.previous));
}
struct first_step {
  long* step;
  void on_train_begin(training_state& s) { *step = s.step; }
};
/// Resumes from the folder and checks the result. Returns the step at which it began.
long go_on(const scratch& at) {
  auto whole = make_trainer();
  whole.fit(shuffled(), epochs(3), verbose::off, lower_rate{});
  long step = -1;
  auto model = make_trainer();
  model.fit(shuffled(), epochs(3), verbose::off, lower_rate{}, first_step{&step}, backup_and_restore{at.folder});
  CHECK(weights_of(model) == weights_of(whole));
  return step;
}
/// The text that f writes to the error stream.
template <class F>
std::string said(F&& f) {
  std::ostringstream text;
  std::streambuf* const before = std::cerr.rdbuf(text.rdbuf());
  f();
  std::cerr.rdbuf(before);
  return text.str();
}
bool says(const std::string& text, auto... parts) { return ((text.find(parts) != text.npos) && ...); }

}  // namespace

TEST_CASE("fit says where it goes on, unless it is to be silent") {
  const scratch at;
  const auto printed = [&](auto... options) {
    auto model = make_trainer();
    const std::ostringstream out;
    std::streambuf* const before = std::cout.rdbuf(out.rdbuf());
    CHECK_THROWS_AS(model.fit(shuffled(), epochs(3), options..., backup_and_restore{at.folder, {.save_every_batches = 1}}),
                    crash);
    std::cout.rdbuf(before);
    return out.str();
  };
  CHECK(printed(verbose::line, crash_at{7}).starts_with("Epoch 1/3 - "));
  CHECK(printed(verbose::off, crash_at{8}).empty());
  CHECK(printed(verbose::line, crash_at{9}).starts_with("resumed at epoch 2, after 7 updates\n"));
}

TEST_CASE("a crash after any step: the same weights and the same history as without") {
  SUBCASE("saved after each epoch") { check_crashes(shuffled, 15, {}); }
  SUBCASE("saved after each step") { check_crashes(shuffled, 15, {.save_every_batches = 1}); }
  SUBCASE("saved after every third step, with validation") {
    check_crashes(shuffled, 15, {.save_every_epochs = 0, .save_every_batches = 3}, validation(some_data(20) | data::batch<8>));
  }
  SUBCASE("epochs of 3 steps") { check_crashes(shuffled, 9, {.save_every_batches = 1}, steps_per_epoch(3)); }
  SUBCASE("epochs of 7 steps: longer than a pass") { check_crashes(shuffled, 21, {.save_every_batches = 2}, steps_per_epoch(7)); }
  SUBCASE("epochs of 5 steps: as long as a pass") { check_crashes(shuffled, 15, {.save_every_batches = 1}, steps_per_epoch(5)); }
  SUBCASE("never saved: from the start") { check_crashes(shuffled, 15, {.save_every_epochs = 0}); }
  SUBCASE("batches made ahead") {
    check_crashes([] { return shuffled() | data::prefetch(3); }, 15, {.save_every_batches = 2});
  }
  SUBCASE("without a short batch") {
    check_crashes([] { return some_data() | data::shuffle(20, {.seed = 5}) | data::batch<16, data::drop_remainder>; }, 12,
                  {.save_every_batches = 1});
  }
  SUBCASE("samples that repeat") {
    check_crashes([] { return some_data() | data::shuffle(75) | data::repeat(2) | data::batch<32>; }, 15,
                  {.save_every_batches = 1});
  }
  SUBCASE("a source that cannot begin in the middle") {
    check_crashes([] { return own_source(); }, 21, {.save_every_batches = 2});
    check_crashes([] { return own_source(); }, 15, {.save_every_batches = 1}, steps_per_epoch(5));
  }
}

TEST_CASE("the slots of other optimizers: the same, with momentum in double, too") {
  const auto check_a_crash = []<class Precision>(const auto& optimizer, Precision) {
    scratch at;
    const auto source = [] { return some_data() | data::batch<16, typename Precision::value_type>; };
    const auto make = [&] { return trainer{small{}, optimizer, sparse_categorical_crossentropy{}, Precision{}}; };
    auto whole = make();
    whole.fit(source(), epochs(2), verbose::off);
    auto first = make();
    CHECK_THROWS_AS(
        first.fit(source(), epochs(2), verbose::off, crash_at{8}, backup_and_restore{at.folder, {.save_every_batches = 1}}),
        crash);
    auto second = make();
    second.fit(source(), epochs(2), verbose::off, backup_and_restore{at.folder});
    CHECK(weights_of(second) == weights_of(whole));
  };
  check_a_crash(sgd{.learning_rate = 0.1, .momentum = 0.9}, precision::f64{});
  check_a_crash(nadam{}, precision::f32{});
  check_a_crash(ftrl{.learning_rate = 0.1, .l1_regularization_strength = 1e-3}, precision::f32{});
}

TEST_CASE("another size of the batches afterwards: no sample twice, none left out") {
  scratch at;
  auto first = make_trainer(), second = make_trainer();
  CHECK_THROWS_AS(first.fit(shuffled(), verbose::off, crash_at{3}, backup_and_restore{at.folder, {.save_every_batches = 2}}),
                  crash);
  second.fit(some_data() | data::shuffle(75, {.seed = 5}) | data::batch<8>, verbose::off, backup_and_restore{at.folder});
  CHECK(second.executor().step() == 2 + 6);  // 75 - 32 samples
}

TEST_CASE("a learning rate that was set by hand goes on") {
  scratch at;
  {
    auto model = make_trainer();
    model.set_learning_rate(0.025);
    CHECK_THROWS_AS(model.fit(shuffled(), verbose::off, crash_at{3}, backup_and_restore{at.folder, {.save_every_batches = 1}}),
                    crash);
  }
  auto model = make_trainer();
  model.fit(shuffled(), verbose::off, backup_and_restore{at.folder});
  CHECK(model.learning_rate() == 0.025);
}

TEST_CASE("a training that was done need not be done again") {
  scratch at;
  auto model = make_trainer(), again = make_trainer();
  const training_history past =
      model.fit(shuffled(), epochs(2), verbose::off, backup_and_restore{at.folder, {.delete_checkpoint = false}});
  CHECK(fs::exists(at.newest));
  long step = 0;
  CHECK(equal(again.fit(shuffled(), epochs(2), verbose::off, first_step{&step}, backup_and_restore{at.folder}), past));
  CHECK(step == 10);
  CHECK(weights_of(again) == weights_of(model));
}

TEST_CASE("early stopping is not forgotten") {
  struct stop {
    void on_batch_end(training_state& s) {
      if (s.step == 7) s.stop_training = true;
    }
  };
  scratch at;
  auto whole = make_trainer(), first = make_trainer(), second = make_trainer();
  const training_history expected = whole.fit(shuffled(), epochs(5), verbose::off, stop{});
  REQUIRE(expected.size() == 2);
  CHECK_THROWS_AS(first.fit(shuffled(), epochs(5), verbose::off, stop{}, crash_at{9},
                            backup_and_restore{at.folder, {.save_every_batches = 1}}),
                  crash);
  CHECK(equal(second.fit(shuffled(), epochs(5), verbose::off, backup_and_restore{at.folder}), expected));
  CHECK(weights_of(second) == weights_of(whole));
}

TEST_CASE("a position as text") {
  training_position at;
  at.step = std::numeric_limits<long>::max(), at.epoch = 3, at.in_epoch = true, at.steps_of_epoch = 2, at.samples_of_epoch = 128;
  at.metric_sums = {{1.0 / 3, 128}, {1e300, 0}};
  at.next_pass = 4, at.in_pass = true, at.batches_of_pass = 17;
  at.data = {2, std::numeric_limits<std::uint64_t>::max()};
  at.learning_rate = 5e-324, at.loss_weights = {1.0 / 3, 2}, at.stop_training = true;
  at.past.add(0, {{"loss", 0.1}, {"a name with spaces", -std::numeric_limits<double>::infinity()}});
  at.past.add(1, {{"loss", std::numeric_limits<double>::max()}});
  const auto metadata = detail::texts_of(at);
  const training_position read = detail::position_of(metadata, "file");
  CHECK(detail::texts_of(read) == metadata);
  CHECK(read.step == at.step);
  CHECK(read.data == at.data);
  CHECK(read.metric_sums[0].sum == 1.0 / 3);
  CHECK(read.learning_rate == 5e-324);
  CHECK(!read.new_learning_rate);
  CHECK(read.loss_weights == at.loss_weights);
  CHECK(equal(read.past, at.past));
  for (const auto& [key, value] : metadata) {
    if (key.starts_with("data_") || key.ends_with("learning_rate") || key == "loss_weights") continue;
    auto without = metadata;
    without.erase(key);
    CHECK(error_of([&] { (void)detail::position_of(without, "file"); }) == "file: '" + key + "' is missing or invalid");
  }
  for (const char* key : {"step", "data_samples", "metric_sums", "history", "learning_rate", "loss_weights"}) {
    auto wrong = metadata;
    wrong[key] = "1x";
    CHECK(says(error_of([&] { (void)detail::position_of(wrong, "file"); }), key));
  }
  for (const char* key : {"step", "epoch", "samples_of_epoch", "next_pass", "data_epoch"}) {
    auto negative = metadata;
    negative[key] = "-1";
    CHECK(says(error_of([&] { (void)detail::position_of(negative, "file"); }), key));
  }
  auto names = metadata;
  for (int i = 0; i <= 1000; ++i) names["history"] += "1 0 name" + std::to_string(i) + '\n';
  CHECK(says(error_of([&] { (void)detail::position_of(names, "file"); }), "history"));
  at.past.add(2, {{"two\nlines", 0}});
  CHECK(says(error_of([&] { (void)detail::texts_of(at); }), "line break"));

  const std::string sent = detail::packed(metadata);
  CHECK(detail::unpacked(sent) == metadata);
  for (std::size_t size = 1; size < sent.size(); ++size) {
    const std::string cut = sent.substr(0, size);
    try {
      CHECK(detail::unpacked(cut).size() < metadata.size());  // cut between two values
    } catch (const strata_error& e) {
      CHECK(says(e.what(), "damaged"));
    }
  }
}

TEST_CASE("a damaged snapshot: the one before is taken, and a line says so") {
  scratch at;
  interrupt_at_15(at);
  const std::string good = content(at.newest);
  SUBCASE("not damaged") { CHECK(go_on(at) == 14); }
  SUBCASE("missing, as between two renamings") {
    fs::remove(at.newest);
    CHECK(go_on(at) == 12);
  }
  SUBCASE("damaged") {
    std::string damaged;
    SUBCASE("empty") {}
    SUBCASE("a few bytes") { damaged = good.substr(0, 7); }
    SUBCASE("half of it") { damaged = good.substr(0, good.size() / 2); }
    SUBCASE("the last byte is missing") { damaged = good.substr(0, good.size() - 1); }
    SUBCASE("longer") { damaged = good + '\0'; }
    SUBCASE("zeros at the end, as after a crash of the machine") {
      damaged = good.substr(0, good.size() - 300) + std::string(300, '\0');
    }
    write(at.newest, damaged);
    long step = 0;
    const std::string words = said([&] { step = go_on(at); });
    CHECK(step == 12);
    CHECK(says(words, at.newest.string() + " is damaged: it", "; the training continues from " + at.previous.string()));
  }
  SUBCASE("a folder has its name") {
    fs::remove(at.newest);
    fs::create_directories(at.newest / "inside");
    long step = 0;
    const std::string words = said([&] { step = go_on(at); });
    CHECK(step == 12);
    CHECK(says(words, at.newest.string() + " is damaged: it is a folder; the training continues from " + at.previous.string()));
  }
  SUBCASE("both damaged") {
    write(at.newest, "");
    write(at.previous, good.substr(0, 1000));
    auto model = make_trainer();
    const auto before = weights_of(model);
    const std::string words = error_of([&] { model.fit(shuffled(), epochs(3), verbose::off, backup_and_restore{at.folder}); });
    CHECK(says(words, at.newest.string() + " is damaged: it is empty, and " + at.previous.string() + " is damaged: its checksum",
               "there is no snapshot left"));
    CHECK(weights_of(model) == before);
    CHECK(fs::exists(at.previous));
  }
  SUBCASE("a save after that keeps the good one") {
    write(at.newest, "x");
    auto model = make_trainer();
    said([&] {
      CHECK_THROWS_AS(
          model.fit(shuffled(), epochs(3), verbose::off, crash_at{14}, backup_and_restore{at.folder, {.save_every_batches = 1}}),
          crash);
    });
    CHECK(damage_of_snapshot(at.newest).empty());
    CHECK(damage_of_snapshot(at.previous).empty());
    CHECK(content(at.folder / "snapshot.damaged.safetensors") == "x");
  }
}

TEST_CASE("no flipped bit escapes the checksum") {
  scratch at;
  interrupt_at_15(at);
  const std::string good = content(at.newest);
  const fs::path copy = at.folder / "copy";
  for (std::size_t bit = 0; bit < 8 * good.size(); bit += 37) {
    std::string flipped = good;
    flipped[bit / 8] = char(flipped[bit / 8] ^ 1 << bit % 8);
    write(copy, flipped);
    REQUIRE(!damage_of_snapshot(copy).empty());
  }
  write(copy, good);
  CHECK(damage_of_snapshot(copy).empty());
}

TEST_CASE("a snapshot of another training is refused, with both descriptions; nothing changes") {
  scratch at;
  interrupt_at_15(at);
  const std::string file = at.newest.string();
  const auto refusal = [&](auto&& model, auto&& source) {
    const auto before = weights_of(model);
    const std::string words = error_of([&] { model.fit(source, epochs(3), verbose::off, backup_and_restore{at.folder}); });
    CHECK(weights_of(model) == before);
    CHECK(fs::exists(at.newest));
    return words;
  };
  const sparse_categorical_crossentropy<> loss;
  const accuracy metric;
  CHECK(says(refusal(trainer{small{}, sgd{}, loss, metric, seed(11)}, shuffled()), file, "'optimizer adam with 2 slots'",
             "'optimizer sgd with"));
  CHECK(says(refusal(trainer{small{}, adam{}, loss, metric, seed(12)}, shuffled()), file, "'seed 11'", "'seed 12'"));
  CHECK(says(refusal(trainer{small{}, adam{}, loss, seed(11)}, shuffled()), file, "'metric accuracy'", "'seed 11'"));
  CHECK(says(refusal(trainer{small{}, adam{}, loss, metric, seed(11), precision::mixed_bf16{}}, shuffled()), file,
             "'precision f32'", "'precision mixed_bf16'"));
  const auto recall_of = []<int Class>(class_id<Class>) {
    using metrics = type_list<recall<class_id<Class>>>;
    return detail::description_of<program<small, sparse_categorical_crossentropy<>, adam, metrics>>(1, 2);
  };
  CHECK(says(detail::difference_of(recall_of(class_id<0>{}), recall_of(class_id<1>{})), "'metric recall("));
  using wider = sequential<input<6>, dense<10, relu>, batch_norm<>, dropout<0.3_r>, dense<3, softmax>>;
  CHECK(says(refusal(trainer{wider{}, adam{}, loss, metric, seed(11)}, shuffled()), file, "'parameter dense/kernel (6, 9)'",
             "'parameter dense/kernel (6, 10)'"));
  CHECK(says(refusal(make_trainer(), some_data() | data::shuffle(75, {.seed = 6}) | data::batch<16>), file, "seed 5", "seed 6"));
  CHECK(says(refusal(make_trainer(), some_data(76) | data::shuffle(75, {.seed = 5}) | data::batch<16>), file, "75", "76"));
  CHECK(says(refusal(make_trainer(), some_data(75, 7) | data::shuffle(75, {.seed = 5}) | data::batch<16>), file,
             "'data set from_tensor_slices(75 samples, checksum "));
  CHECK(says(refusal(make_trainer(), shuffled() | data::take(3)), file, "seed 5) | batch(16) | take(3)'"));
  SUBCASE("and what is none") {
    fs::remove(at.previous);
    auto model = make_trainer();
    const auto values = weights_of(model);
    std::vector<safetensor> tensors{safetensor::of("w", {values.size()}, values)};
    write_safetensors(at.newest, tensors);
    CHECK(says(error_of([&] { model.fit(shuffled(), verbose::off, backup_and_restore{at.folder}); }), file, "damaged"));
  }
}

TEST_CASE("a snapshot of a build with other arithmetic is a training that goes on, and a line says to which bits") {
  scratch at;
  interrupt_at_15(at);
  const std::string here = detail::text_of_arithmetic();
  const auto resumed = [&] {
    std::ostringstream said;
    const auto before = std::clog.rdbuf(said.rdbuf());
    auto model = make_trainer();
    model.fit(shuffled(), epochs(3), verbose::off, backup_and_restore{at.folder, {.delete_checkpoint = false}});
    std::clog.rdbuf(before);
    return said.str();
  };
  SUBCASE("this one") { CHECK(resumed().empty()); }
  SUBCASE("another one") {
    const std::string other = "arithmetic 0" + here.substr(here.find(' ', 11));
    std::string bytes = content(at.newest);
    bytes.replace(bytes.find(here), here.size(), other);
    const auto sum = detail::checksum_of(std::as_bytes(std::span(bytes)));
    std::memcpy(bytes.data() + bytes.size() - sizeof sum, &sum, sizeof sum);
    write(at.newest, bytes);
    CHECK(resumed() == at.newest.string() + " was written by a build with " + other + ", but this one has " + here +
                           ": the training continues, but the bits will differ\n");
  }
}

TEST_CASE("a folder that cannot be made, wrong numbers") {
  scratch at;
  fs::create_directory(at.folder);
  write(at.folder / "file", "");
  auto model = make_trainer();
  CHECK(says(error_of([&] { model.fit(shuffled(), verbose::off, backup_and_restore{at.folder / "file" / "deeper"}); }),
             (at.folder / "file" / "deeper").string()));
  CHECK(says(error_of([&] { model.fit(shuffled(), verbose::off, backup_and_restore{""}); }), "a folder is needed"));
  CHECK(says(error_of([&] { model.fit(shuffled(), verbose::off, backup_and_restore{"x", {.save_every_epochs = -1}}); }), "-1"));
}

namespace {
/// Starts another training with the same folder after a step.
struct second_training_at {
  long step;
  fs::path folder;
  std::string* words;
  void on_batch_end(training_state& s) {
    if (s.step != step) return;
    auto model = make_trainer();
    *words = error_of([&] { model.fit(shuffled(), epochs(3), verbose::off, backup_and_restore{folder}); });
  }
};
}  // namespace

TEST_CASE("two trainings with one folder: the later is told which process uses it, and the earlier loses nothing") {
  scratch at;
  std::string words;
  auto whole = make_trainer();
  whole.fit(shuffled(), epochs(3), verbose::off);
  for (const long step : {1L, 8L}) {  // before the first snapshot, and after
    auto model = make_trainer();
    model.fit(shuffled(), epochs(3), verbose::off, second_training_at{step, at.folder, &words}, backup_and_restore{at.folder});
    CHECK(weights_of(model) == weights_of(whole));
    CHECK(words == at.folder.string() + " is in use by process " + std::to_string(io::os::process_id()) + " on " +
                       io::os::host_name() + ": give each training a folder of its own");
    CHECK(!fs::exists(at.folder));
  }
}

TEST_CASE("what a killed process left is cleared away") {
  scratch at;
  interrupt_at_15(at);
  write(at.folder / "snapshot.new.safetensors", "abc");
  CHECK(go_on(at) == 14);
  CHECK(!fs::exists(at.folder));
}

namespace {
struct terminate_at {
  long step;
  void on_batch_end(training_state& s) {
    if (s.step == step) ::raise(SIGTERM);
  }
};
struct watch_interruption {
  bool* seen;
  void on_train_end(training_state& s) { *seen = s.interrupted; }
};
int terminations = 0;
void count_termination(int signal) {
  ++terminations;
  std::signal(signal, count_termination);  // some systems forget it
}
}  // namespace

TEST_CASE("SIGTERM: fit saves, returns and says so; and goes on later") {
  const auto before = std::signal(SIGTERM, count_termination);
  terminations = 0;
  scratch at;
  auto whole = make_trainer();
  const training_history expected = whole.fit(shuffled(), epochs(3), verbose::off);
  for (long step = 1; step <= 15; ++step) {
    CAPTURE(step);
    auto first = make_trainer();
    backup_and_restore backup{at.folder, {.save_every_epochs = 0}};
    bool seen = false;
    const training_history some =
        first.fit(shuffled(), epochs(3), verbose::off, terminate_at{step}, watch_interruption{&seen}, backup);
    CHECK(backup.interrupted());
    CHECK(seen);
    CHECK(first.executor().step() == step);
    CHECK(int(some.size()) == (step - 1) / 5);
    REQUIRE(fs::exists(at.newest));
    auto second = make_trainer();
    CHECK(equal(second.fit(shuffled(), epochs(3), verbose::off, backup), expected));
    CHECK(!backup.interrupted());
    CHECK(weights_of(second) == weights_of(whole));
  }
  SUBCASE("at the end of the last epoch: that is saved as well") {
    struct terminate_late {
      void on_epoch_end(training_state& s) {
        if (s.epoch == 2) ::raise(SIGTERM);
      }
    };
    auto first = make_trainer(), second = make_trainer();
    backup_and_restore backup{at.folder};
    CHECK(equal(first.fit(shuffled(), epochs(3), verbose::off, terminate_late{}, backup), expected));
    CHECK(backup.interrupted());
    CHECK(equal(second.fit(shuffled(), epochs(3), verbose::off, backup), expected));
    CHECK(weights_of(second) == weights_of(whole));
    CHECK(!backup.interrupted());
  }
  CHECK(terminations == 0);
  SUBCASE("too late: it arrives after fit") {
    struct terminate_too_late {
      void on_train_end(training_state&) { ::raise(SIGTERM); }
    };
    auto model = make_trainer();
    backup_and_restore backup{at.folder};
    model.fit(shuffled(), verbose::off, terminate_too_late{}, backup);
    CHECK(!backup.interrupted());
    CHECK(terminations == 1);
  }
  SUBCASE("the handler of before is back, also after an exception") {
    auto model = make_trainer();
    backup_and_restore backup{at.folder};
    model.fit(shuffled(), verbose::off, backup);
    ::raise(SIGTERM);
    CHECK(terminations == 1);
    CHECK_THROWS_AS(model.fit(shuffled(), verbose::off, crash_at{model.executor().step() + 2}, backup), crash);
    ::raise(SIGTERM);
    CHECK(terminations == 2);
  }
  SUBCASE("where it is ignored, it stays ignored") {
    std::signal(SIGTERM, SIG_IGN);
    auto model = make_trainer();
    backup_and_restore backup{at.folder};
    model.fit(shuffled(), verbose::off, terminate_at{2}, backup);
    CHECK(model.executor().step() == 5);
    CHECK(!backup.interrupted());
  }
  std::signal(SIGTERM, before);
}

TEST_CASE("a stream that has been taken up is where it was told, until it gives a batch") {
  auto source = shuffled() | data::prefetch(2);
  detail::stream_over<float, decltype(source)> stream(source);
  samples<float> batch;
  stream.start(0);
  CHECK(!stream.where());
  REQUIRE(stream.next(batch));
  const auto after_one = stream.where();
  CHECK(after_one == data_position{0, 16});
  REQUIRE(stream.next(batch));
  stream.resume(0, after_one, 1);
  CHECK(stream.where() == after_one);
  REQUIRE(stream.next(batch));
  CHECK(stream.where() == data_position{0, 32});
}

#ifdef STRATA_TEST_POSIX
TEST_CASE("a full disk: an error names the file, and the older snapshots stay") {
  scratch at;
  interrupt_at_15(at);
  const std::string newest = content(at.newest), previous = content(at.previous);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  for (const rlim_t most : {rlim_t{10}, rlim_t{newest.size() / 2}, rlim_t{newest.size() - 1}}) {
    const auto handler = std::signal(SIGXFSZ, SIG_IGN);
    const rlimit little{most, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &little);
    auto model = make_trainer();
    const std::string words = error_of(
        [&] { model.fit(shuffled(), epochs(3), verbose::off, backup_and_restore{at.folder, {.save_every_batches = 1}}); });
    setrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, handler);
    CHECK(says(words, "cannot write " + (at.folder / "snapshot.new.safetensors").string() + ": File too large"));
    CHECK(content(at.newest) == newest);
    CHECK(content(at.previous) == previous);
    CHECK(std::distance(fs::directory_iterator(at.folder), {}) == 2);
  }
  CHECK(go_on(at) == 14);
}

namespace {
struct killed_at {
  long step;
  void on_batch_end(training_state& s) {
    if (s.step == step) ::raise(SIGKILL);
  }
};
}  // namespace

TEST_CASE("the folder of a training that is killed is free") {
  scratch at;
  const pid_t child = ::fork();
  if (child == 0) {
    auto model = make_trainer(1);
    model.fit(shuffled(), epochs(3), verbose::off, killed_at{12}, backup_and_restore{at.folder});
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  REQUIRE(WIFSIGNALED(status));
  CHECK(fs::exists(at.folder / "snapshot.lock"));
  auto whole = make_trainer(), model = make_trainer();
  whole.fit(shuffled(), epochs(3), verbose::off);
  long step = 0;
  model.fit(shuffled(), epochs(3), verbose::off, first_step{&step}, backup_and_restore{at.folder});
  CHECK(step == 10);
  CHECK(weights_of(model) == weights_of(whole));
  CHECK(!fs::exists(at.folder));
}

namespace {
struct leave_link {
  fs::path folder;
  void on_batch_end(training_state& s) {
    if (s.step == 3) fs::create_symlink("letter", folder / "snapshot.new.safetensors");
  }
};
}  // namespace

TEST_CASE("a link in the place of the next snapshot is replaced, not followed") {
  scratch at;
  fs::create_directories(at.folder);
  write(at.folder / "letter", "a word");
  auto model = make_trainer();
  model.fit(shuffled(), epochs(1), verbose::off, leave_link{at.folder},
            backup_and_restore{at.folder, {.delete_checkpoint = false}});
  CHECK(content(at.folder / "letter") == "a word");
  CHECK(fs::is_regular_file(fs::symlink_status(at.newest)));
}
#endif
