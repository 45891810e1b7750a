// What engines of all devices have in common: which leaves of a batch they compute, and the samples and the gradient of each.
#pragma once
#include <algorithm>
#include <strata/base/grown_array.hpp>
#include <strata/concepts/batch_source.hpp>
#include <strata/network/leaves.hpp>
#include <strata/optimizers/gradient.hpp>
#include <strata/program/plan.hpp>

namespace strata::core {

/// The leaves of the current step, and of the largest batches that an engine has memory for. T: the program's value_type.
template <class T>
class leaf_schedule {
  leaf_policy policy_;
  const end_sizes* ends_;
  batch_division most_;                // of all batches that there is room to train with
  int prepared_for_[2] = {};           // the largest batch of each purpose
  detail::grown_array<T*> gradients_;  // of the leaves that this process computes

  // Of the current step. The addresses of its samples are those of the device.
  samples<T> batch_;
  batch_division now_;
  leaf_range own_;

 public:
  /// ends: a constant of the program, of which the address is kept.
  leaf_schedule(leaf_policy policy, const end_sizes& ends) : policy_(policy), ends_(&ends) {}

  /// For prepare(): the most leaves, and the largest leaf, of any batch of up to `batch` samples. Empty if memory for such
  /// batches is there already.
  batch_division grow(int batch, purpose why) {
    if (batch <= prepared_for_[int(why)]) return {};
    prepared_for_[int(why)] = batch;
    const batch_division most = policy_.most(batch);
    if (why == purpose::training) most_ = most;
    return most;
  }
  /// Called if the memory after grow() could not be allocated: the next grow() returns sizes again.
  void forget() { prepared_for_[0] = prepared_for_[1] = 0; }
  /// The size of the largest batch that grow() has been called for.
  int prepared_for(purpose why) const { return prepared_for_[int(why)]; }
  /// The most leaves of a training batch that one of `processes` computes, and the most samples of one.
  batch_division most_of_one(int processes) const { return {(most_.leaves + processes - 1) / processes, most_.capacity}; }
  /// The addresses of gradients, which the engine sets: element i is for leaf own().begin + i. There may be more than own() has.
  detail::grown_array<T*>& gradient_places() { return gradients_; }

  void begin(const samples<T>& batch, int rank, int processes) {
    batch_ = batch;
    now_ = policy_(batch.count);
    own_ = share_of(now_.leaves, rank, processes);
  }

  const samples<T>& batch() const { return batch_; }
  int leaves() const { return now_.leaves; }
  /// The number of leaves that have samples. They are the first ones: a batch of one sample occupies one leaf, so one thread.
  int occupied() const { return (batch_.count + now_.capacity - 1) / now_.capacity; }
  leaf_range own() const { return own_; }

  /// The index in the batch of the first sample of a leaf.
  long first_of(int leaf) const { return long(leaf) * now_.capacity; }
  /// The samples of a leaf: those of the batch, or of a copy of it.
  samples<T> rows_of(int leaf) const { return rows_of(leaf, batch_); }
  samples<T> rows_of(int leaf, const samples<T>& copy) const { return copy.rows(leaf * now_.capacity, now_.capacity, *ends_); }
  /// Calls f(samples, index of the first one in the batch) for each micro-batch of up to `most` samples of a leaf.
  template <class F>
  void in_micro_batches(int leaf, int most, F&& f) const {
    const samples<T> mine = rows_of(leaf);
    for (int at = 0; at < mine.count; at += most) f(mine.rows(at, most, *ends_), first_of(leaf) + at);
  }
  /// Null: another process computes this leaf, or nothing has been prepared for training.
  T* gradient_of(int leaf) const {
    const int i = leaf - own_.begin;
    return i >= 0 && i < std::min(own_.size(), int(gradients_.size())) ? gradients_[std::size_t(i)] : nullptr;
  }
  template <class Device>
  leaf_gradients<T, Device> gradients() const {
    return {gradients_.data(), own_.size(), own_.begin, own_.end, now_.leaves};
  }
};

}  // namespace strata::core
