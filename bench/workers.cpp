// Samples per second of one thread, two threads, and two processes with one thread each that train the same network in turn.
// needs: openssl protozero
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <functional>
#include <strata/distribute/mirrored.hpp>
#include <strata/distribute/multi_worker_mirrored.hpp>
#include <strata/resolvers/explicit_cluster.hpp>
#include <string>
#include <vector>

#include "machine.hpp"
#include "networks/architectures.hpp"
#include "support/options.hpp"

using namespace strata;
using namespace strata::bench;

namespace {

struct settings {
  std::string network = "cnn", result, through;
  std::vector<std::string> only;  // the measurements to run; empty: all
  int workers = 2, batch = 64, rounds = 3, port = 21'700, worker = -1;
  double seconds = 2;
};

/// The fastest epoch within the time, in samples per second.
template <class Network, int Batch>
double epochs_of(const settings& s, const auto& strategy) {
  const int count = smoke_test ? 256 : 12'800;
  const auto train = data::synthetic_digits(count, 1);
  trainer model{Network{}, adam{}, sparse_categorical_crossentropy{}, accuracy{}, strategy};
  auto batches = train | data::shuffle(std::size_t(count)) | data::batch<Batch>;
  double best = 0;
  const int passes = std::max(2, int(s.seconds * 4));  // equal in all processes
  for (int pass = 0; pass < passes; ++pass) {
    const double start = now();
    model.fit(batches, epochs(1), verbose::off);
    best = std::max(best, count / (now() - start));
  }
  return best;
}

/// The global batch is 64, or 64 for each of two workers.
template <class Network>
double speed(const settings& s, const auto& strategy) {
  if (s.batch == 64) return epochs_of<Network, 64>(s, strategy);
  if (s.batch == 128) return epochs_of<Network, 128>(s, strategy);
  throw strata_error("--batch: 64 or 128");
}

template <class Network>
double of_worker(const settings& s) {
  explicit_cluster cluster{.task = {role::worker, s.worker}};
  for (int w = 0; w < s.workers; ++w) cluster.worker.push_back("127.0.0.1:" + std::to_string(s.port + w));
  if (s.through != "shared_memory" && s.through != "tcp" && s.through != "encrypted_tcp")
    throw strata_error("--through: shared_memory, tcp or encrypted_tcp");
  multi_worker_options options{.compute = {.threads = 1}};
  options.communication.unprotected_data = s.through != "encrypted_tcp";
  if (s.through == "encrypted_tcp") options.control.secret = training_secret(std::string(32, '7'));
  if (s.through.ends_with("tcp")) options.communication.implementation = communication_implementation::tcp;
  return speed<Network>(s, multi_worker_mirrored{cluster, options});
}

/// Starts the workers as processes of this program. The first worker writes its measurements.
double of_processes(const settings& s, int batch, const std::string& through) {
  static int used = 0;
  const std::string port = std::to_string(s.port + 16 * used++), result = "/tmp/strata-workers-" + std::to_string(getpid());
  std::vector<pid_t> children;
  for (int w = 0; w < s.workers; ++w) {
    std::vector<std::string> words{
        "workers", "--network", s.network, "--workers", std::to_string(s.workers), "--worker", std::to_string(w),     "--port",
        port,      "--result",  result,    "--seconds", std::to_string(s.seconds), "--batch",  std::to_string(batch), "--through",
        through};
    if (smoke_test) words.push_back("--smoke");
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    pid_t child = 0;
    if (posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, arguments.data(), environ) != 0)
      throw strata_error("cannot start a worker");
    children.push_back(child);
  }
  bool well = true;
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    well = well && status == 0;
  }
  if (!well) throw strata_error("a worker failed");
  double measured = 0;
  std::ifstream(result) >> measured;
  std::remove(result.c_str());
  return measured;
}

template <class Network>
void run(const settings& s) {
  if (s.worker >= 0) {
    const double measured = of_worker<Network>(s);
    if (s.worker == 0) std::ofstream(s.result) << measured;
    return;
  }
  struct way {
    const char* name;
    const char* text;
    std::function<double()> measure;
    std::vector<double> measured{};
  };
  settings twice = s;
  twice.batch = 2 * s.batch;
  std::vector<way> ways{
      {"one_thread", "one thread", [&] { return speed<Network>(s, one_device{{.threads = 1}}); }},
      {"threads", "mirrored, a thread each", [&] { return speed<Network>(s, mirrored{cpus(s.workers)}); }},
      {"shared_memory", "multi_worker_mirrored, shared memory", [&] { return of_processes(s, s.batch, "shared_memory"); }},
      {"tcp", "multi_worker_mirrored, TCP over loopback", [&] { return of_processes(s, s.batch, "tcp"); }},
      {"encrypted_tcp", "the same, encrypted", [&] { return of_processes(s, s.batch, "encrypted_tcp"); }}};
  if (s.batch == 64) {  // weak scaling: the same work for each worker as for the one thread
    ways.push_back(
        {"weak_threads", "mirrored, twice the batch", [&] { return speed<Network>(twice, mirrored{cpus(s.workers)}); }});
    ways.push_back(
        {"weak_shared_memory", "shared memory, twice the batch", [&] { return of_processes(s, 128, "shared_memory"); }});
    ways.push_back({"weak_tcp", "TCP, twice the batch", [&] { return of_processes(s, 128, "tcp"); }});
  }
  if (!s.only.empty()) std::erase_if(ways, [&](const way& w) { return std::ranges::find(s.only, w.name) == s.only.end(); });
  if (ways.empty()) return;
  for (int round = 0; round < s.rounds; ++round)
    for (way& w : ways) w.measured.push_back(w.measure());
  std::printf("%s, global batch %d, %d workers: median of %d rounds in turn, samples/s\n", s.network.c_str(), s.batch, s.workers,
              s.rounds);
  for (const way& w : ways)
    std::printf("  %-44s %9.0f  %.2f of the first\n", w.text, median(w.measured), median(w.measured) / median(ways[0].measured));
  std::printf("{\"network\": \"%s\", \"workers\": %d, \"batch\": %d", s.network.c_str(), s.workers, s.batch);
  for (const way& w : ways) std::printf(", \"%s\": %.0f", w.name, median(w.measured));
  std::printf("}\n");
}

}  // namespace

int main(int argc, char** argv) try {
  settings s;
  strata::bench::options("Trains with several processes on this machine.")
      .add("--network", s.network, "the network to train", {"cnn", "mlp_128", "mlp_512_512"})
      .add("--workers", s.workers, "number of processes")
      .add("--batch", s.batch, "global batch size, 64 or 128")
      .add("--only", s.only, "measurements to run; none: all")
      .add("--rounds", s.rounds, "how often all measurements are repeated in turn")
      .add("--seconds", s.seconds, "for each measurement")
      .add("--port", s.port, "port of the first process")
      .add("--worker", s.worker, "")
      .add("--result", s.result, "")
      .add("--through", s.through, "")
      .smoke("--network mlp_128 --rounds 1 --seconds 0")
      .parse(argc, argv);
  if (s.network == "cnn") run<cnn>(s);
  if (s.network == "mlp_128") run<mlp_128>(s);
  if (s.network == "mlp_512_512") run<mlp_512_512>(s);
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
