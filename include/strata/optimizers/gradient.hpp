// The types of a gradient from the kernels to the update. Forgetting the reduction does not compile:
// leaf_gradients -> (a gradient_reduction) -> global_gradient -> update, where each element is a reduced_gradient.
#pragma once
#include <strata/base/error.hpp>
#include <strata/optimizers/elementwise.hpp>

namespace strata {

namespace core {
/// An element of a sum over some samples: not yet a mean, and not yet of all processes. V: a scalar or a vector.
template <class V>
struct local_gradient {
  V sum;
};

template <class V>
class reduced_gradient;
template <class T>
class sample_mean;
}  // namespace core

namespace detail {
/// Changes a gradient between the reduction and the rule: clipping and penalties.
struct after_reduction {
  template <class V, class F>
  static constexpr reduced_gradient<V> transformed(reduced_gradient<V> gradient, F&& f) {
    return reduced_gradient<V>(f(gradient.value()));
  }
  /// The mean for elements that have already been multiplied by it: a factor of 1.
  template <class T>
  static constexpr sample_mean<T> applied(sample_mean<T>) {
    return sample_mean<T>(T(1));
  }
};
}  // namespace detail

namespace core {
/// An element of the mean gradient over the global batch. Clipping and the rules of optimizers take only this type. Only a
/// global_gradient makes one.
template <class V>
class reduced_gradient {
  V mean_;
  constexpr explicit reduced_gradient(V mean) : mean_(mean) {}
  friend struct detail::after_reduction;
  template <class T>
  friend class sample_mean;

 public:
  constexpr V value() const { return mean_; }
};

/// The gradients that one engine has computed: `count` arrays with sums over the samples of one leaf each, or of whole subtrees
/// of leaves. Together they cover the leaves [begin, end) of all `leaves` of the global batch. Addresses are those of the device.
template <class T, class Device>
struct leaf_gradients {
  T* const* arrays = nullptr;
  int count = 0;
  int begin = 0, end = 0, leaves = 0;

  constexpr bool is_whole_batch() const { return leaves > 0 && begin == 0 && end == leaves; }
};

/// Multiplies a sum over the global batch by 1 / samples. Only a global_gradient makes one.
template <class T>
class sample_mean {
  T scale_;
  constexpr explicit sample_mean(T scale) : scale_(scale) {}
  template <class, class>
  friend class global_gradient;
  friend struct detail::after_reduction;

 public:
  template <class V>
  constexpr reduced_gradient<V> of(V sum) const {
    return reduced_gradient<V>(detail::product(sum, scale_));
  }
};

/// The gradient of the global batch: arrays whose sum, in the tree over leaves, times `mean()` is the mean over all samples. An
/// update takes only this type. Only a gradient_reduction makes one. The reduction owns the arrays; an update may overwrite the
/// first.
template <class T, class Device>
class global_gradient {
  T* const* arrays_;
  int count_;
  sample_mean<T> mean_;
  constexpr global_gradient(T* const* arrays, int count, T scale) : arrays_(arrays), count_(count), mean_(scale) {}
  friend class gradient_reduction;

 public:
  constexpr T* const* arrays() const { return arrays_; }
  constexpr int count() const { return count_; }
  constexpr sample_mean<T> mean() const { return mean_; }
  /// The same gradient from copies of the arrays.
  constexpr global_gradient at(T* const* copies) const { return {copies, count_, mean_.scale_}; }
  /// The same gradient after the mean has been stored in the first array.
  constexpr global_gradient in_first_array() const { return {arrays_, 1, T(1)}; }
};

// The diagnostic for an update with leaf_gradients. Never defined.
template <class Given, class Wanted>
struct reduction_is_missing_between;

/// Base of reductions. A derived class guarantees that its result contains the gradients of all processes.
class gradient_reduction {
 protected:
  /// The arrays hold sums over all samples of the global batch.
  template <class Device, class T>
  static constexpr global_gradient<T, Device> reduced(T* const* arrays, int count, long samples) {
    return {arrays, count, T(1) / T(samples)};
  }
};

/// The reduction of a process that computes all leaves alone.
struct whole_batch_reduction : gradient_reduction {
  /// Throws strata_error if other processes have computed some of the leaves.
  template <class T, class Device>
  static constexpr global_gradient<T, Device> reduce(const leaf_gradients<T, Device>& leaves, long samples) {
    if (!leaves.is_whole_batch()) throw_error("the gradients of some leaves of the batch are missing");
    return reduced<Device>(leaves.arrays, leaves.count, samples);
  }
};
}  // namespace core

}  // namespace strata
