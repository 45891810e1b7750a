// steps [--leaves N,...] [--no-graphs] [PART_OF_A_LINE]: prints microseconds per training step on a GPU, in lines "network batch
// mode microseconds", for the networks of torch_steps.py. Products are in TensorFloat-32, as those of PyTorch there, or in
// bfloat16 where the name contains it.
// Modes: "strata", fit on a data set that stays on the device; "strata,one_leaf", the same with the largest products; and
// "strata,from_host", train_step on a batch of the host, which is copied in each step. With --leaves, one mode for each number of
// leaves instead. With --no-graphs kernels are launched one by one, as a profiler needs it.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <strata/callbacks/lambda_callback.hpp>
#include <strata/cuda/cuda.hpp>
#include <strata/strata.hpp>
#include <string>
#include <string_view>
#include <vector>
using namespace strata;
using namespace strata::core;

namespace {
using cnn = sequential<input<28, 28, 1>, conv2d<32, 3, relu>, max_pool2d<>, conv2d<64, 3, relu>, max_pool2d<>, flatten,
                       dense<64, relu>, dense<10, softmax>>;
using mlp = sequential<input<784>, dense<128, relu>, dense<10, softmax>>;
using wide = sequential<input<4096>, dense<4096, relu>, dense<4096, relu>, dense<4096, relu>, dense<4096, softmax>>;
using stopwatch = std::chrono::steady_clock;

double microseconds_since(stopwatch::time_point begin, long steps) {
  return std::chrono::duration<double, std::micro>(stopwatch::now() - begin).count() / double(steps);
}

/// The median over epochs of fit; at the end of each epoch, the loss is on the host.
template <class Network, class Precision>
double in_fit(const std::vector<float>& x, const std::vector<std::int32_t>& y, int batch, const cuda_options& options) {
  const long steps = long(y.size()) / batch;
  std::vector<double> epochs_took;
  stopwatch::time_point begin;
  double sum = 0;
  trainer model{Network{}, adam{}, sparse_categorical_crossentropy{}, one_device{options}, Precision{}};
  model.fit(x, y, batch_size(batch), epochs(1'000'000), verbosity::off, steps_per_execution(int(std::min(steps, 32L))),
            lambda_callback{.on_epoch_begin = [&](training_state&) { begin = stopwatch::now(); },
                            .on_epoch_end =
                                [&](training_state& s) {
                                  const double took = microseconds_since(begin, steps);
                                  if (s.epoch > 1) epochs_took.push_back(took);
                                  sum += took * double(steps);
                                  s.stop_training = s.epoch > 3 && sum > 1.5e6;
                                }});
  std::nth_element(epochs_took.begin(), epochs_took.begin() + long(epochs_took.size() / 2), epochs_took.end());
  return epochs_took[epochs_took.size() / 2];
}

template <class Network, class Precision>
double from_host(const std::vector<float>& x, const std::vector<std::int32_t>& y, int batch, const cuda_options& options) {
  trainer model{Network{}, adam{}, sparse_categorical_crossentropy{}, one_device{options}, Precision{}};
  const samples<float> first{x.data(), y.data(), batch};
  for (int i = 0; i < 5; ++i) model.train_step(first);
  const auto begin = stopwatch::now();
  long steps = 0;
  for (; microseconds_since(begin, 1) < 1.5e6; ++steps) model.train_step(first);
  return microseconds_since(begin, steps);
}

/// The arguments of the program.
struct request {
  std::string part;         // only lines that contain it are measured
  std::vector<int> leaves;  // one mode for each; empty: the usual modes
  bool graphs = true;
};

/// Measures one mode of a network; the most important ones are 0, and come first for all networks.
template <class Network, class Precision = precision::tf32>
void measure(const request& asked, std::size_t mode, const char* name, int batch, int batches) {
  const std::string line = std::string(name) + " b=" + std::to_string(batch);
  if (line.find(asked.part) == std::string::npos) return;
  const std::size_t count = std::size_t(batch) * std::size_t(batches), features = std::size_t(Network::input_shape.size());
  std::vector<float> x(count * features);
  std::vector<std::int32_t> y(count);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(philox{1}.uniform(i % 10'000'000));
  for (std::size_t n = 0; n < count; ++n) y[n] = std::int32_t(n % 10);
  cuda_options options = gpu(0);
  options.graphs = asked.graphs;
  std::string text = asked.graphs ? "strata" : "strata,no_graphs";
  double microseconds = 0;
  if (asked.leaves.empty() && mode == 2) {
    text += ",from_host";
    microseconds = from_host<Network, Precision>(x, y, batch, options);
  } else {
    if (!asked.leaves.empty())
      options.leaves = asked.leaves[mode], text += ",leaves=" + std::to_string(options.leaves);
    else if (mode == 1)
      options.leaves = 1, text += ",one_leaf";
    microseconds = in_fit<Network, Precision>(x, y, batch, options);
  }
  std::printf("%s %s %.1f\n", line.c_str(), text.c_str(), microseconds);
  std::fflush(stdout);
}

request parsed(int count, char** arguments) {
  request asked;
  for (int i = 1; i < count; ++i) {
    const std::string_view each = arguments[i];
    if (each == "--no-graphs") {
      asked.graphs = false;
    } else if (each == "--leaves" && i + 1 < count) {
      std::istringstream list(arguments[++i]);
      for (std::string number; std::getline(list, number, ',');) {
        asked.leaves.push_back(std::atoi(number.c_str()));
        if (asked.leaves.back() < 1) throw strata_error("--leaves: \"" + number + "\" is no number of leaves");
      }
    } else if (each.starts_with("-")) {
      throw strata_error("usage: steps [--leaves N,...] [--no-graphs] [PART_OF_A_LINE]");
    } else {
      asked.part = each;
    }
  }
  return asked;
}
}  // namespace

int main(int count, char** arguments) {
  try {
    const request asked = parsed(count, arguments);
    for (std::size_t mode = 0; mode < (asked.leaves.empty() ? 3 : asked.leaves.size()); ++mode) {
      measure<cnn>(asked, mode, "reference CNN", 64, 512);
      measure<cnn>(asked, mode, "reference CNN", 4096, 16);
      measure<cnn, precision::mixed_bf16>(asked, mode, "reference CNN bf16", 64, 512);
      measure<cnn, precision::mixed_bf16>(asked, mode, "reference CNN bf16", 4096, 16);
      measure<mlp>(asked, mode, "mlp 784-128-10", 64, 512);
      measure<wide>(asked, mode, "mlp 4096 x 4", 8192, 4);
      measure<wide, precision::mixed_bf16>(asked, mode, "mlp 4096 x 4 bf16", 8192, 4);
    }
  } catch (const strata_error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
