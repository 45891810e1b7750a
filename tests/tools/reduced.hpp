// Reduced gradients for tests: sums that a test declares to be those of the global batch.
#pragma once
#include <strata/concepts/device.hpp>
#include <strata/optimizers/gradient.hpp>

/// The sum over arrays that hold the gradients of `samples` samples.
template <class T>
constexpr auto reduced(T* const* arrays, int count, long samples) {
  return strata::core::whole_batch_reduction::reduce(
      strata::core::leaf_gradients<T, strata::core::host_device>{arrays, count, 0, count, count}, samples);
}
/// One element of such a sum.
template <class T>
constexpr strata::core::reduced_gradient<T> reduced(strata::core::local_gradient<T> sum, long samples) {
  return reduced<T>(nullptr, 1, samples).mean().of(sum.sum);
}
