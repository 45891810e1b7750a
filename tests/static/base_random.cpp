// Philox4x32-10 against the known answers of Random123 (kat_vectors); what depends on it.
#include <strata/base/random.hpp>
using namespace strata;
using namespace strata::core;

static_assert(philox{0}(0, 0) == philox::block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
static_assert(philox{~0ull}(~0ull, ~0ull) == philox::block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
static_assert(philox{0x299f31d0a4093822}(0x85a308d3243f6a88, 0x0370734413198a2e) ==
              philox::block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});

// Streams differ from each other and from the generator they come from.
static_assert(philox{1}.fork(0).key != philox{1}.fork(1).key && philox{1}.fork(0).key != philox{2}.fork(0).key);
static_assert(philox{1}.fork(0).key == philox{1}.fork(0).key && philox{1}.fork(0).key != 1);

// 53 bits of the first two words: 0xe169c58d6627e8d5 >> 11.
static_assert(philox{0}.uniform(0) == 0x1.c2d38b1acc4fdp-1);

constexpr bool all_in_unit_interval(int n) {
  double sum = 0;
  for (int i = 0; i < n; ++i) {
    const double u = philox{42}.uniform(std::uint64_t(i));
    if (!(u >= 0 && u < 1)) return false;
    sum += u;
  }
  return sum > 0.45 * n && sum < 0.55 * n;  // 5 standard deviations are 0.046 n for n = 1000
}
static_assert(all_in_unit_interval(1000));
