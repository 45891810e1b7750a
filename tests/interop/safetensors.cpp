// The other half of test_safetensors.py: writes a file for the Python package, and prints what it reads from one.
#include <bit>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <limits>
#include <strata/io/safetensors.hpp>
#include <vector>

using namespace strata;
using namespace strata::core;

namespace {

/// Prints metadata as "key=value", tensors as "name dtype [extents] bytes".
void print(const safetensors_file& file) {
  for (const auto& [key, value] : file.metadata()) std::cout << key << '=' << value << '\n';
  for (const safetensors_file::entry& e : file.entries()) {
    std::cout << e.name << ' ' << name_of(e.type) << " [";
    for (std::size_t axis = 0; axis < e.extents.size(); ++axis) std::cout << (axis > 0 ? "," : "") << e.extents[axis];
    std::cout << ']' << (e.bytes > 0 ? " " : "");
    for (const std::byte b : file.bytes(e.name)) std::cout << "0123456789abcdef"[int(b) >> 4] << "0123456789abcdef"[int(b) & 15];
    std::cout << '\n';
  }
}

void write(const char* path) {
  std::vector<float> f(24);
  for (std::size_t i = 0; i < f.size(); ++i) f[i] = 0.1f * float(i);
  f[1] = -0.0f, f[2] = std::bit_cast<float>(0x7fc12345u), f[3] = std::numeric_limits<float>::denorm_min();
  const std::vector<double> d{std::bit_cast<double>(0x7ff8000000012345ull), -0.1};
  const std::vector<std::int64_t> whole{std::numeric_limits<std::int64_t>::min(), 7};
  const std::vector<std::int32_t> labels{-1, 2, 3};
  const std::vector<std::uint8_t> bytes{0, 128, 255};
  const std::vector<std::uint16_t> one{65535}, none;
  write_safetensors(path,
                    std::vector{safetensor::of("bytes", {3}, bytes), safetensor::of("dense/kernel", {2, 3, 4}, f),
                                safetensor::of("doubles", {2, 1}, d), safetensor::of("whole", {2}, whole),
                                safetensor::of("labels \"\xc3\xa9\"", {3}, labels), safetensor::of("one", {}, one),
                                safetensor::of("none", {0, 4}, none)},
                    {{"format", "strata"}, {"words", "two lines\nand \"quotes\""}});
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc == 3 && std::strcmp(argv[1], "write") == 0)
      write(argv[2]);
    else if (argc == 3 && std::strcmp(argv[1], "print") == 0)
      print(safetensors_file(argv[2]));
    else
      throw strata_error("use: safetensors write|print FILE");
  } catch (const strata_error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return 0;
}
