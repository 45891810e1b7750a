// The program of all fuzz targets. STRATA_FUZZ_TARGET names the one to run; its seeds go into STRATA_FUZZ_FOLDER/seeds. Without a
// name, it lists the targets.
// It ends after STRATA_FUZZ_SECONDS of processor time, and with a finding if an input takes more than 10 s. Wall-clock time would
// report inputs as slow on a busy machine.
#include <sys/time.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <iostream>
#include <strata/base/error.hpp>

#include "fuzz.hpp"
using namespace strata;

static const fuzz::target* chosen = nullptr;
static double seconds = 0;  // of processor time; 0: no limit

static void limit_input(long most) {
  const itimerval limit{{}, {most, 0}};
  ::setitimer(ITIMER_PROF, &limit, nullptr);
}

/// The counters of executed regions of code, from -fprofile-instr-generate; the linker defines these symbols.
extern "C" std::uint64_t __start___llvm_prf_cnts[], __stop___llvm_prf_cnts[];

static std::uint64_t work_so_far() {
  std::uint64_t sum = 0;
  for (const std::uint64_t* count = __start___llvm_prf_cnts; count != __stop___llvm_prf_cnts; ++count) sum += *count;
  return sum;
}

static void read(std::string_view input) {
  try {
    chosen->read(input);
  } catch (const strata::strata_error&) {
  }
}

/// Checks that the work per byte of a long input is about that of a short one, so that it does not grow quadratically. The code
/// of libraries is not counted.
static void check_work(const std::string& shorter, const std::string& longer) {
  const auto work_per_byte = [](const std::string& input) {
    const std::uint64_t before = work_so_far();
    read(input);
    return double(work_so_far() - before) / double(input.size());
  };
  const double expected = work_per_byte(shorter), found = work_per_byte(longer);
  if (found <= 2 * expected) return;
  std::fprintf(stderr, "%.0f steps for each of %zu bytes, but %.0f for each of %zu\n", expected, shorter.size(), found,
               longer.size());
  std::abort();
}
static void check_work_repeated(std::string_view input) {
  const auto repeated = [&](std::size_t bytes) {
    std::string all(input);
    while (all.size() < bytes) all += input.substr(1);
    return all;
  };
  if (input.size() > 1 && input.size() < 4096) check_work(repeated(1 << 13), repeated(1 << 17));
}

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const char* const name = std::getenv("STRATA_FUZZ_TARGET");
  for (const fuzz::target* t = fuzz::target::first; t; t = t->next) {
    if (!name) std::puts(t->name);
    if (name && std::strcmp(name, t->name) == 0) chosen = t;
  }
  if (!chosen) std::exit(name ? 2 : 0);
  std::signal(SIGPROF, [](int) {
    static constexpr char why[] = "an input takes more than 10 s of processor time\n";
    (void)!::write(2, why, sizeof why - 1);
    std::abort();  // libFuzzer keeps the input
  });
  std::clog.rdbuf(nullptr);  // warnings about damaged files
  std::filesystem::create_directories(fuzz::folder() / "seeds");
  int number = 0;
  for (const std::string& seed : chosen->seeds()) {
    std::ofstream(fuzz::folder() / "seeds" / std::to_string(number++), std::ios::binary) << seed;
    check_work_repeated(seed);
  }
  if (chosen->larger) {
    const std::vector<std::string> shorter = chosen->larger(256), longer = chosen->larger(1 << 13);
    for (std::size_t i = 0; i < shorter.size(); ++i) check_work(shorter[i], longer[i]);
  }
  if (const char* const given = std::getenv("STRATA_FUZZ_SECONDS"); given && std::atof(given) > 0)
    seconds = std::atof(given) + double(std::clock()) / CLOCKS_PER_SEC;
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  limit_input(10);
  read(input);
  if (std::hash<std::string_view>()(input) % 256 == 0) check_work_repeated(input);
  limit_input(0);
  if (seconds > 0 && double(std::clock()) > seconds * CLOCKS_PER_SEC) std::raise(SIGUSR1);  // libFuzzer ends in good order
  return 0;
}
