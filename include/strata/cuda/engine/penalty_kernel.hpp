// The kernel that computes the penalties of regularizers.
#pragma once
#include <strata/cuda/engine/update_terms.hpp>

namespace strata::machine {

/// The penalty that a regularizer adds to the loss.
template <class T>
struct penalty_of_parameter {
  using value = double;
  static constexpr int threads = 128;
  device_ranges ranges;
  const T* weights;
  double* to;

  constexpr long terms(long k) const {
    return ranges.all[k].frozen || ranges.all[k].regularizer.empty() ? 0 : ranges.all[k].elements;
  }
  constexpr double term(long k, long i) const {
    const double w = weights[ranges.all[k].begin + i];
    return (w < 0 ? -w : w) * ranges.all[k].regularizer.l1 + w * w * ranges.all[k].regularizer.l2;
  }
  constexpr void store(long k, double sum) const { to[k] = sum; }
};

}  // namespace strata::machine
