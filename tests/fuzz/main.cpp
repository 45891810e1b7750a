// The program of all fuzz targets. STRATA_FUZZ_TARGET names the one to run; its seeds go into STRATA_FUZZ_FOLDER/seeds. Without a
// name, it lists the targets.
#include <cstdio>
#include <cstring>
#include <iostream>
#include <strata/base/error.hpp>

#include "fuzz.hpp"
using namespace strata;

static const fuzz::target* chosen = nullptr;

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const char* const name = std::getenv("STRATA_FUZZ_TARGET");
  for (const fuzz::target* t = fuzz::target::first; t; t = t->next) {
    if (!name) std::puts(t->name);
    if (name && std::strcmp(name, t->name) == 0) chosen = t;
  }
  if (!chosen) std::exit(name ? 2 : 0);
  std::clog.rdbuf(nullptr);  // warnings about damaged files
  std::filesystem::create_directories(fuzz::folder() / "seeds");
  int number = 0;
  for (const std::string& seed : chosen->seeds())
    std::ofstream(fuzz::folder() / "seeds" / std::to_string(number++), std::ios::binary) << seed;
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    chosen->read({reinterpret_cast<const char*>(data), size});
  } catch (const strata::error&) {
  }
  return 0;
}
