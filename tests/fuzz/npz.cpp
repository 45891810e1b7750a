// needs: libzip
// NPZ files: each array of the archive, as two types.
#include <strata/data/formats/npz.hpp>

#include "fuzz.hpp"
using namespace strata;

namespace {
std::vector<std::string> seeds() {
  const std::vector<float> x{1, 2, 3, 4};
  const std::vector<std::int32_t> y(100, 7);
  std::vector<std::string> all;
  for (const bool compressed : {false, true})
    all.push_back(fuzz::written(
        [&](const auto& path) { data::save_npz(path, {{"x", {x, {2, 2}}}, {"y", y}}, {.compressed = compressed}); }));
  return all;
}

std::vector<std::string> larger(int count) {
  const std::vector<float> x{1, 2};
  std::vector<data::npz_member> arrays;
  for (int i = 0; i < count; ++i) arrays.push_back({"x" + std::to_string(i), x});
  return {fuzz::written([&](const auto& path) { data::save_npz(path, arrays); })};
}

void read(std::string_view input) {
  const fuzz::file file(input);
  const data::npz_file archive = data::load_npz(file.path());
  for (std::size_t i = 0; i < archive.names().size() && i < 16; ++i) {  // the time of a lookup grows with their number
    const std::string& name = archive.names()[i];
    const auto try_shape = [&]<class T, shape S>() {
      try {
        const auto array = archive.load<T, S>(name);
        fuzz::look_at(array.values());
      } catch (const strata::strata_error&) {  // the next array may be good
      }
    };
    try_shape.template operator()<float, shape{2}>();
    try_shape.template operator()<std::int32_t, shape{1}>();
  }
}

const fuzz::target npz{"npz", seeds, read, larger};
}  // namespace
