// The operands of each element of an update: its parameter, and its gradient with all modifiers applied.
#pragma once
#include <strata/cuda/engine/update_numbers.hpp>
#include <strata/cuda/machine/device.hpp>
#include <strata/cuda/machine/tree.hpp>
#include <strata/network/parameter_ranges.hpp>
#include <strata/optimizers/elementwise.hpp>
#include <strata/optimizers/gradient.hpp>
#include <strata/optimizers/gradient_modifiers.hpp>

namespace strata::machine {

/// The trained parameters, in memory of the device.
struct device_ranges {
  const parameter_range* all;
  int count;

  struct place {
    int parameter;
    bool is_trained;  // neither padding nor frozen
  };
  constexpr place of(long i) const {
    int low = 0, high = count - 1;
    while (low < high) {
      const int middle = (low + high + 1) / 2;
      if (all[middle].begin <= i)
        low = middle;
      else
        high = middle - 1;
    }
    return {low, i >= all[low].begin && i < all[low].begin + all[low].elements && !all[low].frozen};
  }
};

/// An element of the sum over arrays, in the binary tree over leaves.
template <class T>
struct tree_of_arrays {
  T* const* arrays;  // in memory of the device
  int count;

  constexpr T operator()(long i) const {
    return sum_over_leaves<T>(count, [&](int l) { return arrays[l][i]; });
  }
};

/// The operands that are the same for all elements of an update.
template <class T>
struct update_terms {
  device_ranges ranges;
  tree_of_arrays<T> sum;
  sample_mean<T> mean;
  T *weights, *first_array;
  const double* factors;  // of clipping by norms, for each parameter; null: there is none
  const update_numbers<T>* now;
  T clip_value;
  bool has_penalties;

  constexpr gradient_modifiers<T> modifiers(int k) const {
    gradient_modifiers<T> m;
    m.clip_value = clip_value;
    if (has_penalties) m.l1 = T(ranges.all[k].regularizer.l1), m.l2 = T(ranges.all[k].regularizer.l2);
    if (factors) m.clip_factor = T(factors[k]);
    return m;
  }
  /// The gradient of element i of parameter k, with all modifiers applied.
  constexpr reduced_gradient<T> gradient(long i, int k) const {
    const gradient_modifiers<T> m = modifiers(k);
    const reduced_gradient<T> whole = mean.of(sum(i));
    return m.keep_gradient() ? whole : strata::detail::modified(whole, weights[i], m);
  }
  constexpr void decay(long i) const { weights[i] -= strata::detail::product(weights[i], now->weight_decay); }
};

/// Stores the gradient with all modifiers applied in the first array: for its norms, and for a factored_rule.
template <class T>
struct store_mean {
  update_terms<T> of;
  constexpr void operator()(long i) const {
    const auto [k, is_trained] = of.ranges.of(i);
    of.first_array[i] = is_trained ? of.gradient(i, k).value() : T{};
  }
};

}  // namespace strata::machine
