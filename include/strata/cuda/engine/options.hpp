// Which GPUs a strategy uses.
#pragma once
#include <algorithm>
#include <concepts>
#include <cstdlib>
#include <initializer_list>
#include <strata/base/error.hpp>
#include <strata/base/text.hpp>
#include <strata/cuda/machine/device.hpp>
#include <strata/distribute/mirrored.hpp>
#include <strata/distribute/one_device.hpp>
#include <strata/network/leaves.hpp>
#include <strata/program/engine_for.hpp>
#include <string>
#include <utility>
#include <vector>

namespace strata {

/// Options of strategies on GPUs: `one_device{gpu(0), {.leaves = 2}}`, `mirrored{gpus(), {.graphs = false}}`. The bits are
/// the same without graphs and with any kept_data_memory.
struct cuda_options {
  std::vector<int> devices{0};  // strategies that are given GPUs set them
  int leaves = 0;               // of a batch; 0: depends on its size
  bool sums_by_nccl = false;    // what `fastest` sets
  bool graphs = true;           // whether a step is launched as a graph
  /// fit copies a data set to each device if the copies take up at most this part, 0 to 1, of the memory that is free then; 0:
  /// never. The memory of the data set must not change during that fit.
  double kept_data_memory = 0.5;

  /// Throws strata_error if kept_data_memory is not in [0, 1].
  void check() const {
    if (!(kept_data_memory >= 0 && kept_data_memory <= 1))  // nor nan
      throw_error({"cuda_options::kept_data_memory is ", kept_data_memory, ": it is a fraction of the free memory, from 0 to 1"});
  }
  std::string what_workers_agree_on() const { return sums_by_nccl ? ", on GPUs, added by NCCL" : ", on GPUs"; }
};

/// One GPU of this machine: `one_device{gpu(0)}`.
struct gpu {
  using backend = core::cuda;
  int index;
  constexpr explicit gpu(int i = 0) : index(i) {}
  cuda_options with(cuda_options options) const {
    options.devices = {index};
    return options;
  }
  operator cuda_options() const { return with({}); }
};

/// Adds gradients of several GPUs leaf by leaf in the tree in which one device adds them, so that the bits do not depend on the
/// number of GPUs and processes. They are copied from GPU to GPU, and through host memory between processes.
struct deterministic {
  operator cuda_options() const { return {}; }
};
/// Adds gradients of several GPUs by NCCL, while others are still being computed. Two trainings on the same number of GPUs of the
/// same machines give about the same values, but not the bits of one device.
struct fastest {
  operator cuda_options() const { return {.sums_by_nccl = true}; }
};

/// GPUs of this machine: `mirrored{gpus()}` uses all of them, `gpus(2)` the first two, `gpus({0, 3})` these. Braces list GPUs,
/// parentheses count them: `gpus({2})` is the third one.
class gpus {
  std::vector<int> indices_;
  bool are_counted_ = false;

 public:
  using backend = core::cuda;
  /// Throws strata_error when the strategy is used and this machine has no GPU.
  gpus() = default;
  /// Throws strata_error if `count` is below 1 or above 1024.
  explicit gpus(int count) : are_counted_(true) {
    if (count < 1) throw_error({"gpus(", count, "): at least one device is needed"});
    if (count > 1024) throw_error({"gpus(", count, "): a machine has at most 1024"});
    for (int i = 0; i < count; ++i) indices_.push_back(i);
  }
  /// Throws strata_error if there is no index, or one twice.
  explicit gpus(std::initializer_list<int> indices) : gpus(std::vector<int>(indices)) {}
  explicit gpus(std::vector<int> indices) : indices_(std::move(indices)) {
    if (indices_.empty()) throw_error("gpus({}): at least one device is needed");
    for (std::size_t i = 0; i < indices_.size(); ++i)
      for (std::size_t j = 0; j < i; ++j)
        if (indices_[i] == indices_[j]) throw_error({"gpus: device ", indices_[i], " is listed twice"});
  }

  /// The GPUs of one of several workers. If none are named, the workers of a machine divide its GPUs among themselves; but if
  /// CUDA_VISIBLE_DEVICES is set, each worker takes all that it names.
  template <class Cluster>
  gpus of_worker(const Cluster& members) const {
    const int neighbours = members.local_size().value_or(1), count = machine::device_count();
    if (!indices_.empty() || count == 0 || neighbours <= 1 || std::getenv("CUDA_VISIBLE_DEVICES")) return *this;
    const int own = members.local_rank().value_or(0);
    if (count < neighbours) return gpus{own % count};
    const core::leaf_range share = core::share_of(count, own, neighbours);
    gpus mine;
    for (int i = share.begin; i < share.end; ++i) mine.indices_.push_back(i);
    return mine;
  }
  /// One GPU for each of `places`, such as those of a pipeline. Throws strata_error if another number of them is named,
  /// or if none are named and this machine has fewer.
  cuda_options one_for_each_of(int places, cuda_options options) const {
    const int count = machine::device_count();
    if (indices_.empty() && count > 0 && count < places)
      throw_error({places, " places need as many GPUs, but this machine has ", count});
    if (!indices_.empty() && int(indices_.size()) != places)
      throw_error(
          {places, " places need as many GPUs, but ", int(indices_.size()), indices_.size() == 1 ? " is" : " are", " named"});
    options.devices = indices_;
    for (int i = 0; indices_.empty() && i < places; ++i) options.devices.push_back(i);
    return options;
  }
  /// Throws strata_error if a number of GPUs was given and this machine has some, but fewer.
  cuda_options with(cuda_options options) const {
    const int count = machine::device_count();
    if (are_counted_ && count > 0 && int(indices_.size()) > count)
      throw_error({"gpus(", int(indices_.size()), "): this machine has ", count});
    options.devices = indices_;
    if (indices_.empty())
      for (int i = 0; i < std::max(count, 1); ++i) options.devices.push_back(i);
    return options;
  }
};

namespace core {
template <>
struct engine_options<cuda> {
  using type = cuda_options;
};
template <>
struct device_list<cuda> {
  using type = gpus;
};
template <>
struct single_device<cuda> {
  using type = gpu;
};
}  // namespace core

one_device(gpu) -> one_device<core::cuda>;
one_device(gpu, cuda_options) -> one_device<core::cuda>;
template <std::same_as<cuda_options> Options>  // so that braces alone are compute_options
one_device(Options) -> one_device<core::cuda>;

}  // namespace strata
