// A batch that is cut into micro-batches of whole leaves.
#pragma once
#include <algorithm>
#include <cstddef>
#include <strata/base/error.hpp>
#include <strata/network/leaves.hpp>
#include <strata/program/leaf_schedule.hpp>
#include <vector>

namespace strata::core {

struct micro_batch {
  int leaf, leaves;  // the first one, how many
  int first, count;  // samples
};

/// The micro-batches of the step at hand. If the last batch of an epoch has fewer leaves than there are micro-batches, each leaf
/// is one.
class cut_batch {
  leaf_policy policy_;
  int most_;
  std::vector<micro_batch> all_;

 public:
  /// most: the most micro-batches of a step.
  cut_batch(leaf_policy policy, int most) : policy_(policy), most_(most) {}

  int size() const { return int(all_.size()); }
  const micro_batch& operator[](int i) const { return all_[std::size_t(i)]; }

  /// Cuts the batch that `leaves` has now. Leaves without samples belong to the last one.
  template <class T>
  void cut(const leaf_schedule<T>& leaves) {
    all_.clear();
    const int occupied = leaves.occupied(), count = std::min(most_, occupied), samples = leaves.batch().count;
    const int capacity = int(leaves.first_of(1));
    for (int m = 0; m < count; ++m) {
      const leaf_range share = share_of(occupied, m, count);
      const int end = m + 1 == count ? leaves.leaves() : share.end, first = share.begin * capacity;
      all_.push_back({share.begin, end - share.begin, first, std::min(samples, share.end * capacity) - first});
    }
  }
  /// The most samples of a micro-batch, for batches of up to `batch`.
  int most_samples(int batch) const {
    int samples = 0;
    for (int count = 1; count <= batch; ++count) {
      const int capacity = policy_(count).capacity;
      samples = std::max(samples, std::min(count, most_leaves(leaves_for(count, capacity)) * capacity));
    }
    return samples;
  }
  /// Throws strata_error if a batch has fewer leaves than there are micro-batches. places: GPUs, for the advice.
  void refuse_few_leaves(int batch, int places) const {
    const int count = leaves_for(batch, policy_(batch).capacity);
    if (count >= most_) return;
    if (batch < most_)
      throw_error(
          {"a batch of ", batch, " samples cannot be cut into ", most_, " micro-batches: it needs at least ", most_, " samples"});
    int leaves = most_;  // a batch that they do not divide may fill fewer of them
    while (leaves_for(batch, (batch + leaves - 1) / leaves) < most_) ++leaves;
    throw_error({"a batch of ", batch, " samples has ", count, " leaves, which cannot be cut into ", most_,
                 " micro-batches: on GPUs each is one or several whole leaves. Write `gpu_pipeline<...>{gpus(", places,
                 "), {.leaves = ", leaves, "}}`"});
  }

 private:
  /// The number of leaves that `samples` samples occupy.
  static int leaves_for(int samples, int capacity) { return (samples + capacity - 1) / capacity; }
  /// The most leaves of a micro-batch.
  int most_leaves(int occupied) const {
    const int count = std::min(most_, occupied);
    return (occupied + count - 1) / count;
  }
};

}  // namespace strata::core
