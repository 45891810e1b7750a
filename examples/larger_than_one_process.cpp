// A network whose training does not fit in one process: four processes train it, each with a slice of the optimizer's state and
// of the gradients, or with some of the layers. Prints the memory that a process needs before it starts, and what it has used.
// needs: openssl protozero
// takes: 3 s as four processes on two cores; 5 min with --large
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <new>
#include <strata/distribute/multi_worker_mesh.hpp>
#include <strata/distribute/multi_worker_mirrored.hpp>
#include <strata/distribute/process_memory.hpp>
#include <strata/resolvers/any_cluster.hpp>
#include <strata/strata.hpp>
#include <string>

using namespace strata;
using namespace strata::core;

namespace {

template <int Width>
using block = residual<layer_norm<>, dense<Width, relu>>;

// Networks with 0.6 and 102 million parameters.
using small_network = sequential<input<28, 28, 1>, flatten, dense<256, relu>, block<256>, block<256>, block<256>, block<256>,
                                 block<256>, block<256>, layer_norm<>, dense<10, softmax>>;
using large_network =
    sequential<input<28, 28, 1>, flatten, dense<2048, relu>, block<2048>, block<2048>, block<2048>, block<2048>, block<2048>,
               block<2048>, block<2048>, block<2048>, block<2048>, block<2048>, block<2048>, block<2048>, block<2048>,
               block<2048>, block<2048>, block<2048>, block<2048>, block<2048>, block<2048>, block<2048>, block<2048>,
               block<2048>, block<2048>, block<2048>, layer_norm<>, dense<10, softmax>>;

struct settings {
  bool large = false, alone = false, layers = false;
  int steps = 8;
  long limit = 0;
};

constexpr training_sizes sizes{.batch = 64, .processes = 4, .threads = 1, .leaves = 4};
using in_stages = multi_worker_pipeline<balanced<4>, micro_batches<4>>;

/// The memory of this process in MB: VmHWM, the peak so far, or VmRSS.
double resident(const std::string& which) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (double kilobytes = 0; word == which + ':' && status >> kilobytes) return kilobytes * 1024 / 1e6;
  return 0;
}

template <class Network>
void train(const settings& s, const auto& strategy, const process_memory& planned) {
  const auto digits = data::synthetic_digits(64 * 4, 1);
  const double before = resident("VmRSS");
  trainer model{Network{}, adam{.learning_rate = 1e-4}, sparse_categorical_crossentropy{}, strategy};
  const training_history past = model.fit(digits | data::batch<64>, epochs(s.steps / 2), steps_per_epoch(2), verbose::off);
  if (model.is_chief())
    for (const double loss : past["loss"]) std::cout << "loss " << std::setprecision(17) << loss << std::setprecision(4) << '\n';
  std::cout << "planned at most " << double(planned.peak()) / 1e6 << " MB, and 15 to 35 MB for code, libraries and threads; used "
            << resident("VmHWM") - before << " MB\n";
}

template <class Network>
void run(const settings& s) {
  using program_type = program<Network, sparse_categorical_crossentropy<>, adam, type_list<>>;
  if (s.limit > 0) {
    const rlimit limit{rlim_t(s.limit) << 20, rlim_t(s.limit) << 20};
    ::setrlimit(RLIMIT_DATA, &limit);
  }
  const compute_options compute{.threads = sizes.threads, .leaves = sizes.leaves};
  if (s.alone) {
    std::cout << process_memory_table<program_type>(sizes) << '\n'
              << process_memory_table<program_type, in_stages>(sizes) << '\n';
    training_sizes one = sizes;
    one.processes = 1;
    return train<Network>(s, one_device{compute}, process_memory_of<program_type>(one));
  }
  const cluster members = any_cluster()();
  if (members.size() != sizes.processes)
    throw strata_error("the plan needs " + std::to_string(sizes.processes) + " processes: examples/launch -n " +
                       std::to_string(sizes.processes) + " -- ...");
  multi_worker_options options{.compute = compute};
  options.communication.implementation = communication_implementation::tcp;  // as between machines
  if (s.layers) {
    const int place = members.task().index;
    return train<Network>(s, in_stages{any_cluster(), options}, process_memory_of<program_type, in_stages>(sizes, place));
  }
  train<Network>(s, multi_worker_mirrored{any_cluster(), options, zero<2>{}}, process_memory_of<program_type, zero<2>>(sizes));
}

}  // namespace

int main(int argc, char** argv) {
  settings s;
  CLI::App app(
      "Trains a network in four processes that does not fit in one: examples/launch -n 4 -- ... --limit MB. With --alone, "
      "prints the memory that each would need, and trains it in one.");
  app.add_flag("--large", s.large, "102 million parameters instead of 0.6");
  app.add_flag("--alone", s.alone, "train in this process only");
  app.add_flag("--layers", s.layers, "each process has some of the layers, as a pipeline, instead of slices of all");
  app.add_option("--steps", s.steps, "number of steps of 64 samples, in epochs of two")
      ->capture_default_str()
      ->check(CLI::Range(2, 1000));
  app.add_option("--limit", s.limit, "MiB of data that each process may allocate (RLIMIT_DATA); 0: no limit");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;  // CLI11 reports --help as an exception
  }
  try {
    s.large ? run<large_network>(s) : run<small_network>(s);
  } catch (const std::bad_alloc&) {
    std::cerr << "error: the training does not fit in " << s.limit << " MiB\n";
    return EXIT_FAILURE;
  } catch (const std::exception& e) {
    std::cerr << "error: " << e.what() << '\n';
    return EXIT_FAILURE;
  }
}
