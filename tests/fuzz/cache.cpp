// Files of data::cache, with and without checks. The checksum of the header can be corrected, so that inputs get past it.
#include <strata/data/sources/from_tensor_slices.hpp>
#include <strata/data/views/batch.hpp>
#include <strata/data/views/cache.hpp>
#include <strata/io/crc32c.hpp>

#include <cstring>

#include "fuzz.hpp"
using namespace strata;

namespace {
auto source() {
  return data::from_tensor_slices(data::array<float, shape{2}>(std::vector<float>{1, 2, 3, 4, 5, 6}), std::vector<int>{0, 1, 2});
}

std::vector<std::string> seeds() {
  const std::string file = fuzz::written([](const auto& path) { source() | data::cache(path); });
  return {fuzz::with_choice(0, file), fuzz::with_choice(1, file), fuzz::with_choice(2, file), fuzz::with_choice(3, file),
          fuzz::with_choice(7, file)};
}

/// Corrects the checksum of the header, which follows the first line and blanks up to a multiple of 64 bytes: the number of
/// samples in 8 bytes, 4 bytes that check the samples, and the checksum of these 12 bytes.
std::string with_checksum(std::string file) {
  const std::size_t at = (file.find('\n') + 1 + 63) / 64 * 64;
  if (file.find('\n') == file.npos || at + 16 > file.size()) return file;
  const std::uint32_t sum = io::crc32c(std::as_bytes(std::span(file)).subspan(at, 12));
  std::memcpy(file.data() + at + 12, &sum, sizeof sum);
  return file;
}

void read(std::string_view input) {
  const fuzz::choice chosen(input);
  const fuzz::file file(chosen.number & 1 ? with_checksum(std::string(chosen.rest)) : std::string(chosen.rest));
  std::size_t samples = 0;
  const data::cache_options checks{.check_crc = (chosen.number & 2) == 0, .check_samples = (chosen.number & 4) == 0};
  for (const auto& batch : source() | data::cache(file.path(), checks) | data::batch<2>) {
    fuzz::look_at(std::span(batch.x(), 2 * std::size_t(batch.count)));
    samples += std::size_t(batch.count);
  }
  fuzz::check(samples * 16 < chosen.rest.size());
}

const fuzz::target cache{"cache", seeds, read};
}  // namespace
