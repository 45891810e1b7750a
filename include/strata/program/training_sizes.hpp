// The sizes of a training on which its memory depends, and the memory of a process: each class of which an executor is made adds
// what its objects allocate.
#pragma once
#include <strata/network/leaves.hpp>

namespace strata {

/// What the memory of a process depends on besides the program and zero.
struct training_sizes {
  int batch = 0;  // samples, over all processes
  int processes = 1;
  int threads = 1;             // of each process
  int leaves = 0;              // compute_options::leaves
  int micro_batch = 0;         // compute_options::micro_batch
  int slots = 2;               // optimizer.slots(): 2 for adam
  bool shares_memory = false;  // processes of one machine read each other's messages in place, which counts for both
};

/// In bytes. Code, libraries, threads and what the allocator keeps come on top, 15 to 35 MB together, and the data set.
struct process_memory {
  long parameters = 0;        // with their layouts for kernels
  long slots = 0;             // of the optimizer
  long gradients = 0;         // of the leaves of this process, and its part of their sum
  long activations = 0;       // and their gradients, and scratch of kernels
  long messages = 0;          // gradients and parameters on the way
  long whole_parameters = 0;  // zero<3>, and places: before the first step, and between two epochs
  long whole_slots = 0;       // of the chief, if processes have slots of some parameters only: while it saves a snapshot

  /// During a step.
  constexpr long total() const { return parameters + slots + gradients + activations + messages; }
  /// At most.
  constexpr long peak() const { return total() + whole_parameters; }
  /// At most, of the chief of a training with backup_and_restore.
  constexpr long peak_with_snapshots() const { return peak() + whole_slots; }
};

namespace core {
/// The sizes of one process, for the functions add_memory. Here `processes` are those that divide a batch.
struct sizes_of_process : training_sizes {
  int place = 0;  // of the network's stages
  leaf_policy policy{};
  batch_division most = policy.most(batch);

  /// The most leaves that a process computes.
  constexpr int own_leaves() const { return (most.leaves + processes - 1) / processes; }
};
}  // namespace core

}  // namespace strata
