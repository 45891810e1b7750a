// Large networks on 8 to 4,096 devices: what the cost model predicts, beside what others have measured.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "large_models/published.hpp"
#include "support/options.hpp"

using namespace strata::bench;

namespace {
/// The constant with which the squares of the errors of the fitted rows, with or without zero 3, have the least sum.
efficiency fit(efficiency e, double efficiency::* constant, bool zero_3) {
  efficiency best = e;
  double least = 1e300;
  for (int hundredth = 0; hundredth <= 100; ++hundredth) {
    e.*constant = hundredth / 100.0;
    double sum = 0;
    for (const measurement& m : published)
      if (m.fitted && (m.by.zero == 3) == zero_3) sum += error(m, e) * error(m, e);
    if (sum < least) least = sum, best = e;
  }
  return best;
}
efficiency fitted() { return fit(fit({}, &efficiency::products, false), &efficiency::hidden, true); }

void print_published(const efficiency& e) {
  std::printf(
      "Fitted to the rows marked *: matrix products reach %.0f %% of the peak; with zero 3, %.0f %% of the shorter of computing "
      "and sending is hidden.\n\n",
      100 * e.products, 100 * e.hidden);
  std::printf("%-25s%-15s%-11s%8s%6s%5s%5s%6s%7s%11s%11s%9s%8s\n", "source", "parameters", "device", "devices", "data", "pipe",
              "tens", "zero", "batch", "measured", "predicted", "error", "memory");
  double sum = 0, worst = 0;
  int count = 0;
  for (const measurement& m : published) {
    const prediction p = predicted(m, e);
    const char* unit = m.what == measurement::tflops ? "TF/s" : m.what == measurement::seconds ? "s" : "%";
    const double off = error(m, e);
    std::printf("%-25s%-15s%-11s%8d%6d%5d%5d%6d%7.0f%6.4g %-4s%6.4g %-4s%+7.1f %%%5.0f GB%s\n", m.source, m.name, m.on->name,
                m.by.devices(), m.by.data, m.by.pipeline, m.by.tensor, m.by.zero, m.batch, m.value, unit, value(m, p), unit,
                100 * off, p.memory / 1e9, m.fitted ? " *" : "");
    if (m.fitted) continue;
    sum += std::abs(off), ++count;
    worst = std::max(worst, std::abs(off));
  }
  std::printf("\nMean error of the %d rows that were not fitted: %.1f %%, largest: %.1f %%.\n", count, 100 * sum / count,
              100 * worst);
}

/// The fastest mesh for a network on so many devices, with 2 million tokens or a micro-batch for each replica in a step.
void print_best(const char* name, const auto& network, double batch, const efficiency& e) {
  for (const int devices : {8, 64, 512, 4096}) {
    prediction best;
    mesh chosen;
    for (int tensor = 1; tensor <= 8; tensor *= 2)
      for (int pipeline = 1; pipeline <= 64 && pipeline * tensor <= devices; pipeline *= 2)
        for (const int zero : {0, 1, 3})
          for (const int micro : {1, 2, 4, 8, 16, 128, 1024}) {
            mesh by{
                .data = devices / tensor / pipeline, .pipeline = pipeline, .tensor = tensor, .zero = zero, .micro_batch = micro};
            if (by.data * micro > batch || (zero == 3 && pipeline > 1) || pipeline > network.layers) continue;
            const prediction p = predict(network, batch, by, a100, e);
            if (p.memory <= 0.9 * a100.memory && (best.step == 0 || p.step < best.step)) best = p, chosen = by;
          }
    if (best.step == 0)
      std::printf("%-14s%8d  does not fit\n", name, devices);
    else
      std::printf("%-14s%8d%6d%6d%6d%6d%7d%10.3g%9.1f %%%9.0f GB%10.2f GB\n", name, devices, chosen.data, chosen.pipeline,
                  chosen.tensor, chosen.zero, chosen.micro_batch, best.step, 100 * best.utilisation, best.memory / 1e9,
                  best.network_bytes / 1e9);
  }
}
}  // namespace

int main(int count, char** arguments) {
  options given("the cost model of large networks beside published measurements");
  given.parse(count, arguments);
  const efficiency e = fitted();
  print_published(e);
  std::printf(
      "\nThe fastest meshes of A100s, with batches of 1,024 sequences of 2,048 tokens, or 262,144 samples of the MLP\n\n");
  std::printf("%-14s%8s%6s%6s%6s%6s%7s%10s%11s%12s%13s\n", "parameters", "devices", "data", "pipe", "tens", "zero", "micro",
              "seconds", "MFU", "memory", "sent");
  print_best("1.3 billion", transformer{24, 2048, 16}, 1024, e);
  print_best("13 billion", transformer{40, 5120, 40}, 1024, e);
  print_best("100 billion", transformer{80, 10240, 80}, 1024, e);
  print_best("MLP, 10 b.", dense_network{40, 16384}, 262144, e);
}
