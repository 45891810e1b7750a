// Which GPUs a strategy uses.
// needs: boost_context
#pragma once
#include <algorithm>
#include <strata/base/error.hpp>
#include <strata/base/text.hpp>
#include <strata/cuda/machine/device.hpp>
#include <strata/distribute/mirrored.hpp>
#include <strata/distribute/one_device.hpp>
#include <strata/program/engine_for.hpp>
#include <utility>
#include <vector>

namespace strata {

/// One GPU of this machine: `one_device{gpu(0)}`.
struct gpu {
  int index;
  constexpr explicit gpu(int i = 0) : index(i) {}
};

/// The devices of an engine, and into how many leaves it cuts a batch (0: as the size of the batch says).
struct cuda_options {
  std::vector<int> devices{0};
  int leaves = 0;

  cuda_options() = default;
  cuda_options(gpu one) : devices{one.index} {}
};

/// GPUs of this machine: `mirrored{gpus()}` uses all of them, `gpus(2)` the first two, `gpus({0, 3})` these.
class gpus {
  std::vector<int> indices_;

 public:
  using backend = cuda;
  /// Throws strata::error when the strategy is used and this machine has no GPU.
  gpus() = default;
  /// Throws strata::error if `count` is below 1.
  explicit gpus(int count) {
    if (count < 1) throw_error({"gpus(", count, "): at least one device is needed"});
    for (int i = 0; i < count; ++i) indices_.push_back(i);
  }
  /// Throws strata::error if there is no index, or one twice.
  explicit gpus(std::vector<int> indices) : indices_(std::move(indices)) {
    if (indices_.empty()) throw_error("gpus({}): at least one device is needed");
    for (std::size_t i = 0; i < indices_.size(); ++i)
      for (std::size_t j = 0; j < i; ++j)
        if (indices_[i] == indices_[j]) throw_error({"gpus: device ", indices_[i], " is named twice"});
  }

  cuda_options with(cuda_options options) const {
    options.devices = indices_;
    if (indices_.empty())
      for (int i = 0; i < std::max(machine::device_count(), 1); ++i) options.devices.push_back(i);
    return options;
  }
};

template <>
struct engine_options<cuda> {
  using type = cuda_options;
};
template <>
struct device_list<cuda> {
  using type = gpus;
};

one_device(gpu) -> one_device<cuda>;
one_device(cuda_options) -> one_device<cuda>;

}  // namespace strata
