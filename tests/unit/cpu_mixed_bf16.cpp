// bfloat16 with and without the processor's instruction: the same bits.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <strata/base/random.hpp>
#include <strata/cpu/engine/team.hpp>
#include <strata/cpu/simd/bf16.hpp>
#include <vector>

using namespace strata;
using namespace strata::core;
using namespace strata::simd;

namespace {

constexpr int L = lanes<float>;

std::uint32_t bits_of(float f) {
  std::uint32_t b;
  std::memcpy(&b, &f, sizeof b);
  return b;
}
float float_of(std::uint32_t b) {
  float f;
  std::memcpy(&f, &b, sizeof f);
  return f;
}

/// Random bits, magnitudes around 1, and magnitudes near both ends of the range.
std::vector<float> floats(std::uint64_t seed) {
  std::vector<float> v;
  std::uint64_t drawn = 0;
  const auto random = [&] { return std::uint32_t(philox{seed}.uniform(drawn++) * 4294967296.); };
  for (int kind = 0; kind < 4; ++kind)
    for (int i = 0; i < 4096; ++i) {
      const std::uint32_t b = random(), exponents[] = {0, 118, 50, 180};
      v.push_back(float_of(kind == 0 ? b : (b & 0x807f'ffff) | (exponents[kind] + (random() >> 8) % 20) << 23));
    }
  for (const float f : {0.f, -0.f, 1.f, INFINITY, -INFINITY, NAN, std::numeric_limits<float>::max(),
                        std::numeric_limits<float>::min(), std::numeric_limits<float>::denorm_min(), float_of(0x3f80'8000),
                        float_of(0x3f81'8000), float_of(0x7f80'0001), float_of(0x007f'ffff)})
    v.push_back(f);
  v.resize((v.size() + L - 1) / L * L);
  return v;
}

/// Rounds one float by definition: ties to even, denormals become zero, nan stays nan.
std::uint32_t rounded(float f) {
  const std::uint32_t b = bits_of(f);
  if (std::isnan(f)) return b >> 16 | 0x40;
  if ((b & 0x7f80'0000) == 0) return b >> 31 << 15;
  const std::uint32_t down = b >> 16, rest = b & 0xffff;
  return rest > 0x8000 || (rest == 0x8000 && down % 2 == 1) ? down + 1 : down;
}

[[maybe_unused]] float sum_of_products(float sum, std::uint32_t a, std::uint32_t b) {
  const auto high = [](std::uint32_t p) { return float_of(p & 0xffff'0000); };
  const auto low = [](std::uint32_t p) { return float_of(p << 16); };
  return std::fma(low(a), low(b), std::fma(high(a), high(b), sum));
}

[[maybe_unused]] bool equal_bits(float a, float b) { return bits_of(a) == bits_of(b) || (std::isnan(a) && std::isnan(b)); }

template <class B>
void check() {
  const flush_denormals scope;
  const std::vector<float> v = floats(1), u = floats(2), sums = floats(3);
  bool rounds = true, stores = true, adds = true;
  for (std::size_t i = 0; i < v.size(); i += L) {
    bf16_pair pairs[L], row[L / 2], other[L];
    store_pairs(pairs, make_pairs<B>(load(v.data() + i), load(u.data() + i)));
    store_pairs(other, make_pairs<B>(load(u.data() + i), load(sums.data() + i)));
    B::store_row(row, load(v.data() + i));
    float sum[L];
    store(sum, B::dot(load(sums.data() + i), load_pairs(pairs), load_pairs(other)));
    for (std::size_t k = 0; k < L; ++k) {
      rounds = rounds && pairs[k] == (rounded(v[i + k]) | rounded(u[i + k]) << 16);
      stores = stores && (row[k / 2] >> (k % 2 * 16) & 0xffff) == rounded(v[i + k]);
#if defined(__FMA__)
      adds = adds && equal_bits(sum[k], sum_of_products(sums[i + k], pairs[k], other[k]));
#endif
    }
  }
  CHECK(rounds);
  CHECK(stores);
  CHECK(adds);

  std::uint16_t a[2 * L], b[2 * L];
  for (int i = 0; i < 2 * L; ++i) a[i] = std::uint16_t(i), b[i] = std::uint16_t(100 + i);
  bf16_pairs low, high;
  B::interleave(load_pairs(reinterpret_cast<bf16_pair*>(a)), load_pairs(reinterpret_cast<bf16_pair*>(b)), low, high);
  bf16_pair out[2 * L];
  store_pairs(out, low), store_pairs(out + L, high);
  for (int i = 0; i < 2 * L; ++i) CHECK(out[i] == std::uint32_t(B::place(i)) + (std::uint32_t(100 + B::place(i)) << 16));
}

}  // namespace

TEST_CASE("bfloat16 by software") { check<bf16_by_software>(); }
TEST_CASE("bfloat16 as this target computes it") { check<bf16>(); }

TEST_CASE("rows are rounded to their end, and zeros follow") {
  for (const int n : {1, L, L + 3}) {
    std::vector<float> x(std::size_t(n), 1.f);
    std::vector<std::uint32_t> to(std::size_t(L), 7u);
    round_row<bf16>(x.data(), n, to.data());
    for (int i = 0; i < padded<float>(n); ++i) CHECK((to[std::size_t(i / 2)] >> (i % 2 * 16) & 0xffff) == (i < n ? 0x3f80u : 0u));
  }
}
