// needs: openssl protozero
// One process of a training with parameter servers, for test_parameter_server.py: ps_task STRATEGY LEAVES [EPOCHS [PAUSE]]
// STRATEGY: one_device asynchronous bounded synchronous. Waits PAUSE ms after each batch. Prints losses and a digest of the
// parameters. TLS: a folder with authority.pem, worker.pem and worker.key. UNPROTECTED: uses neither TLS nor a
// secret, on any address. SNAPSHOTS: the folder of the servers' snapshots, one after each update, or soon. HOLD: a file to wait
// for after HOLD_AFTER steps. START, RETRY: how many seconds a server may be unreachable at the start, and later. WORDS: the
// number of samples of words, for a network with tables of 100,000 rows. LAMB: uses lamb instead of adam. BETA_1_PERCENT: its
// setting.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <random>
#include <strata/data/sources/from_tensor_slices.hpp>
#include <strata/data/views/shard.hpp>
#include <strata/distribute/parameter_server.hpp>
#include <strata/resolvers/tf_config.hpp>
#include <strata/strata.hpp>
#include <string>
#include <thread>
#include <vector>

#include "outcome.hpp"
using namespace strata;
using namespace strata::core;

namespace {
using mlp = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dropout<0.2_r>,
                       dense<64, relu, kernel_regularizer<l2<1e-4_r>>>, dense<10, softmax>>;

/// The rows of the second table are cut at the ends of shards, which lie at multiples of 16 elements.
using two_tables = concat<branch<embedding<100'000, 16>, flatten>, branch<embedding<100'000, 5>, flatten>>;
using wide_and_narrow = sequential<input<2>, two_tables, dense<32, relu>, dense<4, softmax>>;

/// Pairs of 200 words that are far from each other; each word has a bit, and the label is both bits.
auto pairs_of_words(int count) {
  std::vector<float> words;
  std::vector<int> labels;
  std::mt19937 random(3);
  for (int n = 0; n < count; ++n) {
    const unsigned a = unsigned(random() % 200), b = unsigned(random() % 200);
    words.push_back(float(a * 499 + 17)), words.push_back(float(b * 499 + 17));
    labels.push_back(int(2 * (a % 2) + b % 2));
  }
  return data::from_tensor_slices(data::array<float, shape{2}>(std::move(words)), labels);
}

int number(const char* variable, int otherwise) {
  const char* value = std::getenv(variable);
  return value ? std::atoi(value) : otherwise;
}

struct say_when_under_way {
  int pause;
  const char* awaited = std::getenv("HOLD");
  int hold_after = number("HOLD_AFTER", 20);
  long steps = 0;
  void on_batch_end(training_state&) {
    if (++steps == 20) std::cout << "under way" << std::endl;
    while (awaited && steps == hold_after && !std::filesystem::exists(awaited))
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    if (pause > 0) std::this_thread::sleep_for(std::chrono::milliseconds(pause));
  }
};

/// adam, or lamb: one type, so that the program is compiled once. Both keep two slots.
struct chosen_optimizer : adam {
  bool is_lamb = std::getenv("LAMB") != nullptr;
  bool needs_norms() const { return is_lamb; }
  template <class T, class F>
  void with_rule(long step, double rate, F&& f) const {
    if (is_lamb)
      lamb{}.with_rule<T>(step, rate, f);
    else
      adam::with_rule<T>(step, rate, f);
  }
};

void train_on(const auto& samples, auto network, const auto& optimizer, const auto& strategy, std::size_t shards,
              std::size_t index, int count, int pause) {
  trainer model{network, optimizer, sparse_categorical_crossentropy{}, accuracy{}, strategy, seed(5)};
  if (model.serve()) return;
  const auto fit = [&](auto batches) {
    return model.fit(batches, epochs(count), validation(samples | data::batch<50>), say_when_under_way{pause}, verbose::off);
  };
  // all samples, or a part of them for each worker
  const training_history past = shards == 1 ? fit(samples | data::shuffle(600) | data::batch<64>)
                                            : fit(samples | data::shard(shards, index) | data::shuffle(600) | data::batch<64>);
  std::printf("it has %s for others\n", past.times().at(0).waiting > 0 ? "waited" : "not waited");
  std::printf("digest %s loss %a\n", test::digest_of(model.parameters()).c_str(), past["loss"].back());
  std::printf("first %.4f last %.4f accuracy %.4f\n", past["loss"].front(), past["loss"].back(), past["val_accuracy"].back());
}

void train(const auto& strategy, std::size_t shards, std::size_t index, int count, int pause) {
  if (const int words = number("WORDS", 0); words > 0)
    train_on(pairs_of_words(words), wide_and_narrow{}, adam{.learning_rate = 0.01}, strategy, shards, index, count, pause);
  else  // 9 x 64 + 24
    train_on(data::synthetic_digits(600, 3), mlp{}, chosen_optimizer{{.beta_1 = number("BETA_1_PERCENT", 90) / 100.}}, strategy,
             shards, index, count, pause);
}
}  // namespace

int main(int argc, char** argv) try {
  if (argc < 3) throw strata_error("ps_task STRATEGY LEAVES [EPOCHS [PAUSE]]");
  const std::string strategy = argv[1];
  const compute_options compute{.threads = 1, .leaves = std::atoi(argv[2])};
  const int count = argc > 3 ? std::atoi(argv[3]) : 2, pause = argc > 4 ? std::atoi(argv[4]) : 0;
  if (strategy == "one_device") {
    train(one_device{compute}, 1, 0, count, pause);
    return 0;
  }
  parameter_server_options options{
      .compute = compute, .partitioner = fixed_shards_partitioner{7}, .start_timeout = std::chrono::seconds(number("START", 10))};
  options.timeout = std::chrono::seconds(20);
  options.control.unprotected = std::getenv("UNPROTECTED") != nullptr;
  if (const char* folder = std::getenv("SNAPSHOTS"))
    options.snapshots = {.folder = folder, .every = std::chrono::milliseconds(100), .updates = 1};
  options.retry_for = std::chrono::seconds(number("RETRY", 3));
  if (const char* folder = std::getenv("TLS")) {
    const std::string keys = folder;
    options.control.tls = mutual_tls{keys + "/authority.pem", keys + "/worker.pem", keys + "/worker.key"};
  }
  if (strategy == "bounded") options.staleness = bounded_staleness{2};
  if (strategy == "synchronous") options.staleness = synchronous{};
  const cluster members = tf_config()();
  const bool own = strategy != "synchronous" && members.trains();
  train(parameter_server{tf_config(), options}, own ? std::size_t(members.size()) : 1, own ? std::size_t(members.rank()) : 0,
        count, pause);
} catch (...) {
  return test::report_error();
}
