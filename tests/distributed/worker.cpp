// needs: openssl protozero
// One process of a training, for test_*.py: worker NETWORK STRATEGY THREADS LEAVES [EPOCHS]. Prints a digest of the parameters.
// "worker strategies" prints the strategies of several processes.
// TLS: a folder with authority.pem, worker.pem and worker.key. SLOW: how many milliseconds to sleep after each epoch.
// EVALUATION: prints a line when a batch is evaluated, and sleeps so many milliseconds before. ELASTIC: the least number of
// workers of an elastic training. HEARTBEAT: its interval in milliseconds. STEPS: prints a line when each step ends, and sleeps
// so many milliseconds before the next. THROW: the epoch in which a callback throws. EXIT: after that, the program ends without
// destructors. HOLD: a file to wait for before the last epoch. UNPROTECTED: listens on addresses that others can reach. Under
// Slurm, the cluster is that of Slurm.
#include <chrono>
#include <concepts>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <strata/callbacks/early_stopping.hpp>
#include <strata/data/views/map.hpp>
#include <strata/distribute/mirrored.hpp>
#include <strata/distribute/multi_worker_mirrored.hpp>
#include <strata/resolvers/slurm.hpp>
#include <strata/resolvers/tf_config.hpp>
#include <strata/strata.hpp>
#include <string>
#include <thread>

#include "outcome.hpp"
using namespace strata;
using namespace strata::core;

namespace {
using mlp = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dropout<0.2_r>, dense<64, relu>, dense<10, softmax>>;
using cnn = sequential<input<28, 28, 1>, conv2d<32, 3, relu>, max_pool2d<2>, conv2d<64, 3, relu>, max_pool2d<2>, flatten,
                       dense<64, relu>, dense<10, softmax>>;
using normalized = sequential<input<28, 28, 1>, conv2d<8, 3, stride<2>>, batch_norm<>, activation<relu>, conv2d<8, 3, stride<2>>,
                              batch_norm<>, activation<relu>, flatten, dense<10, softmax>>;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

cluster members() { return environment("SLURM_JOB_ID").empty() ? tf_config()() : slurm()(); }

struct say_when_under_way {
  int pause = std::atoi(environment("SLOW").c_str());
  bool tells_steps = !environment("STEPS").empty();
  int pause_of_step = std::atoi(environment("STEPS").c_str());
  std::string awaited = environment("HOLD");

  void on_batch_end(training_state& s) {
    if (!tells_steps) return;
    const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
    std::printf("step %ld at %.6f\n", s.step, now.count());
    std::fflush(stdout);
    std::this_thread::sleep_for(std::chrono::milliseconds(pause_of_step));
  }

  void on_epoch_end(training_state& s) {
    if (environment("THROW") == std::to_string(s.epoch)) throw strata_error("the callback has had enough");
    std::printf("epoch %d\n", s.epoch);
    std::fflush(stdout);
    if (pause > 0) std::this_thread::sleep_for(std::chrono::milliseconds(pause));
    while (!awaited.empty() && s.epoch + 2 == s.epochs && !std::filesystem::exists(awaited))
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
};

void take_time_to_evaluate() {
  if (environment("EVALUATION").empty()) return;
  std::puts("evaluates");
  std::fflush(stdout);
  std::this_thread::sleep_for(std::chrono::milliseconds(std::atoi(environment("EVALUATION").c_str())));
}

template <class Network>
void train(const auto& strategy, int count) {
  const auto digits = data::synthetic_digits(300, 3);  // 4 x 64 + 44
  const std::string beta = environment("BETA_1");
  trainer model{Network{},
                adam{.beta_1 = beta.empty() ? 0.9 : std::stod(beta)},
                sparse_categorical_crossentropy{},
                accuracy{},
                auc{},
                strategy,
                seed(5)};
  const auto evaluated = digits | data::batch<50> | data::map([](auto&) { take_time_to_evaluate(); });
  // If RETURN is set, restores the weights of the epoch with the highest loss, which is the first one.
  early_stopping returns{.monitor = "loss",
                         .patience = count,
                         .mode = monitor_mode::max,
                         .restore_best_weights = true,
                         .start_from_epoch = environment("RETURN").empty() ? count : 0};
  training_history past;
  try {
    past = model.fit(digits | data::shuffle(300) | data::batch<64>, epochs(count), validation(evaluated), say_when_under_way{},
                     returns, verbose::off);
  } catch (...) {
    if (environment("EXIT").empty()) throw;
    test::report_error();
    std::_Exit(3);
  }
  std::printf("digest %s loss %a accuracy %a auc %a\n", test::digest_of(model.parameters()).c_str(), past["loss"].back(),
              past["val_accuracy"].back(), past["auc"].back());
}

/// zero<3> with segments of few elements, because the networks are small.
struct all_in_slices : zero<3> {
  template <class Backend>
  using backend = segmented<Backend, 4096>;
};

template <class Network>
void train_by(const std::string& strategy, compute_options compute, int count) {
  multi_worker_options options{.compute = compute, .start_timeout = std::chrono::seconds(10)};
  options.communication.timeout = std::chrono::seconds(10);
  if (const std::string folder = environment("TLS"); !folder.empty())
    options.control.tls = mutual_tls{folder + "/authority.pem", folder + "/worker.pem", folder + "/worker.key"};
  if (const std::string least = environment("ELASTIC"); !least.empty()) options.elastic.least_workers = std::atoi(least.c_str());
  if (const std::string interval = environment("HEARTBEAT"); !interval.empty())
    options.control.heartbeat.interval = std::chrono::milliseconds(std::atoi(interval.c_str()));
  options.control.unprotected = !environment("UNPROTECTED").empty();
  if (strategy == "one_device") train<Network>(one_device{compute}, count);
  if (strategy == "mirrored") train<Network>(mirrored{cpus(compute.threads), compute}, count);
  if (strategy == "multi_worker") train<Network>(multi_worker_mirrored{&members, options}, count);
  if constexpr (std::same_as<Network, mlp>) {
    if (strategy.ends_with("_zero_tcp")) options.communication.implementation = communication_implementation::tcp;
    if (strategy.starts_with("multi_worker_zero"))
      train<mlp>(multi_worker_mirrored<cpu, all_in_slices>{&members, options}, count);
  }
  options.communication.implementation = communication_implementation::tcp;
  if (strategy == "multi_worker_tcp") train<Network>(multi_worker_mirrored{&members, options}, count);
}
}  // namespace

int main(int argc, char** argv) try {
  if (argc == 2 && argv[1] == std::string("strategies")) {
    std::puts("multi_worker multi_worker_tcp");
    return 0;
  }
  if (argc < 5) throw strata_error("worker NETWORK STRATEGY THREADS LEAVES [EPOCHS]");
  const std::string network = argv[1], strategy = argv[2];
  const compute_options compute{.threads = std::atoi(argv[3]), .leaves = std::atoi(argv[4])};
  const int count = argc > 5 ? std::atoi(argv[5]) : 2;
  if (network == "mlp") train_by<mlp>(strategy, compute, count);
  if (network == "cnn") train_by<cnn>(strategy, compute, count);
  if (network == "normalized") train_by<normalized>(strategy, compute, count);
} catch (...) {
  return test::report_error();
}
