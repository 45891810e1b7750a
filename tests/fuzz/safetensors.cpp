// Safetensors files: the header, all tensors, and write_safetensors of what was read.
#include <strata/io/safetensors.hpp>

#include "fuzz.hpp"
using namespace strata;
using namespace strata::core;

namespace {
std::vector<std::string> seeds() {
  const std::vector<float> x{1, 2, 3, 4};
  const std::vector<double> y{1};
  const std::vector<std::uint8_t> z;
  return {fuzz::written([&](const auto& path) { write_safetensors(path, {}); }), fuzz::written([&](const auto& path) {
            write_safetensors(path,
                              std::vector{safetensor::of("x", {2, 2}, x), safetensor::of("dense/kernel", {}, y),
                                          safetensor::of("z", {0, 1}, z)},
                              {{"key", "value"}});
          })};
}

std::vector<std::string> larger(int count) {
  const float x = 1;
  std::vector<safetensor> tensors;
  safetensors_metadata metadata;
  for (int i = 0; i < count; ++i) {
    tensors.push_back(safetensor::of("dense_" + std::to_string(i), {}, std::span(&x, 1)));
    metadata["key " + std::to_string(i)] = "value";
  }
  return {fuzz::written([&](const auto& path) { write_safetensors(path, tensors); }),
          fuzz::written([&](const auto& path) { write_safetensors(path, {}, metadata); })};
}

void read(std::string_view input) {
  const fuzz::file in_memory(input);
  const safetensors_file file(in_memory.path());
  fuzz::accepted([&] {
    std::vector<std::vector<std::byte>> bytes;
    std::vector<safetensor> tensors;
    for (const safetensors_file::entry& e : file.entries()) {
      fuzz::check(file.find(e.name) == &e && e.count() * size_of(e.type) == e.bytes);
      if (e.type == dtype::unknown) continue;
      bytes.push_back(file.bytes(e.name));
      tensors.push_back({e.name, e.type, e.extents, bytes.back()});
    }
    const fuzz::file copy(fuzz::written([&](const auto& path) { write_safetensors(path, tensors, file.metadata()); }));
    const safetensors_file again(copy.path());
    fuzz::check(again.metadata() == file.metadata() && again.entries().size() == tensors.size());
    for (const safetensor& t : tensors)
      fuzz::check(again[t.name].extents == t.extents && std::ranges::equal(again.bytes(t.name), t.bytes));
  });
  file.read<float>("x");
}

const fuzz::target safetensors{"safetensors", seeds, read, larger};
}  // namespace
