// Processor time of a training step as a module of XLA and by the kernels of this machine; bench/run xla puts JAX beside it.
#include "networks/architectures.hpp"
#include "support/options.hpp"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <random>
#include <strata/xla/xla.hpp>
#include <string>
#include <vector>

using namespace strata;
using namespace strata::core;

namespace {

struct settings {
  std::string only, plugin = "cpu";
  double seconds = 1;
};

/// The processor time of all threads of this process, in seconds.
double processor_seconds() {
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

/// Microseconds of the fastest step: a batch on the host, an update, loss and accuracy on the host.
template <class Model>
double fastest_step(Model& model, const samples<float>& batch, double seconds) {
  double best = 1e30;
  for (const double end = processor_seconds() + seconds; processor_seconds() < end;) {
    const double start = processor_seconds();
    (void)step_result<typename Model::program_type>(model.executor().train_step(batch)).get()[0].mean();
    best = std::min(best, processor_seconds() - start);
  }
  return 1e6 * best;
}

template <class Network>
void measure(const char* name, int count, const settings& s) {
  if (!s.only.empty() && s.only != name) return;
  std::mt19937 random(1);
  std::vector<float> x(std::size_t(count * Network::input_shape.size()));
  std::vector<std::int32_t> y(std::size_t(count), 0);
  for (float& v : x) v = std::uniform_real_distribution<float>()(random);
  for (std::int32_t& v : y) v = std::int32_t(random() % 10);
  const samples<float> batch(x.data(), y.data(), count);
  trainer native{Network{}, adam{}, sparse_categorical_crossentropy{}, accuracy{}, one_device{{.threads = 1}}};
  trainer module{Network{}, adam{}, sparse_categorical_crossentropy{}, accuracy{}, xla{.plugin = s.plugin}};
  native.executor().prepare(count, purpose::training);
  module.executor().prepare(count, purpose::training);
  const double of_module = fastest_step(module, batch, s.seconds), of_native = fastest_step(native, batch, s.seconds);
  std::printf("{\"model\": \"%s\", \"batch\": %d, \"xla\": %.1f, \"one_device\": %.1f}\n", name, count, of_module, of_native);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  settings s;
  bench::options("Processor time of a training step in microseconds, with xla and with one_device.")
      .add("--only", s.only, "the only network")
      .add("--plugin", s.plugin, "name or path of a PJRT plugin")
      .add("--seconds", s.seconds, "seconds per measurement")
      .smoke("--seconds 0.01")
      .parse(argc, argv);
  measure<bench::cnn>("cnn", 64, s);
  measure<bench::mlp_128>("mlp_128", 64, s);
  measure<bench::mlp_512_512>("mlp_512_512", 128, s);
}
