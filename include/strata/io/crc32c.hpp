// CRC-32C, the checksum of TFRecord files: with the instruction of the processor if it has one, otherwise with tables.
#pragma once
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#if defined(__x86_64__)
#include <nmmintrin.h>
#define STRATA_CRC32C_INSTRUCTION [[gnu::target("sse4.2,crc32")]]
#elif defined(__aarch64__) && defined(__ARM_FEATURE_CRC32) && !defined(__ARM_BIG_ENDIAN)
#include <arm_acle.h>
#define STRATA_CRC32C_INSTRUCTION
#endif

namespace strata::io {

namespace detail {

using crc_table = std::array<std::uint32_t, 256>;

inline constexpr std::uint32_t crc32c_polynomial = 0x82F63B78;  // bit 31 is the coefficient of x^0

/// tables[k][b]: state b after 1 + k zero bytes.
inline constexpr auto crc32c_tables = [] {
  std::array<crc_table, 8> tables{};
  for (std::uint32_t b = 0; b < 256; ++b) {
    std::uint32_t state = b;
    for (int bit = 0; bit < 8; ++bit) state = state >> 1 ^ (state & 1 ? crc32c_polynomial : 0);
    tables[0][b] = state;
  }
  for (std::size_t k = 1; k < 8; ++k)
    for (std::size_t b = 0; b < 256; ++b) tables[k][b] = tables[k - 1][b] >> 8 ^ tables[0][tables[k - 1][b] & 255];
  return tables;
}();

inline std::uint32_t crc32c_of_byte(std::uint32_t state, std::byte b) {
  return state >> 8 ^ crc32c_tables[0][(state ^ std::to_integer<std::uint32_t>(b)) & 255];
}

/// Eight bytes per step: Kounavis and Berry, "A systematic approach to building high performance software-based CRC
/// generators", 2005.
inline std::uint32_t crc32c_portable(std::span<const std::byte> bytes) {
  std::uint32_t state = ~std::uint32_t{0};
  const std::byte* p = bytes.data();
  std::size_t left = bytes.size();
  if constexpr (std::endian::native == std::endian::little) {
    for (; left >= 8; p += 8, left -= 8) {
      std::uint32_t low, high;
      std::memcpy(&low, p, 4);
      std::memcpy(&high, p + 4, 4);
      low ^= state;
      const auto& t = crc32c_tables;
      state = t[7][low & 255] ^ t[6][low >> 8 & 255] ^ t[5][low >> 16 & 255] ^ t[4][low >> 24] ^ t[3][high & 255] ^
              t[2][high >> 8 & 255] ^ t[1][high >> 16 & 255] ^ t[0][high >> 24];
    }
  }
  for (; left > 0; ++p, --left) state = crc32c_of_byte(state, *p);
  return ~state;
}

#ifdef STRATA_CRC32C_INSTRUCTION
/// a b modulo the polynomial.
constexpr std::uint32_t crc32c_product(std::uint32_t a, std::uint32_t b) {
  std::uint32_t product = 0;
  for (; a != 0; a <<= 1, b = b >> 1 ^ (b & 1 ? crc32c_polynomial : 0))
    if (a >> 31) product ^= b;
  return product;
}

inline constexpr std::size_t crc32c_block = 128;

/// Advances a state by a block of zeros: the xor of what its four bytes become.
inline constexpr auto crc32c_shift_tables = [] {
  std::uint32_t power = 0x80000000 >> 8;  // x^8, one byte
  for (std::size_t n = 1; n < crc32c_block; n *= 2) power = crc32c_product(power, power);
  std::array<crc_table, 4> tables{};
  for (std::uint32_t k = 0; k < 4; ++k)
    for (std::uint32_t b = 0; b < 256; ++b) tables[k][b] = crc32c_product(b << 8 * k, power);
  return tables;
}();
inline std::uint32_t crc32c_shift(std::uint64_t state) {
  const auto& t = crc32c_shift_tables;
  return t[0][state & 255] ^ t[1][state >> 8 & 255] ^ t[2][state >> 16 & 255] ^ t[3][state >> 24 & 255];
}

STRATA_CRC32C_INSTRUCTION inline std::uint64_t crc32c_of_word(std::uint64_t state, const std::byte* p) {
  std::uint64_t word;
  std::memcpy(&word, p, sizeof word);
#if defined(__x86_64__)
  return _mm_crc32_u64(state, word);
#else
  return __crc32cd(std::uint32_t(state), word);
#endif
}

/// The instruction has a latency of three cycles and a throughput of one: reads three blocks at once and combines their states.
STRATA_CRC32C_INSTRUCTION inline std::uint32_t crc32c_instruction(std::span<const std::byte> bytes) {
  std::uint64_t state = ~std::uint32_t{0};
  const std::byte* p = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 3 * crc32c_block; p += 3 * crc32c_block, left -= 3 * crc32c_block) {
    std::uint64_t second = 0, third = 0;
    for (std::size_t i = 0; i < crc32c_block; i += 8) {
      state = crc32c_of_word(state, p + i);
      second = crc32c_of_word(second, p + crc32c_block + i);
      third = crc32c_of_word(third, p + 2 * crc32c_block + i);
    }
    state = crc32c_shift(crc32c_shift(state) ^ second) ^ third;
  }
  for (; left >= 8; p += 8, left -= 8) state = crc32c_of_word(state, p);
  std::uint32_t last = std::uint32_t(state);
  for (; left > 0; ++p, --left) last = crc32c_of_byte(last, *p);
  return ~last;
}

inline bool has_crc32c_instruction() {
#if defined(__x86_64__) && !defined(__SSE4_2__)
  return __builtin_cpu_supports("sse4.2");
#else
  return true;
#endif
}
#undef STRATA_CRC32C_INSTRUCTION
#define STRATA_HAS_CRC32C_INSTRUCTION
#endif

}  // namespace detail

/// The CRC with the Castagnoli polynomial: RFC 3720, appendix B.4.
inline std::uint32_t crc32c(std::span<const std::byte> bytes) {
#ifdef STRATA_HAS_CRC32C_INSTRUCTION
  if (detail::has_crc32c_instruction()) return detail::crc32c_instruction(bytes);
#endif
  return detail::crc32c_portable(bytes);
}

/// As TFRecord files store it, rotated and offset, since the CRC of data that contain their own CRC is weak.
/// https://www.tensorflow.org/tutorials/load_data/tfrecord
inline std::uint32_t masked_crc32c(std::span<const std::byte> bytes) { return std::rotr(crc32c(bytes), 15) + 0xA282EAD8; }

}  // namespace strata::io
