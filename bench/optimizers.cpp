// The pass of each optimizer over its arenas: time per parameter, and memory traffic as a share of that of a copy loop in the
// same process with as many threads. A pass reads gradient, weights and state, and writes the latter two. lamb takes two: the
// first also writes directions, the second reads them, and reads and writes the weights again.
#include <cstdio>
#include <cstdlib>
#include <string>

#include <strata/cpu/engine/team.hpp>
#include <strata/cpu/engine/weight_update.hpp>
#include <strata/network/leaves.hpp>
#include <strata/optimizers/adadelta.hpp>
#include <strata/optimizers/adagrad.hpp>
#include <strata/optimizers/adam.hpp>
#include <strata/optimizers/adamax.hpp>
#include <strata/optimizers/ftrl.hpp>
#include <strata/optimizers/lamb.hpp>
#include <strata/optimizers/lion.hpp>
#include <strata/optimizers/nadam.hpp>
#include <strata/optimizers/rmsprop.hpp>
#include <strata/optimizers/sgd.hpp>

#include "machine.hpp"
#include "support/options.hpp"

namespace {

using namespace strata;
using namespace strata::core;
using bench::best_time;
using bench::smoke_test;

/// Calls passes(in_slices), where in_slices(f) runs f(begin, end) for the slices of all threads. Returns the fastest time.
template <class Passes>
double time_of(thread_team& team, long size, Passes&& passes) {
  const flush_denormals scope;
  const auto in_slices = [&](auto&& f) { for_slices(team, {0, size}, f); };
  return best_time(20, int(4'000'000 / size) + 1, [&] { passes(in_slices); });
}

/// Bytes per second, read and written.
double copy_rate(thread_team& team, long bytes) {
  const long size = bytes / 2 / long(sizeof(float)) / norm_piece * norm_piece;
  const auto from = bench::aligned_array<float>(std::size_t(size)), to = bench::aligned_array<float>(std::size_t(size));
  const double seconds = time_of(team, size, [&](auto&& in_slices) {
    in_slices([&](long begin, long end) {
      for (long i = begin; i < end; i += simd::lanes<float>) simd::store(to.get() + i, simd::load(from.get() + i));
    });
  });
  return 2. * double(size) * sizeof(float) / seconds;
}

template <class Optimizer>
void measure(const char* name, const Optimizer& optimizer, thread_team& team, long size, int leaf_count) {
  const std::size_t n = std::size_t(size), slot_count = std::size_t(optimizer.slots());
  const auto w = bench::aligned_array<float>(n), state = bench::aligned_array<float>(n * 3),
             gradients = bench::aligned_array<float>(n * std::size_t(leaf_count));
  for (std::size_t i = 0; i < n * std::size_t(leaf_count); ++i) gradients[i] = float(i % 17) * 0.01f - 0.08f;
  for (std::size_t i = 0; i < n * slot_count; ++i) state[i] = 1e-3f;
  float *slots[3] = {state.get(), state.get() + size, state.get() + 2 * size}, *leaves[max_leaves] = {};
  for (int l = 0; l < leaf_count; ++l) leaves[l] = gradients.get() + l * size;
  const parameter_range all[] = {{0, size}};
  const double rate = optimizer.learning_rate(0);
  double seconds = 0;
  optimizer.template with_rule<float>(100, rate, [&](const auto& rule) {
    arena<double> norms(std::size_t(weight_update<float, Optimizer>::norm_count(all)));
    const weight_update<float, Optimizer> update{optimizer, rate, all, w.get(), slots, norms.data()};
    const auto gradient = whole_batch_reduction::reduce(leaf_gradients<float, host_device>{leaves, leaf_count, 0, 1, 1}, 64);
    seconds = time_of(team, size, [&](auto&& in_slices) { update.run(rule, gradient, in_slices); });
  });
  const double bytes =
      double(sizeof(float)) * double(size) * double(2 + 2 * optimizer.slots() + leaf_count + (takes_norms(optimizer) ? 4 : 0));
  const double rate_of_copy = copy_rate(team, long(bytes));
  std::printf("%-26s %9ld parameters %2d leaves %8.3f ns/parameter %7.1f GB/s %5.0f %% of a copy\n", name, size, leaf_count,
              seconds * 1e9 / double(size), bytes / seconds * 1e-9, 100 * bytes / seconds / rate_of_copy);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  int threads = 1;
  strata::bench::options("Updates parameters from one gradient or several.")
      .add("--threads", threads, "number of threads")
      .parse(argc, argv);
  thread_team team(threads);
  for (const long size : {55'440L, 1'000'000L, 16'000'000L}) {
    if (smoke_test && size > 55'440) break;
    measure("sgd", sgd{}, team, size, 1);
    measure("sgd, momentum", sgd{.momentum = 0.9}, team, size, 1);
    measure("sgd, nesterov", sgd{.momentum = 0.9, .nesterov = true}, team, size, 1);
    measure("rmsprop", rmsprop{}, team, size, 1);
    measure("rmsprop, centered momentum", rmsprop{.momentum = 0.9, .centered = true}, team, size, 1);
    measure("adam", adam{}, team, size, 1);
    measure("adam, amsgrad", adam{.amsgrad = true}, team, size, 1);
    measure("adamw", adamw{}, team, size, 1);
    measure("nadam", nadam{}, team, size, 1);
    measure("adamax", adamax{}, team, size, 1);
    measure("adagrad", adagrad{}, team, size, 1);
    measure("adadelta", adadelta{}, team, size, 1);
    measure("lion", lion{}, team, size, 1);
    measure("ftrl", ftrl{}, team, size, 1);
    measure("ftrl, another power", ftrl{.learning_rate_power = -0.25}, team, size, 1);
    measure("lamb", lamb{}, team, size, 1);
    measure("adam, clipvalue", adam{.clipvalue = 0.5}, team, size, 1);
    measure("adam", adam{}, team, size, 4);
  }
}
