// Samples per second of whole training epochs: the reference models on 60,000 digits in memory, shuffled, batched, one process.
// Prints one JSON object per line; `bench/run sweep` puts them beside the peers.
#include "machine.hpp"
#include "networks/architectures.hpp"
#include "support/options.hpp"

#include <cstdio>
#include <cstdlib>
#include <strata/data/sets/mnist.hpp>
#include <string>

using namespace strata;
using namespace strata::bench;

namespace {

struct settings {
  std::string only;
  int threads = 0, epochs = 3, leaves = 0, micro_batch = 0, samples = 60'000;
};

/// The fastest epoch counts, because other programs may use the machine.
template <class Network, int Batch>
void measure(const char* name, const settings& s, const data::digits& digits) {
  if (!s.only.empty() && s.only != name) return;
  trainer model{Network{}, adam{}, sparse_categorical_crossentropy{}, accuracy{},
                one_device{{.threads = s.threads, .leaves = s.leaves, .micro_batch = s.micro_batch}}};
  auto source = digits | data::shuffle(60'000, {.seed = 1}) | data::batch<Batch>;
  double best = 0;
  logs last;
  for (int epoch = 0; epoch < s.epochs; ++epoch) {
    const double start = now();
    last = model.fit(source, epochs(epoch + 1), initial_epoch(epoch), verbosity::off).all().back();
    best = std::max(best, double(digits.size()) / (now() - start));
  }
  std::printf(
      "{\"model\": \"%s\", \"batch\": %d, \"threads\": %d, \"samples_per_second\": %.0f, \"loss\": %.5f, \"accuracy\": %.4f}\n",
      name, Batch, model.executor().threads(), best, last["loss"], last["accuracy"]);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  settings s;
  std::string directory;
  strata::bench::options("Trains networks on MNIST with one_device.")
      .add("--only", s.only, "the only network to train", {"cnn", "mlp_128", "mlp_64_64", "mlp_512_512"})
      .add("--threads", s.threads, "number of threads; 0: one per core")
      .add("--epochs", s.epochs, "number of epochs")
      .add("--leaves", s.leaves, "parts of a batch; 0: the default")
      .add("--micro-batch", s.micro_batch, "samples at a time; 0: the default")
      .add("--samples", s.samples, "generated digits to train with")
      .add("--data", directory, "folder with MNIST; none: generated digits")
      .smoke("--only mlp_64_64 --epochs 1 --samples 640")
      .parse(argc, argv);
  const data::digits digits = directory.empty() ? data::synthetic_digits(s.samples, 1) : data::mnist(directory).train;
  measure<cnn, 64>("cnn", s, digits);
  measure<mlp_128, 64>("mlp_128", s, digits);
  measure<mlp_64_64, 64>("mlp_64_64", s, digits);
  measure<mlp_512_512, 128>("mlp_512_512", s, digits);
}
