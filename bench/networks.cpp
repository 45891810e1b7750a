// Samples per second of many networks, predicting and training; `bench/run sweep` puts them beside the peers.
#include "networks/measure.hpp"
#include "support/options.hpp"

#include <cstdio>
#include <cstdlib>
#include <strata/data/sets/mnist.hpp>

namespace strata::bench {
using namespace core;

double training_multiply_adds(std::span<const tape_node> nodes) {
  double sum = 0;
  std::vector<bool> learns(nodes.size());
  for (std::size_t i = 1; i < nodes.size(); ++i) {
    const tape_node& n = nodes[i];
    bool wants_input_gradient = false;
    for (int k = 0; k < n.arity; ++k) wants_input_gradient = wants_input_gradient || learns[std::size_t(n.input[k])];
    parameter owned[max_parameters] = {};
    const int count = n.operation->parameters(nodes[std::size_t(n.input[0])].out, owned);
    for (int k = 0; k < count; ++k) {
      if (std::string_view(owned[k].name) != "kernel") continue;
      const double once = double(owned[k].extents.size()) * (n.out.rank() == 3 ? n.out[0] * n.out[1] : 1);
      sum += once * (wants_input_gradient ? 3 : 2);
    }
    learns[i] = wants_input_gradient || count > 0;
  }
  return sum;
}

bool runner::wants(const char* model_, int batch_, const char* what_) const {
  if ((!model.empty() && model != model_) || (batch != 0 && batch != batch_) || (!what.empty() && what != what_)) return false;
  if (only_lists) std::printf("{\"model\": \"%s\", \"batch\": %d, \"what\": \"%s\"}\n", model_, batch_, what_);
  return !only_lists;
}

void runner::measure(const char* model_, int batch_, const char* what_, int threads_, long parameters, double multiply_adds,
                     const std::function<void()>& step) const {
  constexpr int rounds = 5;
  const double peak = fma_peak();
  step();
  double best = 0;
  for (int round = 0; round < rounds; ++round) {
    const double start = now();
    long steps = 0;
    double passed = 0;
    do {
      step();
      ++steps;
      passed = now() - start;
    } while (passed < seconds / rounds);
    best = std::max(best, double(steps) * batch_ / passed);
  }
  std::printf(
      "{\"model\": \"%s\", \"batch\": %d, \"what\": \"%s\", \"threads\": %d, \"samples_per_second\": %.1f, \"parameters\": %ld, "
      "\"multiply_adds\": %.0f, \"gflops_peak_of_a_core\": %.1f, \"share_of_peak\": %.4f}\n",
      model_, batch_, what_, threads_, best, parameters, multiply_adds, peak * 1e-9,
      2 * multiply_adds * best / (peak * threads_));
  std::fflush(stdout);
}

std::vector<float> runner::numbers(shape of_sample, long samples) const {
  const long count = samples * of_sample.size();
  if (of_sample == shape{28, 28, 1} && count <= long(digits.size())) return {digits.begin(), digits.begin() + count};
  std::vector<float> random(std::size_t(count), 0.f);
  for (std::size_t i = 0; i < random.size(); i += 4) {
    const philox::block words = philox{1}(i / 4);
    for (std::size_t k = 0; k < 4 && i + k < random.size(); ++k) random[i + k] = float(words[k] >> 8) * 0x1p-24f;
  }
  return random;
}

std::vector<int> runner::random_labels(std::size_t count, int classes) {
  std::vector<int> labels(count);
  for (std::size_t i = 0; i < count; ++i) labels[i] = int(philox{2}.uniform(i) * classes);
  return labels;
}

/// The pixels of MNIST's training images, in [0, 1].
static std::vector<float> pixels(const char* directory) {
  constexpr int size = 28 * 28;
  std::vector<float> values;
  for (const auto& batch : data::mnist(directory).train | data::batch<100>)
    values.insert(values.end(), batch.x(), batch.x() + batch.count * size);
  return values;
}

}  // namespace strata::bench

int main(int argc, char** argv) {
  strata::bench::runner run;
  std::string data;
  strata::bench::options("Predicts or trains with many networks.")
      .add_flag("--list", run.only_lists, "print names and batch sizes")
      .add("--model", run.model, "the only network")
      .add("--batch", run.batch, "the only batch size")
      .add("--what", run.what, "the only measurement", {"predict", "train"})
      .add("--threads", run.threads, "number of threads")
      .add("--seconds", run.seconds, "for each measurement")
      .add("--data", data, "file of pixels; none: random ones")
      .smoke("--model mlp_64_64 --seconds 0")
      .parse(argc, argv);
  if (!data.empty()) run.digits = strata::bench::pixels(data.c_str());
  measure_digits(run);
  measure_dense(run);
  measure_vgg(run);
  measure_resnet20(run);
  measure_mobilenet(run);
  measure_few_channels(run);
  measure_many_channels(run);
}
