// precision::mixed_bf16 against precision::f32: the same networks trained in turn, epoch by epoch, on one core unless told
// otherwise. Prints one JSON object per network: samples per second of the best epochs, their ratio, and the test accuracies.
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
  int threads = 1, epochs = 3, seeds = 1, samples = 60'000;
};

template <class Network, int Batch>
void measure(const char* name, const settings& s, const data::digits& train, const data::digits& test) {
  if (!s.only.empty() && s.only != name) return;
  double best[2] = {}, accuracy_of[2] = {}, loss_of[2] = {};
  for (int k = 1; k <= s.seeds; ++k) {
    const one_device strategy{{.threads = s.threads}};
    trainer full{Network{}, adam{}, sparse_categorical_crossentropy{}, accuracy{}, strategy, seed(std::uint64_t(k))};
    trainer mixed{Network{},
                  adam{},
                  sparse_categorical_crossentropy{},
                  accuracy{},
                  strategy,
                  seed(std::uint64_t(k)),
                  precision::mixed_bf16{}};
    auto source = train | data::shuffle(60'000, {.seed = std::uint64_t(k)}) | data::batch<Batch>;
    auto held_out = test | data::batch<Batch>;
    const auto epoch = [&](auto& model, int which, int number) {
      const double start = now();
      loss_of[which] = model.fit(source, epochs(number + 1), initial_epoch(number), verbosity::off).all().back()["loss"];
      best[which] = std::max(best[which], double(train.size()) / (now() - start));
      if (number + 1 == s.epochs) accuracy_of[which] += model.evaluate(held_out)["accuracy"] / s.seeds;
    };
    for (int number = 0; number < s.epochs; ++number) epoch(full, 0, number), epoch(mixed, 1, number);
  }
  std::printf(
      "{\"model\": \"%s\", \"batch\": %d, \"f32\": %.0f, \"mixed_bf16\": %.0f, \"ratio\": %.3f, \"f32_accuracy\": %.4f, "
      "\"mixed_bf16_accuracy\": %.4f, \"f32_loss\": %.5f, \"mixed_bf16_loss\": %.5f}\n",
      name, Batch, best[0], best[1], best[1] / best[0], accuracy_of[0], accuracy_of[1], loss_of[0], loss_of[1]);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  settings s;
  std::string directory;
  strata::bench::options("Trains in float and in bfloat16, and compares speed and accuracy.")
      .add("--only", s.only, "the only network to train", {"cnn", "mlp_64_64", "mlp_512_512"})
      .add("--threads", s.threads, "number of threads")
      .add("--epochs", s.epochs, "number of epochs")
      .add("--seeds", s.seeds, "trainings of each network")
      .add("--samples", s.samples, "generated digits to train with")
      .add("--data", directory, "folder with MNIST; none: generated digits")
      .smoke("--only mlp_64_64 --epochs 1 --samples 640")
      .parse(argc, argv);
  const data::digits train = directory.empty() ? data::synthetic_digits(s.samples, 1) : data::mnist(directory).train;
  const data::digits test =
      directory.empty() ? data::synthetic_digits(std::min(s.samples, 10'000), 2) : data::mnist(directory).test;
  measure<cnn, 64>("cnn", s, train, test);
  measure<mlp_64_64, 64>("mlp_64_64", s, train, test);
  measure<mlp_512_512, 128>("mlp_512_512", s, train, test);
}
