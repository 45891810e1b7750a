// A program that uses strata, and what strata brings along: fmt, zlib and threads.
#include <fmt/format.h>
#include <zlib.h>

#include <strata/strata.hpp>
#include <thread>

int main() {
  const strata::philox::block words = strata::philox{1}(0);
  uLong sum = 0;
  std::thread([&] { sum = crc32(0, reinterpret_cast<const Bytef*>(words.data()), sizeof words); }).join();
  fmt::print("{:08x}\n", sum);
  return sum == 0xe5176aa6 ? 0 : 1;
}
