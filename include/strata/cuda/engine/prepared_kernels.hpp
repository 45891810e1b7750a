// The results of preparing the kernels of a pass, by the number of samples and leaves that the pass computes.
#pragma once
#include <algorithm>
#include <memory>
#include <strata/program/plan.hpp>
#include <utility>
#include <vector>

namespace strata::core {

/// Kernels prepare before the first pass of a size; what they choose then holds for all that follow.
class prepared_kernels {
 public:
  struct pass_size {
    purpose why;
    int samples, leaves, capacity;
    bool operator==(const pass_size&) const = default;
  };
  using groups = std::vector<std::shared_ptr<const void>>;  // one of each group

  /// The results for each group, as in step_context; null if no pass of this size has been prepared.
  const std::shared_ptr<const void>* find(const pass_size& size) const {
    const auto found = std::ranges::find(all_, size, &entry::size);
    return found == all_.end() ? nullptr : found->made.data();
  }
  void add(const pass_size& size, groups made) { all_.push_back({size, std::move(made)}); }
  void clear() { all_.clear(); }

 private:
  struct entry {
    pass_size size;
    groups made;  // their addresses do not change
  };
  std::vector<entry> all_;
};

}  // namespace strata::core
