// IDX files, raw and gzipped, of several types and shapes.
#include <strata/data/formats/idx.hpp>

#include "fuzz.hpp"
#include "zipped.hpp"
using namespace strata;

namespace {
std::vector<std::string> seeds() {
  const std::string bytes(
      "\0\0\x08\x03\0\0\0\x02\0\0\0\x02\0\0\0\x03"
      "abcdefghijkl",
      28),
      floats("\0\0\x0d\x01\0\0\0\x02\x3f\x80\0\0\x40\0\0\0", 16), longs("\0\0\x0b\x02\0\0\0\x01\0\0\0\x02\x01\x02\x03\x04", 16);
  std::vector<std::string> all;
  for (const unsigned zipped : {0u, 1u}) {
    all.push_back(fuzz::with_choice(zipped, bytes));
    all.push_back(fuzz::with_choice(2 | zipped, bytes));
    all.push_back(fuzz::with_choice(4 | zipped, floats));
    all.push_back(fuzz::with_choice(6 | zipped, longs));
  }
  all.push_back(fuzz::with_choice(0, fuzz::gzipped(bytes)));
  return all;
}

void read(std::string_view input) {
  const fuzz::choice chosen(input);
  const fuzz::file file(chosen.number & 1 ? fuzz::gzipped(chosen.rest) : std::string(chosen.rest));
  switch (chosen.number >> 1 & 3) {
    case 0:
      return fuzz::look_at(data::read_idx<std::uint8_t>(file.path()).values());
    case 1: {
      const auto array = data::read_idx<std::uint8_t, shape{2, 3, 1}>(file.path());
      return fuzz::look_at(array.values());
    }
    case 2:
      return fuzz::look_at(data::read_idx<float>(file.path()).values());
    default:
      return fuzz::look_at(data::read_idx<std::int16_t>(file.path()).values());
  }
}

const fuzz::target idx{"idx", seeds, read};
}  // namespace
