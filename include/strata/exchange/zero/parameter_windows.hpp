// The parameters that a process fetches for a segment of the network, where it keeps only its slices of them: zero<3>.
#pragma once
#include <algorithm>
#include <cstddef>
#include <span>
#include <strata/base/arena.hpp>
#include <strata/concepts/communicator.hpp>
#include <strata/exchange/zero/process_slices.hpp>
#include <strata/network/parameter_ranges.hpp>
#include <utility>
#include <vector>

namespace strata::core {

/// The trained parameters of a process that keeps only its slices of them. Those of a segment come into one of two windows: while
/// one segment is computed, the next one can be fetched. fetch and wait allocate nothing.
template <class T, communicator C>
class parameter_windows {
  arena<T> own_;
  typename C::memory windows_{};
  long window_ = 0;
  std::vector<long> begins_;  // of the segments, in the arena
  std::vector<const T*> segments_;
  std::vector<decltype(std::declval<const C&>().begun())> marks_;
  bool all_have_told_ = true;  // the segment that was fetched last had a message from every process

 public:
  /// The elements that prepare() allocates.
  static constexpr long elements(long own, long window) { return own + 2 * window; }
  /// begins: where each segment begins. window: elements of the largest one.
  void prepare(C& c, std::span<const arena_slice> own, std::span<const long> begins, long window) {
    if (!segments_.empty()) return;
    window_ = window;
    begins_.assign(begins.begin(), begins.end());
    own_ = arena<T>(std::size_t(elements_of(own)));
    windows_ = c.allocate(std::size_t(2 * window) * sizeof(T));
    marks_.resize(begins.size());
    for (std::size_t k = 0; k < begins.size(); ++k) segments_.push_back(of_windows() + place(k));
  }

  T* own() { return own_.data(); }
  /// For each segment, the address at which the (virtual) arena begins.
  const T* const* segments() const { return segments_.data(); }

  /// Begins to fetch a segment, in place of the one two before or after it. All processes call it between the same messages.
  void fetch(C& c, const process_slices<T, C>& slices, int segment) {
    const auto part = [&](int rank) {  // buckets come in the order of the backward
      const std::vector<arena_slice>& its = slices.of_all()[std::size_t(rank)];
      return its[its.size() - 1 - std::size_t(segment)];
    };
    const auto bytes = [](long elements) { return std::size_t(elements) * sizeof(T); };
    const long to = place(std::size_t(segment));
    const arena_slice mine = part(c.rank());
    // A process sends its part of a segment when it has received that of the one before. So a process from which a part has
    // arrived has read the old contents of the window.
    if (!all_have_told_) c.wait("parameters");
    all_have_told_ = true;
    std::copy_n(own() + mine.at, mine.size(), of_windows() + to + mine.begin);
    for (int r = 0; r < c.size(); ++r) {
      if (r == c.rank()) continue;
      const arena_slice its = part(r);
      all_have_told_ = all_have_told_ && its.size() > 0;
      if (its.size() > 0) c.receive(windows_, bytes(to + its.begin), bytes(its.size()), r);
      if (mine.size() > 0) c.send(windows_, bytes(to + mine.begin), bytes(mine.size()), r);
    }
    marks_[std::size_t(segment)] = c.begun();
  }
  void wait(C& c, int segment) { c.wait_received("parameters", marks_[std::size_t(segment)]); }

 private:
  T* of_windows() { return numbers_in<T>(windows_); }
  /// The offset in the windows at which the (virtual) arena begins.
  long place(std::size_t segment) const { return long(segment % 2) * window_ - begins_[segment]; }
};

}  // namespace strata::core
