// The program of all fuzz targets. STRATA_FUZZ_TARGET names the one to run; its seeds go into STRATA_FUZZ_FOLDER/seeds. Without a
// name, it lists the targets.
// It ends after STRATA_FUZZ_SECONDS of processor time, and with an input that takes more than 10 s of it: the clock would blame
// inputs for a machine that is busy with other things.
#include <sys/time.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <iostream>
#include <strata/base/error.hpp>

#include "fuzz.hpp"
using namespace strata;

static const fuzz::target* chosen = nullptr;
static double seconds = 0;  // of processor time; 0: without end

static void limit_input(long most) {
  const itimerval limit{{}, {most, 0}};
  ::setitimer(ITIMER_PROF, &limit, nullptr);
}

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const char* const name = std::getenv("STRATA_FUZZ_TARGET");
  for (const fuzz::target* t = fuzz::target::first; t; t = t->next) {
    if (!name) std::puts(t->name);
    if (name && std::strcmp(name, t->name) == 0) chosen = t;
  }
  if (!chosen) std::exit(name ? 2 : 0);
  if (const char* const given = std::getenv("STRATA_FUZZ_SECONDS")) seconds = std::atof(given);
  std::signal(SIGPROF, [](int) {
    static constexpr char why[] = "an input takes more than 10 s of processor time\n";
    (void)!::write(2, why, sizeof why - 1);
    std::abort();  // libFuzzer keeps the input
  });
  std::clog.rdbuf(nullptr);  // warnings about damaged files
  std::filesystem::create_directories(fuzz::folder() / "seeds");
  int number = 0;
  for (const std::string& seed : chosen->seeds())
    std::ofstream(fuzz::folder() / "seeds" / std::to_string(number++), std::ios::binary) << seed;
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  limit_input(10);
  try {
    chosen->read({reinterpret_cast<const char*>(data), size});
  } catch (const strata::error&) {
  }
  limit_input(0);
  if (seconds > 0 && double(std::clock()) > seconds * CLOCKS_PER_SEC) std::raise(SIGUSR1);  // libFuzzer ends in good order
  return 0;
}
