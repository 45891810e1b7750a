// The inputs of a training step that are the same for all leaves.
#pragma once
#include <memory>
#include <strata/base/random.hpp>
#include <strata/concepts/device.hpp>
#include <strata/kernel/kernel.hpp>
#include <strata/kernel/kernel_observer.hpp>
#include <strata/program/trained_groups.hpp>

namespace strata::core {

/// Addresses are those of the device.
template <class T, class Device>
struct step_context {
  const T* weights = nullptr;
  const T* derived = nullptr;
  double* statistics = nullptr;  // of the whole batch, reduced
  double total = 0;              // samples in the global batch
  philox random{};
  [[no_unique_address]] typename Device::queue queue{};
  kernel_observer* observer = nullptr;                    // of training
  const Device* on = nullptr;                             // set with an observer, unless the device is the host
  const number_reader* reader = nullptr;                  // for the observer
  leaves_of_call leaves{};                                // of each pass
  const philox* random_of_group = nullptr;                // in memory of a device whose kernels read it there
  const trained_group* trained = nullptr;                 // which groups train while layers are frozen; null: those of the plan
  const std::shared_ptr<const void>* prepared = nullptr;  // of each group, what pass::prepare made; null: no kernel prepares
  rank_exchange<T>* ranks = nullptr;                      // that divide layers
  /// Of a training step whose batch is not there yet: the forward of the first group, which makes it of `stored_batch`.
  void (*forward_from_stored)(const typename Device::queue&, const operands<T>&, const void* stored_batch) = nullptr;
  const void* stored_batch = nullptr;
  const T* const* segments = nullptr;  // instead of `weights`, for the trained parameters of each segment of a plan that is cut
  /// Of an input_gradient_program: the rows of each wanted input, for all samples of the batch.
  T* const* input_gradients = nullptr;
};

}  // namespace strata::core
