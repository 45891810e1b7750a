// two_processes: two processes train together, each on a GPU, or both on the only one. deterministic{} must have the bits of one
// process, fastest{} nearly the same results; and if one process is killed, the other ends with an error. NCCL refuses two ranks
// that share a GPU of one host, so each process poses as a host of its own (NCCL_HOSTID).
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <strata/callbacks/lambda_callback.hpp>
#include <strata/cuda/cuda.hpp>
#include <strata/communicators/shared_memory.hpp>
#include <strata/communicators/key_value_store.hpp>
#include <strata/distribute/synchronous_among.hpp>
#include <strata/strata.hpp>
#include <string>
#include <thread>
#include <vector>
using namespace strata;
using namespace strata::core;
using namespace std::chrono_literals;

namespace {
using network = sequential<input<64>, dense<128, relu>, batch_norm<>, dense<64, tanh_activation>, dense<10, softmax>>;

std::string text_of_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Values as files of a folder.
class files_of_a_folder : public key_value_store {
  std::filesystem::path folder_;
  std::filesystem::path file(const std::string& key) const {
    std::string name;
    for (const char c : key) name += c == '/' ? '_' : c;
    return folder_ / name;
  }

 public:
  explicit files_of_a_folder(std::filesystem::path folder) : folder_(std::move(folder)) {}
  void set(const std::string& key, const std::string& value) override {
    const std::filesystem::path temporary = file(key + "." + std::to_string(::getpid()));
    std::ofstream(temporary, std::ios::binary) << value;
    std::filesystem::rename(temporary, file(key));
  }
  std::string get(const std::string& key, std::chrono::milliseconds timeout) override {
    for (const auto end = std::chrono::steady_clock::now() + timeout; !std::filesystem::exists(file(key));
         std::this_thread::sleep_for(1ms))
      if (std::chrono::steady_clock::now() > end) throw communication_error("no process has set " + key);
    return text_of_file(file(key));
  }
};

/// The losses of three epochs, then the weights. killed: this process ends itself in the second epoch.
std::vector<float> trained(const auto& strategy, bool killed) {
  std::vector<float> x(256 * 64);
  std::vector<std::int32_t> y(256);
  for (std::size_t n = 0; n < 256; ++n) {
    y[n] = std::int32_t(n % 10);
    for (std::size_t i = 0; i < 64; ++i) x[n * 64 + i] = float(philox{1}.uniform(n * 64 + i)) + float(i / 6 == n % 10);
  }
  trainer model{network{}, adam{}, sparse_categorical_crossentropy{}, strategy, seed(1)};
  const training_history past = model.fit(x, y, epochs(3), batch_size(60), verbosity::off, lambda_callback{.on_batch_end = [&](training_state& s) {
                                   if (killed && s.epoch == 2) std::raise(SIGKILL);
                                 }});
  const std::vector<double> losses = past["loss"];
  std::vector<float> all(losses.begin(), losses.end());
  all.insert(all.end(), model.parameters().begin(), model.parameters().end());
  return all;
}

/// The main function of one process.
int train(const std::string& kind, int rank, const std::filesystem::path& folder) {
  const std::filesystem::path result = folder / ("result " + std::to_string(rank));
  try {
    cuda_options options;
    options.leaves = 4, options.sums_by_nccl = kind == "fastest" || kind == "killed";
    std::vector<float> numbers;
    if (kind == "one") {
      numbers = trained(one_device{options}, false);
    } else {
      options.devices = {rank % machine::device_count()};
      files_of_a_folder store(folder);
      numbers = trained(
          synchronous_among<shared_memory_communicator, cuda>{shared_memory_communicator(store, rank, 2, 30s), options},
          kind == "killed" && rank == 1);
    }
    std::ofstream(result, std::ios::binary).write(reinterpret_cast<const char*>(numbers.data()), std::streamsize(numbers.size() * sizeof(float)));
    return 0;
  } catch (const communication_error& e) {
    std::ofstream(result, std::ios::binary) << "communication_error: " << e.what();
    return 1;
  } catch (const std::exception& e) {
    std::ofstream(result, std::ios::binary) << e.what();
    return 1;
  }
}

/// The results that each of the processes has stored.
std::vector<std::string> results_of(const char* program, const std::string& kind, int processes) {
  std::string folder = (std::filesystem::temp_directory_path() / "two_processes_XXXXXX").string();
  if (!::mkdtemp(folder.data())) throw strata_error("no folder for the processes");
  std::vector<pid_t> children;
  for (int rank = 0; rank < processes; ++rank)
    if (children.push_back(::fork()); children.back() == 0) {
      const std::string number = std::to_string(rank);
      ::setenv("NCCL_HOSTID", number.c_str(), 1);
      ::execl(program, program, kind.c_str(), number.c_str(), folder.c_str(), nullptr);
      ::_exit(127);
    }
  for (const pid_t child : children) ::waitpid(child, nullptr, 0);
  std::vector<std::string> results;
  for (int rank = 0; rank < processes; ++rank) results.push_back(text_of_file(folder + "/result " + std::to_string(rank)));
  std::filesystem::remove_all(folder);
  return results;
}

bool check(bool good, const char* what, const std::string& otherwise) {
  std::printf("%s %s%s%s\n", good ? "ok" : "not ok", what, good ? "" : ": ", good ? "" : otherwise.substr(0, 500).c_str());
  std::fflush(stdout);
  return good;
}
/// The largest difference of two arrays of floats.
double distance(const std::string& a, const std::string& b) {
  if (a.size() != b.size() || a.size() % sizeof(float) != 0 || a.size() < 1000) return INFINITY;
  double most = 0;
  for (std::size_t i = 0; i < a.size(); i += sizeof(float)) {
    float x = 0, y = 0;
    std::memcpy(&x, a.data() + i, sizeof x), std::memcpy(&y, b.data() + i, sizeof y);
    most = std::isnan(x - y) ? INFINITY : std::max(most, double(std::abs(x - y)));
  }
  return most;
}
}  // namespace

int main(int count, char** arguments) {
  if (count == 4) return train(arguments[1], std::atoi(arguments[2]), arguments[3]);
  const std::string one = results_of(arguments[0], "one", 1)[0];
  bool good = check(distance(one, one) == 0, "one process trains", one);
  const auto exact = results_of(arguments[0], "deterministic", 2);
  good &= check(exact[0] == one && exact[1] == one, "deterministic{}: two processes have the bits of one", exact[0] + " " + exact[1]);
  const auto fast = results_of(arguments[0], "fastest", 2);
  good &= check(fast[0] == fast[1], "fastest{}: two processes have the same bits", fast[0] + " " + fast[1]);
  good &= check(distance(fast[0], one) < 1e-4, "fastest{}: the numbers of one process", fast[0]);
  const auto killed = results_of(arguments[0], "killed", 2);
  good &= check(killed[1].empty() && killed[0].starts_with("communication_error: "), "a killed process ends the other one with an error",
                killed[0]);
  std::printf("# it is: %s\n", killed[0].substr(0, 300).c_str());
  return good ? 0 : 1;
}
