// Definitions of random_draws.hpp.
#pragma once

namespace strata::detail {

[[gnu::noinline]] STRATA_STEP_FUNCTION void random_draws::refill() {
  for (std::size_t b = 0; b < blocks; ++b) {
    const philox::block r = generator_(next_++, epoch_);
    std::copy(r.begin(), r.end(), words_.begin() + static_cast<std::ptrdiff_t>(4 * b));
  }
  used_ = 0;
}

}  // namespace strata::detail
