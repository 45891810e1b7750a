// needs: openssl protozero emulated_cuda
// One process of a training on emulated GPUs, for test_gpu_workers.py: gpu_worker STRATEGY LEAVES [EPOCHS]. Prints a digest of
// the parameters. STRATEGY: one_gpu, or several workers that add gradients up as deterministic or fastest. STEPS: prints a
// line when each step ends, and sleeps so many milliseconds before the next. ELASTIC: the least number of workers of an elastic
// training. HEARTBEAT: its interval in milliseconds. COMPUTE_LEAVES: an option that has no meaning with GPUs. LOSE: after how
// many pieces of work gpu(1) of this process fails.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <strata/cuda/cuda.hpp>
#include <strata/distribute/multi_worker_mirrored.hpp>
#include <strata/resolvers/tf_config.hpp>
#include <strata/strata.hpp>
#include <string>
#include <thread>

#include "outcome.hpp"
using namespace strata;
using namespace strata::core;

namespace {
using network =
    sequential<input<28, 28, 1>, flatten, dense<16>, batch_norm<>, activation<relu>, dropout<0.2_r>, dense<10, softmax>>;

int number(const char* name, int otherwise) {
  const char* const value = std::getenv(name);
  return value ? std::atoi(value) : otherwise;
}

struct tell_steps {
  int pause = number("STEPS", -1);
  void on_batch_end(training_state& s) const {
    if (pause < 0) return;
    std::printf("step %ld\n", s.step);
    std::fflush(stdout);
    std::this_thread::sleep_for(std::chrono::milliseconds(pause));
  }
};

void train(const auto& strategy, int count) {
  const auto digits = data::synthetic_digits(150, 3);  // 4 x 32 + 22
  trainer model{network{}, adam{}, sparse_categorical_crossentropy{}, accuracy{}, strategy, seed(5)};
  const training_history past = model.fit(digits | data::batch<32>, epochs(count), tell_steps{}, verbose::off);
  std::printf("digest %s\n", test::digest_of(model.parameters()).c_str());
  std::printf("loss %f\n", past["loss"].back());
}
}  // namespace

int main(int argc, char** argv) try {
  if (argc < 3) throw strata_error("gpu_worker STRATEGY LEAVES [EPOCHS]");
  const std::string strategy = argv[1];
  const int count = argc > 3 ? std::atoi(argv[3]) : 2;
  const cuda_options how{.leaves = std::atoi(argv[2]), .sums_by_nccl = strategy == "fastest"};
  multi_worker_options options{.start_timeout = std::chrono::seconds(10)};
  options.communication.timeout = std::chrono::seconds(10);
  options.compute.leaves = number("COMPUTE_LEAVES", 0);
  options.elastic.least_workers = number("ELASTIC", 0);
  options.control.heartbeat.interval = std::chrono::milliseconds(number("HEARTBEAT", 2000));
  if (const int works = number("LOSE", -1); works >= 0) machine::lose_device(1, works);
  if (strategy == "one_gpu")
    train(one_device{how}, count);
  else
    train(multi_worker_mirrored{tf_config(), gpus(), how, options}, count);
} catch (...) {
  return test::report_error();
}
