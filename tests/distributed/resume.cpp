// needs: openssl protozero
// A training that can be interrupted, for test_resume.py: resume FOLDER STRATEGY THREADS LEAVES [MILLISECONDS]. Prints
// "under way", then a digest of parameters and history, or "interrupted" and the step. MILLISECONDS: a pause after each step.
// STRATEGY is one_device, mirrored or multi_worker, perhaps with _tcp, _bf16, _elastic and _zero. TIMEOUT: of a wait, in
// milliseconds. HEARTBEAT: its interval in milliseconds. START: how many seconds a worker may be missing at the start.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <strata/callbacks/stop_on_interrupt.hpp>
#include <strata/distribute/mirrored.hpp>
#include <strata/distribute/multi_worker_mirrored.hpp>
#include <strata/resolvers/tf_config.hpp>
#include <strata/strata.hpp>
#include <strata/train/backup_and_restore.hpp>
#include <string>
#include <string_view>
#include <thread>

#include "outcome.hpp"
using namespace strata;

namespace {
using small_cnn = sequential<input<28, 28, 1>, conv2d<8, 3, stride<2>>, batch_norm<>, activation<relu>, flatten, dropout<0.2_r>,
                             dense<10, softmax>>;

int number(const char* variable, int otherwise) {
  const char* value = std::getenv(variable);
  return value ? std::atoi(value) : otherwise;
}

struct take_time {
  std::chrono::milliseconds pause;
  void on_train_begin(training_state& s) { say("under way at step ", s.step); }
  void on_batch_end(training_state&) { std::this_thread::sleep_for(pause); }
  static void say(const char* what, long number) {
    std::printf("%s%ld\n", what, number);
    std::fflush(stdout);
  }
};

class digest {
  detail::fnv1a hash_;

 public:
  template <class Number>
  void add(Number number) {
    char bytes[sizeof number];
    std::memcpy(bytes, &number, sizeof number);
    hash_.add(std::string_view(bytes, sizeof bytes));
  }
  unsigned long long value() const { return hash_.value(); }
};

int train(const auto& strategy, const std::string& folder, std::chrono::milliseconds pause) {
  const auto digits = data::synthetic_digits(300, 3);  // 4 x 64 + 44
  trainer model{small_cnn{}, adam{}, sparse_categorical_crossentropy{}, accuracy{}, strategy, seed(5)};
  backup_and_restore backup{folder, {.save_every_batches = 3}};
  const training_history past =
      model.fit(digits | data::shuffle(300) | data::batch<64> | data::prefetch(2), epochs(6), steps_per_epoch(4),
                validation(digits | data::batch<100>), take_time{pause}, stop_on_interrupt{}, backup, verbose::off);
  if (backup.interrupted()) {
    take_time::say("interrupted at step ", model.executor().step());
    return 75;  // EX_TEMPFAIL: to be started again
  }
  digest sum;
  for (const float w : model.parameters()) sum.add(w);
  const std::string weights = test::digest_of(model.parameters());
  for (const logs& epoch : past.all())
    for (const auto& [name, value] : epoch) sum.add(value);
  std::printf("digest %016llx of %zu epochs, weights %s\n", sum.value(), past.size(), weights.c_str());
  return 0;
}
}  // namespace

int main(int argc, char** argv) try {
  if (argc < 5) throw strata_error("resume FOLDER STRATEGY THREADS LEAVES [MILLISECONDS]");
  const std::string folder = argv[1];
  const std::string_view strategy = argv[2];
  const auto is = [&](const char* word) { return strategy.find(word) != strategy.npos; };
  const compute_options compute{.threads = std::atoi(argv[3]), .leaves = std::atoi(argv[4])};
  const std::chrono::milliseconds pause(argc > 5 ? std::atoi(argv[5]) : 0);
  multi_worker_options options{.compute = compute, .start_timeout = std::chrono::seconds(number("START", 20))};
  options.communication.timeout = std::chrono::milliseconds(number("TIMEOUT", 20'000));
  options.control.heartbeat.interval = std::chrono::milliseconds(number("HEARTBEAT", 2000));
  if (is("_elastic")) options.elastic.least_workers = 1;
  if (strategy == "one_device") return train(one_device{compute}, folder, pause);
  if (strategy == "mirrored") return train(mirrored{cpus(compute.threads), compute}, folder, pause);
  if (is("_tcp")) options.communication.implementation = communication_implementation::tcp;
  options.communication.bf16_gradients = is("_bf16");
  if (is("_zero")) return train(multi_worker_mirrored{tf_config(), options, zero<1>{}}, folder, pause);
  return train(multi_worker_mirrored{tf_config(), options}, folder, pause);
} catch (...) {
  return test::report_error();
}
