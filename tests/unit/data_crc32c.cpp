// CRC-32C against published values, and the processor's instruction against the tables.
#include <doctest/doctest.h>

#include <numeric>
#include <strata/base/random.hpp>
#include <strata/io/crc32c.hpp>
#include <string_view>
#include <vector>
using namespace strata;
using namespace strata::core;

namespace {
std::uint32_t crc_of(std::vector<std::uint8_t> bytes) { return io::crc32c(std::as_bytes(std::span(bytes))); }
std::uint32_t crc_of(std::string_view text) { return io::crc32c(std::as_bytes(std::span(text))); }
}  // namespace

TEST_CASE("published values: RFC 3720, appendix B.4, and the catalogue of CRC algorithms") {
  std::vector<std::uint8_t> up(32);
  std::iota(up.begin(), up.end(), std::uint8_t{0});
  CHECK(crc_of(std::vector<std::uint8_t>(32, 0)) == 0x8A9136AA);
  CHECK(crc_of(std::vector<std::uint8_t>(32, 0xFF)) == 0x62A8AB43);
  CHECK(crc_of(up) == 0x46DD794E);
  CHECK(crc_of({up.rbegin(), up.rend()}) == 0x113FDB5C);
  CHECK(crc_of({0x01, 0xC0, 0, 0,    0, 0, 0, 0,    0,    0, 0, 0, 0, 0, 0, 0, 0x14, 0, 0, 0, 0, 0, 4, 0,
                0,    0,    0, 0x14, 0, 0, 0, 0x18, 0x28, 0, 0, 0, 0, 0, 0, 0, 2,    0, 0, 0, 0, 0, 0, 0}) == 0xD9963A56);
  CHECK(crc_of("123456789") == 0xE3069283);
  CHECK(crc_of("") == 0);
}

TEST_CASE("the instruction and the tables agree for all lengths and alignments") {
  std::vector<std::byte> bytes(70'000);
  const philox random{1};
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = std::byte(random(i, 0)[0]);
  const auto check = [&](std::size_t begin, std::size_t length) {
    const auto some = std::span<const std::byte>(bytes).subspan(begin, length);
    CHECK(io::crc32c(some) == io::detail::crc32c_portable(some));
  };
  for (std::size_t length = 0; length < 900; ++length) check(length % 17, length);  // past two rounds of three blocks
  for (std::size_t length : {4'095u, 4'096u, 12'345u, 69'990u}) check(3, length);
}

TEST_CASE("a checksum notices any flipped bit") {
  std::vector<std::byte> bytes(500, std::byte{0x5A});
  const std::uint32_t right = io::masked_crc32c(bytes);
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    const std::byte mask{std::uint8_t(1u << bit % 8)};
    bytes[bit / 8] ^= mask;
    CHECK(io::masked_crc32c(bytes) != right);
    bytes[bit / 8] ^= mask;
  }
}
