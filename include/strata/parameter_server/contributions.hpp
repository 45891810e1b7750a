// The gradients that workers push for a shard: one, or those of all workers of a synchronous step.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <strata/base/all_finite.hpp>
#include <strata/base/arena.hpp>
#include <strata/concepts/device.hpp>
#include <strata/network/leaves.hpp>
#include <strata/optimizers/gradient.hpp>
#include <strata/parameter_server/parameter_rows.hpp>
#include <utility>
#include <vector>

namespace strata {

namespace core {
/// A push names a gradient: (worker, incarnation, step) is applied once to a shard, however often it arrives.
struct push_request {
  int worker = 0;
  std::uint64_t incarnation = 0;
  std::int64_t step = 0;
  double learning_rate = 0;
  int samples = 0;                    // of the batch; of the global one in a synchronous step
  int leaves = 1;                     // of the global batch of a synchronous step
  std::vector<std::uint32_t> rows{};  // of tables, that the gradient has; in ascending order, each once
  std::vector<double> metric_sums{};  // of the worker's leaves; with the first shard of a synchronous step
};
}  // namespace core

namespace detail {

/// Reads a gradient of the rest of a shard and of some pieces of its tables; `to` is the whole shard. Returns whether it is
/// finite.
template <class T>
bool read_gradient(auto& read, const shard_contents& contents, std::span<const element_run> pieces, T* to) {
  constexpr long block = 1 << 13;  // elements that are looked at while they are in the cache
  bool is_finite = true;
  for (const auto runs : {contents.rest(), pieces})
    for (const element_run& r : runs)
      for (long begin = r.begin; begin < r.end; begin += block) {
        const auto count = std::size_t(std::min(block, r.end - begin));
        read(to + begin, count * sizeof(T));
        is_finite = all_finite(to + begin, count) && is_finite;
      }
  return is_finite;
}
template <class T>
std::size_t gradient_bytes(const shard_contents& contents, std::span<const element_run> pieces) {
  return std::size_t(count_elements(contents.rest()) + count_elements(pieces)) * sizeof(T);
}
template <class T>
void clear_pieces(T* gradient, std::span<const element_run> pieces) {
  for (const element_run& piece : pieces) std::fill(gradient + piece.begin, gradient + piece.end, T{});
}

/// The gradient of an asynchronous step is what one worker pushes. Not thread-safe.
template <class T>
class single_contribution : gradient_reduction {
 public:
  /// The gradient of a shard of `size` elements; zero in the rows of tables outside of the pieces.
  global_gradient<T, host_device> receive(const push_request& p, long size, const shard_contents& contents,
                                          std::span<const element_run> pieces, auto& read) {
    gradient_.grow(std::size_t(size));
    is_finite_ = read_gradient<T>(read, contents, pieces, gradient_.data());
    sum_[0] = gradient_.data();
    return reduced<host_device>(sum_, 1, p.samples);
  }
  /// True if the last gradient that was received is finite.
  bool is_finite() const { return is_finite_; }
  /// Clears the gradient after it was applied or refused, with the same pieces.
  void clear(std::span<const element_run> pieces) { clear_pieces(gradient_.data(), pieces); }

 private:
  arena<T> gradient_{};
  T* sum_[1] = {};
  bool is_finite_ = true;
};

/// Each worker has computed its share of the leaves. The gradients are added in the tree in which one process adds them, so the
/// order of arrival does not matter. Not thread-safe.
template <class T, class Host>
class contributions : gradient_reduction {
 public:
  /// `size`: elements of the shard. `sums_per_leaf`: metric sums of each leaf that come with this shard.
  contributions(std::size_t workers, long size, std::size_t sums_per_leaf)
      : workers_(workers), size_(size), sums_per_leaf_(sums_per_leaf) {}

  bool has(std::size_t worker) const { return workers_[worker].is_here; }
  bool are_complete() const {
    return std::ranges::all_of(workers_, [](const contribution& c) { return c.is_here; });
  }

  /// The right size of a push, in bytes of elements and in metric sums.
  std::size_t bytes_of(const push_request& p, const shard_contents& contents, std::span<const element_run> pieces) const {
    return std::size_t(subtrees(share(p, p.worker)).count()) * gradient_bytes<T>(contents, pieces);
  }
  std::size_t metric_sums_of(const push_request& p) const { return std::size_t(share(p, p.worker).size()) * sums_per_leaf_; }
  /// The worker that has pushed for another batch than this one; -1: none.
  int disagrees(const push_request& p) const {
    for (std::size_t r = 0; r < workers_.size(); ++r)
      if (workers_[r].is_here && (samples_ != p.samples || leaves_ != p.leaves)) return int(r);
    return -1;
  }
  int samples() const { return samples_; }
  int leaves() const { return leaves_; }

  /// Adds a push of the right size, of a worker with none yet. Returns false, and drops the push, if it has nan or infinity.
  bool add(push_request p, const shard_contents& contents, std::vector<element_run> pieces, auto& read) {
    contribution& mine = workers_[std::size_t(p.worker)];
    const int parts = subtrees(share(p, p.worker)).count();
    mine.sums.grow(std::size_t(parts) * std::size_t(size_));
    bool is_finite = true;
    for (int k = 0; k < parts; ++k)
      is_finite = read_gradient<T>(read, contents, pieces, mine.sums.data() + k * size_) && is_finite;
    if (!is_finite) {
      for (int k = 0; k < parts; ++k) clear_pieces(mine.sums.data() + k * size_, pieces);
      return false;
    }
    mine.pieces = std::move(pieces);
    mine.metric_sums = std::move(p.metric_sums);
    mine.is_here = true;
    samples_ = p.samples, leaves_ = p.leaves;
    if (p.worker == 0) learning_rate_ = p.learning_rate;
    return true;
  }

  /// Once complete: calls apply(global_gradient, slices, learning rate) and begins the next step. The gradient is zero outside
  /// of the slices. Returns the metric sums of all leaves.
  template <class Apply>
  std::vector<double> sum(const shard_contents& contents, Apply&& apply) {
    std::vector<T*> sums;
    std::vector<leaf_range> nodes;
    std::vector<element_run> named;  // by any worker
    std::vector<double> metric_sums;
    for (std::size_t r = 0; r < workers_.size(); ++r) {
      contribution& c = workers_[r];
      named.insert(named.end(), c.pieces.begin(), c.pieces.end());
      const subtrees parts(share_of(leaves_, int(r), int(workers_.size())));
      for (int k = 0; k < parts.count(); ++k) nodes.push_back(parts[k]), sums.push_back(c.sums.data() + k * size_);
      metric_sums.insert(metric_sums.end(), c.metric_sums.begin(), c.metric_sums.end());
      c.is_here = false;
    }
    const std::vector<element_run> slices = contents.slices_around(named);
    add_in_tree([&](int k) { return nodes[std::size_t(k)]; }, int(nodes.size()),
                [&](int a, int b) {
                  const T* const two[2] = {sums[std::size_t(a)], sums[std::size_t(b)]};
                  for (const element_run& some : slices) Host::sum_leaves(sums[std::size_t(a)], two, 2, some.begin, some.end);
                });
    apply(reduced<host_device>(sums.data(), 1, samples_), slices, learning_rate_);
    for (T* const node : sums) clear_pieces(node, named);
    return metric_sums;
  }

 private:
  struct contribution {
    bool is_here = false;
    std::vector<element_run> pieces{};  // of tables, that the sums have
    arena<T> sums{};                    // over subtrees of leaves; zero in the rows of tables that were not pushed
    std::vector<double> metric_sums{};
  };
  leaf_range share(const push_request& p, int worker) const { return share_of(p.leaves, worker, int(workers_.size())); }

  std::vector<contribution> workers_;
  long size_;
  std::size_t sums_per_leaf_;
  int samples_ = 0, leaves_ = 1;  // of the step under way
  double learning_rate_ = 0;      // that of the chief
};

}  // namespace detail
}  // namespace strata
