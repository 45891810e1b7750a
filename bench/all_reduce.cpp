// The sum of gradients over threads and processes: strata's tree and Open MPI, in turn, in microseconds.
// needs: mpi protozero
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <strata/communicators/in_process.hpp>
#include <strata/communicators/shared_memory.hpp>
#include <strata/communicators/tcp.hpp>
#include <strata/cpu/engine/host_arithmetic.hpp>
#include <strata/exchange/tree_reduction.hpp>
#include <strata/io/atomic_file.hpp>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "machine.hpp"
#include "support/options.hpp"

using namespace strata;
using namespace strata::core;
using namespace strata::bench;

namespace {

struct settings {
  std::vector<int> sizes{2, 4};  // processes, or threads
  int rounds = 11;
  std::string medium, folder;  // only in processes that mpirun starts
};

/// The number of elements of a sum, and how often it is computed in a round.
struct message {
  long numbers;
  int times;
  long bytes() const { return numbers * long(sizeof(float)); }
};
constexpr message messages[] = {{256, 400}, {25'600, 60}, {262'144, 12}, {10'485'760, 1}};
constexpr long most = messages[3].numbers;

/// A key-value store for processes of one machine: one file per key.
class folder_store final : public key_value_store {
 public:
  explicit folder_store(std::string folder) : folder_(std::move(folder)) {}
  void set(const std::string& key, const std::string& value) override {
    io::atomic_file file(place(key));
    file.write(std::string_view(value));
    file.commit();
  }
  std::string get(const std::string& key, std::chrono::milliseconds timeout) override {
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    for (;;) {
      std::ifstream file(place(key));
      if (file) return {std::istreambuf_iterator<char>(file), {}};
      if (std::chrono::steady_clock::now() > deadline) throw communication_error("no process has set '" + key + "'");
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

 private:
  std::string place(std::string key) const {
    std::ranges::replace(key, '/', '-');
    return folder_ + '/' + key;
  }
  std::string folder_;
};

/// Each process has one leaf, like a worker with one thread.
template <communicator C>
class tree {
  C c_;
  thread_team team_{1};
  std::map<long, tree_reduction<float, C>> sums_;  // one for each size
  const float* leaf_;

 public:
  tree(C c, const float* numbers) : c_(std::move(c)), leaf_(numbers) {
    for (const message& m : messages) sums_[m.numbers].prepare(c_, {{0, m.numbers}}, c_.size());
  }
  const float* operator()(long size) {
    tree_reduction<float, C>& sum = sums_[size];
    sum.begin(c_, &leaf_, c_.size());
    return sum.finish(c_, team_);
  }
};

/// Throws unless the elements are the sum of 1 ... size.
void check(const char* engine, const float* sum, long count, int size) {
  const float expected = float(size * (size + 1) / 2);
  if (sum[0] != expected || sum[count / 2] != expected || sum[count - 1] != expected)
    throw strata_error(std::string(engine) + " has computed a wrong sum");
}

// ---- processes ----

using engine = std::function<const float*(const message&)>;

/// The body of a process that mpirun starts.
void member(const settings& s) {
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const auto numbers = aligned_array<float>(std::size_t(most)), sum = aligned_array<float>(std::size_t(most));
  std::fill_n(numbers.get(), most, float(rank + 1));

  folder_store store(s.folder);
  const bool over_tcp = s.medium == "tcp";
  std::vector<std::pair<const char*, engine>> engines;
  if (over_tcp) {
    auto ours = std::make_shared<tree<tcp_communicator>>(tcp_communicator(store, rank, size), numbers.get());
    engines.emplace_back("strata", [ours](const message& m) { return (*ours)(m.numbers); });
  } else {
    shared_memory_communicator processes(store, rank, size);
    auto ours = std::make_shared<tree<shared_memory_communicator>>(std::move(processes), numbers.get());
    engines.emplace_back("strata", [ours](const message& m) { return (*ours)(m.numbers); });
  }
  engines.emplace_back("open_mpi", [&](const message& m) {
    MPI_Allreduce(numbers.get(), sum.get(), int(m.numbers), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    return sum.get();
  });

  for (const message& m : messages) {
    std::vector<std::vector<double>> took(engines.size());
    for (int round = -1; round < s.rounds; ++round)  // round -1 warms up
      for (std::size_t e = 0; e < engines.size(); ++e) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double start = now();
        const float* result = nullptr;
        for (int i = 0; i < m.times; ++i) result = engines[e].second(m);
        const double each = (now() - start) / m.times * 1e6;
        check(engines[e].first, result, m.numbers, size);
        if (round >= 0) took[e].push_back(each);
      }
    if (rank != 0) continue;
    double best_other = 1e30;
    std::printf("{\"medium\": \"%s\", \"size\": %d, \"bytes\": %ld", s.medium.c_str(), size, m.bytes());
    for (std::size_t e = 0; e < engines.size(); ++e) {
      std::printf(", \"%s\": %.1f", engines[e].first, median(took[e]));
      if (!std::string_view(engines[e].first).starts_with("strata")) best_other = std::min(best_other, median(took[e]));
    }
    std::printf(", \"best_other_by_strata\": %.2f}\n", best_other / median(took[0]));
    std::fflush(stdout);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

/// Runs this program in `size` processes through mpirun.
void start_members(const settings& s, int size, const std::string& medium) {
  std::string folder = "/tmp/strata-all-reduce-XXXXXX";
  if (!::mkdtemp(folder.data())) throw strata_error("cannot make " + folder);
  std::vector<std::string> words{"mpirun",
                                 "--oversubscribe",
                                 "--bind-to",
                                 "none",
                                 "--mca",
                                 "btl",
                                 medium == "tcp" ? "self,tcp" : "self,vader",
                                 "-n",
                                 std::to_string(size),
                                 std::filesystem::read_symlink("/proc/self/exe").string(),
                                 "--rounds",
                                 std::to_string(s.rounds),
                                 "--medium",
                                 medium,
                                 "--folder",
                                 folder};
  if (::getuid() == 0) words.insert(words.begin() + 1, "--allow-run-as-root");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  int status = 1;
  if (::posix_spawnp(&child, "mpirun", nullptr, nullptr, arguments.data(), environ) == 0) ::waitpid(child, &status, 0);
  std::filesystem::remove_all(folder);
  if (status != 0) throw strata_error("mpirun has failed");
}

// ---- threads of one process ----

/// Runs f(rank) in one thread per rank.
template <class F>
void in_threads(int count, F&& f) {
  std::vector<std::thread> threads;
  for (int r = 1; r < count; ++r) threads.emplace_back(f, r);
  f(0);
  for (auto& t : threads) t.join();
}

/// Compares the tree between threads that send messages with `mirrored`, where each thread adds its slice of all leaves.
void threads(const settings& s, int size) {
  std::vector<decltype(aligned_array<float>(0))> numbers;
  for (int r = 0; r < size; ++r) {
    numbers.push_back(aligned_array<float>(std::size_t(most)));
    std::fill_n(numbers.back().get(), most, float(r + 1));
  }
  const auto sum = aligned_array<float>(std::size_t(most));
  std::vector<const float*> leaves;
  for (const auto& of_thread : numbers) leaves.push_back(of_thread.get());
  auto group = in_process::group(size);
  std::vector<std::unique_ptr<tree<in_process>>> trees;
  for (int r = 0; r < size; ++r) trees.push_back(std::make_unique<tree<in_process>>(group[std::size_t(r)], leaves[r]));
  thread_team team(size);
  for (const message& m : messages) {
    std::vector<double> by_messages, by_slices;
    for (int round = -1; round < s.rounds; ++round) {
      double each = 0;
      in_threads(size, [&](int r) {
        (*trees[std::size_t(r)])(m.numbers);  // a barrier: all threads have started
        const double start = now();
        const float* result = nullptr;
        for (int i = 0; i < m.times; ++i) result = (*trees[std::size_t(r)])(m.numbers);
        if (r == 0) each = (now() - start) / m.times * 1e6;
        check("strata", result, m.numbers, size);
      });
      const double start = now();
      for (int i = 0; i < m.times; ++i)
        team.for_tasks(size, [&](int task, int) {
          const element_range slice = slice_of({0, m.numbers}, task, size);
          sum_leaves(sum.get(), leaves.data(), size, slice.begin, slice.end);
        });
      const double slices = (now() - start) / m.times * 1e6;
      check("strata", sum.get(), m.numbers, size);
      if (round >= 0) by_messages.push_back(each), by_slices.push_back(slices);
    }
    std::printf("{\"medium\": \"threads\", \"size\": %d, \"bytes\": %ld, \"strata_messages\": %.2f, \"strata_mirrored\": %.2f}\n",
                size, m.bytes(), median(by_messages), median(by_slices));
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) try {
  settings s;
  int processes = 0;
  strata::bench::options("Sums over processes and threads.")
      .add("--processes", processes, "number of processes or threads; 0: 2, then 4")
      .add("--rounds", s.rounds, "how often all measurements are repeated in turn")
      .add("--medium", s.medium, "")
      .add("--folder", s.folder, "")
      .smoke("--processes 2 --rounds 1")
      .parse(argc, argv);
  if (processes > 0) s.sizes = {processes};
  if (!s.medium.empty()) {
    MPI_Init(&argc, &argv);
    member(s);
    MPI_Finalize();
    return 0;
  }
  for (const int size : s.sizes) {
    threads(s, size);
    for (const char* medium : {"shared memory", "tcp"}) start_members(s, size, medium);
  }
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
