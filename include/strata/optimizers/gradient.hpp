// Two types of gradient, so that a forgotten reduction does not compile.
#pragma once
#include <strata/optimizers/elementwise.hpp>

namespace strata {

/// What kernels accumulated over some samples: a sum, not yet a mean, not yet everybody's. V: a number or a vector of them.
template <class V>
struct local_gradient {
  V sum;
};

struct reduction;

/// The mean over the global batch. Only a strategy's reduction makes one; clipping, optimizers and callbacks take no other.
template <class V>
class reduced_gradient {
  V mean_;
  constexpr explicit reduced_gradient(V mean) : mean_(mean) {}
  friend struct reduction;

 public:
  constexpr V value() const { return mean_; }
};

/// The key to reduced_gradient: named by strategies, and by what works on the outcome of theirs.
struct reduction {
  /// `all`: the sum over all samples of the global batch, of which there are 1 / scale.
  template <class V, class T>
  static constexpr reduced_gradient<V> mean(local_gradient<V> all, T scale) {
    return reduced_gradient<V>(detail::product(all.sum, scale));
  }
  /// For what follows the reduction: clipping, penalties.
  template <class V, class F>
  static constexpr reduced_gradient<V> transformed(reduced_gradient<V> gradient, F&& f) {
    return reduced_gradient<V>(f(gradient.value()));
  }
};

}  // namespace strata
