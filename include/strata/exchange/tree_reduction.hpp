// The sum of the leaves of all processes, bit for bit as if one process had them all.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <strata/base/arena.hpp>
#include <strata/base/exceptions.hpp>
#include <strata/concepts/communicator.hpp>
#include <strata/exchange/gradient_bucket.hpp>
#include <strata/exchange/reduction_groups.hpp>
#include <strata/exchange/reduction_level.hpp>
#include <strata/exchange/rounded_gradients.hpp>
#include <strata/network/leaves.hpp>
#include <strata/network/parameter_ranges.hpp>
#include <strata/program/engine_for.hpp>
#include <strata/program/training_sizes.hpp>
#include <utility>
#include <vector>

namespace strata::core {

/// The options of a tree_reduction.
struct reduction_options {
  /// Messages are rounded to bfloat16.
  bool rounds = false;
  /// All processes get the whole sum. Otherwise a process gets only its own slices of it, one after the other in the order of the
  /// buckets.
  bool gathers = true;
  /// There is memory for two buckets at a time. Then the gradients of a bucket may only be read in `advance` and in `finish`,
  /// from an array of this bucket alone.
  bool in_windows = false;
};

/// Each process adds up the leaves of its subtrees, sends every other process the slice that this one shall finish, finishes its
/// own slice, and sends it to all: 2 (P - 1) / P of the elements leave each process, in two rounds (a reduce-scatter and an
/// all-gather, cf. Thakur et al., "Optimization of collective communication operations in MPICH", 2005), as long as the shares
/// are whole subtrees. Where machines have several processes each, slices are added up inside a machine first and then sent to
/// the process that has the same slice on each other machine: 2 (M - 1) / M of the elements leave a machine, not a process.
///
/// Gradients come in buckets. Each is sent while the gradients of the next ones are computed: the thread that completes a bucket
/// sends it and advances the buckets before it. The order of messages does not depend on threads. prepare allocates all memory, a
/// sum allocates nothing. After a communication_error only prepare may follow, also with another communicator: it starts afresh.
template <class T, communicator C, class Host = host_arithmetic<default_backend>>
class tree_reduction {
  using team_type = typename Host::team;
  using memory = typename C::memory;
  using range = element_range;
  using level = detail::reduction_level<T, C>;
  /// What threads share while they compute gradients.
  struct progress {
    std::vector<std::atomic<int>> missing;  // by bucket: leaves of this process whose gradients are not complete
    std::atomic<int> waiting{0};            // buckets that are complete and have not been sent
    explicit progress(std::size_t buckets) : missing(buckets) {}
  };

  reduction_options options_;  // a process that is alone rounds nothing
  detail::bucket_layout buckets_;
  std::vector<arena_slice> own_;  // by bucket: the slice that this process completes, and its place in the sum
  std::vector<level> levels_;
  std::vector<decltype(std::declval<const C&>().begun())> marks_;  // by bucket: what its next phase waits for
  memory sum_, rounded_sum_;
  arena<T> residue_;
  std::unique_ptr<progress> progress_;
  // Of the current sum.
  std::vector<const T*> leaves_at_{};  // those of this process
  int count_ = 0;                      // of leaves
  int step_ = 0;                       // phase p of bucket b comes at step p + b
  std::exception_ptr failed_;

 public:
  /// Adds what prepare() allocates in the process with the most, if all are on one machine, or each on its own, and nothing is
  /// rounded. elements: of a leaf; window: of the largest bucket, 0 if there are no windows; own: of the slices of a process.
  static constexpr void add_memory(process_memory& to, const sizes_of_process& how, long elements, long window, long own,
                                   bool gathers) {
    if (how.processes == 1) return;
    constexpr long bytes = long(sizeof(T));
    const detail::most_subtrees most(how.processes, -1, how.most.leaves,
                                     [&](int i, int n) { return share_of(n, i, how.processes); });
    const long received = most.others * (window > 0 ? 2 * largest_slice(window, how.processes) : own);
    to.messages += (most.own * (window > 0 ? 2 * window : elements) + received) * bytes;
    to.gradients += (gathers ? elements : own) * bytes;
    if (how.shares_memory) to.messages += (received + (gathers ? elements - own : 0)) * bytes;  // of others, where it reads them
  }

  /// For sums over `leaves` leaves, or over a smaller power of two of them. Buckets come in the order in which they are
  /// completed: the last elements first.
  void prepare(C& c, std::vector<gradient_bucket> buckets, int leaves, reduction_options options = {}) {
    options_ = options;
    options_.rounds = options.rounds && c.size() > 1;
    buckets_ = {std::move(buckets), options.in_windows};
    marks_.resize(std::size_t(this->buckets()));
    progress_ = std::make_unique<progress>(std::size_t(this->buckets()));
    levels_.clear();
    for (reduction_group& group : reduction_groups(c)) levels_.push_back({.group = std::move(group)});
    divide();
    for (level& l : levels_) l.allocate(c, buckets_, leaves, options_.rounds);
    sum_ = c.allocate(std::size_t(sum_size()) * sizeof(T));
    leaves_at_.reserve(std::size_t((leaves + c.size() - 1) / c.size()));
    if (!options_.rounds) return;
    rounded_sum_ = c.allocate(bytes(sum_size()));
    residue_ = arena<T>(std::size_t(buckets_.size()));
  }

  /// Begins a sum over `count` leaves. `own` are the gradients of each leaf of this process's share; they need not be complete
  /// yet.
  void begin(const C& c, const T* const* own, int count) {
    const int share = share_of(count, c.rank(), c.size()).size();
    leaves_at_.assign(own, own + share);
    count_ = count, step_ = 0, failed_ = nullptr;
    for (std::atomic<int>& m : progress_->missing) m.store(share, std::memory_order_relaxed);
  }
  /// Called by any thread when one more of this process's leaves has passed the backward of that group of the plan. The last
  /// bucket is left to `finish`, which uses all threads.
  void passed(C& c, int group) {
    for (int b = 0; b + 1 < buckets(); ++b)
      if (buckets_[b].group == group) complete(c, b);
  }
  /// Sends the buckets that all leaves have completed down to that group, except for the last one. Must not overlap with calls of
  /// `passed`. All processes call it between the same other messages.
  void advance(C& c, team_type& team, int group = 0) {
    if (failed_) std::rethrow_exception(failed_);
    while (step_ + 1 < buckets() && buckets_[step_].group >= group) step(c, &team);
  }
  /// The sum lives until the next one is begun.
  T* finish(C& c, team_type& team) {
    advance(c, team);
    while (step_ < buckets() + phases() - 1) step(c, &team);
    for (int b = 0; b < buckets(); ++b) c.wait_received(name(b), marks_[std::size_t(b)]);
    c.wait("gradients");
    T* const sum = numbers(sum_);
    if (options_.rounds)
      in_slices(&team, {0, sum_size()},
                [&](long begin, long end) { expand_rounded(halves(rounded_sum_) + begin, sum + begin, end - begin); });
    return sum;
  }

  /// Resets the error feedback: rounding errors of earlier sums are not added to later ones.
  void drop_rounding_errors() {
    for (level& l : levels_) std::ranges::fill(l.residue.span(), T{});
    std::ranges::fill(residue_.span(), T{});
  }

 private:
  int buckets() const { return buckets_.count(); }
  int phases() const { return options_.gathers ? 2 * int(levels_.size()) : int(levels_.size()) + 1; }
  long sum_size() const { return options_.gathers || own_.empty() ? buckets_.size() : own_.back().at + own_.back().size(); }
  const char* name(int bucket) const { return buckets_[bucket].name; }
  std::size_t bytes(long numbers) const { return std::size_t(numbers) * (options_.rounds ? sizeof(std::uint16_t) : sizeof(T)); }
  static T* numbers(memory& m) { return numbers_in<T>(m); }
  static std::uint16_t* halves(memory& m) { return numbers_in<std::uint16_t>(m); }
  detail::subtrees parts(const level& l, int i, int processes) const {
    return detail::subtrees(l.group.leaves_of(i, count_, processes));
  }

  void divide() {
    std::vector<range> has;
    for (int b = 0; b < buckets(); ++b) has.push_back({buckets_[b].begin, buckets_[b].end});
    for (level& l : levels_) l.divide(buckets_, has);
    own_.clear();
    for (long at = 0; const range& r : has) {
      own_.push_back({r.begin, r.end, options_.gathers ? r.begin : at});
      at += r.size();
    }
  }

  /// Threads do not wait for each other here: if another thread is sending, that one also sends this bucket.
  void complete(C& c, int bucket) {
    if (progress_->missing[std::size_t(bucket)].fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    if (progress_->waiting.fetch_add(1, std::memory_order_acq_rel) != 0) return;
    do {
      if (failed_) continue;
      STRATA_TRY { step(c, nullptr); }
      STRATA_CATCH_ALL {
        failed_ = std::current_exception();  // tasks of a team must not throw
      }
    } while (progress_->waiting.fetch_sub(1, std::memory_order_acq_rel) != 1);
  }

  /// The next phase of each bucket that has begun, and the first one of the next bucket.
  void step(C& c, team_type* team) {
    if (buckets_.in_windows()) c.wait("gradients");  // what is sent from the memory that this step writes has arrived
    for (int p = 0; p < phases(); ++p)
      if (const int b = step_ - p; b >= 0 && b < buckets()) phase(c, team, p, b);
    ++step_;
  }
  /// The first phases of a bucket scatter it, level by level; the others gather it.
  void phase(C& c, team_type* team, int p, int b) {
    const int depth = int(levels_.size());
    if (p == 0)
      add_own_leaves(c, team, b);
    else
      c.wait_received(name(b), marks_[std::size_t(b)]);
    if (p > 0 && p <= depth) add_theirs(c, team, p - 1, b);
    if (p < depth)
      scatter(c, team, levels_[std::size_t(p)], b);
    else if (options_.gathers)
      gather(c, levels_[std::size_t(2 * depth - 1 - p)], b);
    marks_[std::size_t(b)] = c.begun();
  }

  void add_own_leaves(C& c, team_type* team, int b) {
    level& l = levels_.front();
    const detail::subtrees own = parts(l, l.group.own, c.size());
    in_slices(team, l.has[std::size_t(b)], [&](long begin, long end) {
      for (int k = 0; k < own.count(); ++k)
        Host::sum_leaves(numbers(l.sums) + buckets_.index(k, b, begin) - buckets_.index_in_leaf(b, begin),
                         leaves_at_.data() + (own[k].begin - own[0].begin), own[k].size(), buckets_.index_in_leaf(b, begin),
                         buckets_.index_in_leaf(b, end));
    });
  }

  /// Sends each of the group its slice.
  void scatter(C& c, team_type* team, level& l, int b) {
    const detail::subtrees own = parts(l, l.group.own, c.size());
    const range mine = l.own_slice(b);
    if (options_.rounds)
      in_slices(team, l.has[std::size_t(b)], [&](long begin, long end) {
        const auto round = [&](long from, long to) {
          for (int k = 0; k < own.count() && from < to; ++k)
            round_with_residue(numbers(l.sums) + buckets_.index(k, b, from), l.residue.data() + from,
                               halves(l.rounded) + buckets_.index(k, b, from), to - from);
        };
        round(begin, std::min(end, mine.begin));
        round(std::max(begin, mine.end), end);
      });
    memory& sent = options_.rounds ? l.rounded : l.sums;
    long row = 0;
    for (int i = 0; i < l.group.size(); ++i) {
      if (i == l.group.own) continue;
      const int rank = l.group.members[std::size_t(i)].rank;
      for (int k = parts(l, i, c.size()).count(); k > 0; --k, ++row)
        if (mine.size() > 0) c.receive(l.theirs, bytes(row * l.row + l.at[std::size_t(b)]), bytes(mine.size()), rank);
      const range its = l.slice(b, i);
      for (int k = 0; k < own.count() && its.size() > 0; ++k)
        c.send(sent, bytes(buckets_.index(k, b, its.begin)), bytes(its.size()), rank);
    }
  }

  /// Adds the sums that the members of the group have of this process's slice, as far up the tree as their leaves reach.
  void add_theirs(C& c, team_type* team, int depth, int b) {
    level& l = levels_[std::size_t(depth)];
    const bool last = depth + 1 == int(levels_.size());
    const range mine = l.own_slice(b);
    std::vector<T*>& sums = l.subtree_sums;
    std::vector<leaf_range>& nodes = l.nodes;
    int n = 0;
    long row = 0;
    for (int i = 0; i < l.group.size(); ++i) {
      const detail::subtrees its = parts(l, i, c.size());
      for (int k = 0; k < its.count(); ++k, ++n) {
        nodes[std::size_t(n)] = its[k];
        T* const theirs = (options_.rounds ? l.expanded.data() : numbers(l.theirs)) + row * l.row + l.at[std::size_t(b)];
        sums[std::size_t(n)] = i == l.group.own ? numbers(l.sums) + buckets_.index(k, b, mine.begin) : theirs;
        row += i != l.group.own;
      }
    }
    const int last_member = l.group.size() - 1;
    const detail::subtrees of_all(
        {l.group.leaves_of(0, count_, c.size()).begin, l.group.leaves_of(last_member, count_, c.size()).end});
    const int results = last ? 1 : of_all.count();
    in_slices(team, {0, mine.size()}, [&](long begin, long end) {
      if (options_.rounds)
        for (long k = 0; k < row; ++k) {
          const long at = k * l.row + l.at[std::size_t(b)] + begin;
          expand_rounded(halves(l.theirs) + at, l.expanded.data() + at, end - begin);
        }
      for (int k = 0, first = 0; k < results; ++k) {
        int end_of_result = last ? n : first;
        while (end_of_result < n && nodes[std::size_t(end_of_result)].end <= of_all[k].end) ++end_of_result;
        add_in_tree([&](int i) { return nodes[std::size_t(first + i)]; }, end_of_result - first,
                    [&](int to, int from) {
                      const T* const two[2] = {sums[std::size_t(first + to)], sums[std::size_t(first + from)]};
                      Host::sum_leaves(sums[std::size_t(first + to)], two, 2, begin, end);
                    });
        const T* const result = sums[std::size_t(first)] + begin;
        const long element = mine.begin + begin;
        if (!last)
          std::copy_n(result, end - begin, numbers(levels_[std::size_t(depth + 1)].sums) + buckets_.index(k, b, element));
        else if (options_.rounds)
          round_with_residue(result, residue_.data() + element, halves(rounded_sum_) + own_[std::size_t(b)].at + begin,
                             end - begin);
        else
          std::copy_n(result, end - begin, numbers(sum_) + own_[std::size_t(b)].at + begin);
        first = end_of_result;
      }
    });
  }

  /// Sends the sum of this process's slice to all members of the group.
  void gather(C& c, level& l, int b) {
    memory& sum = options_.rounds ? rounded_sum_ : sum_;
    const range mine = l.own_slice(b);
    for (int i = 0; i < l.group.size(); ++i) {
      if (i == l.group.own) continue;
      const int rank = l.group.members[std::size_t(i)].rank;
      const range its = l.slice(b, i);
      if (its.size() > 0) c.receive(sum, bytes(its.begin), bytes(its.size()), rank);
      if (mine.size() > 0) c.send(sum, bytes(mine.begin), bytes(mine.size()), rank);
    }
  }

  /// If team is null, the calling thread computes everything.
  template <class F>
  static void in_slices(team_type* team, range all, F&& f) {
    if (!team) return all.size() > 0 ? f(all.begin, all.end) : void();
    for_slices(*team, all, [&](long first, long last) {
      if (first < last) f(first, last);
    });
  }
};

}  // namespace strata::core
