// How one process computes.
#pragma once

namespace strata {

/// threads: 0 for all cores. leaves: into how many a batch is cut, 0 for default_leaves; 1 to max_leaves, powers of two are
/// fastest. micro_batch: the samples that go through the network together, 0 for as many as fit into the second-level cache;
/// never more than a leaf has, or than the budget of fits_in allows.
struct compute_options {
  int threads = 0;
  int leaves = 0;
  int micro_batch = 0;

  bool operator==(const compute_options&) const = default;
};

}  // namespace strata
