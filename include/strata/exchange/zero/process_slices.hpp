// The exchanges between processes that keep slices of parameters or slots: those of zero, and those with some of the layers.
#pragma once
#include <algorithm>
#include <cstddef>
#include <span>
#include <strata/concepts/communicator.hpp>
#include <strata/exchange/gradient_bucket.hpp>
#include <strata/exchange/reduction_groups.hpp>
#include <strata/network/parameter_ranges.hpp>
#include <strata/program/training_sizes.hpp>
#include <utility>
#include <vector>

namespace strata::core {

/// The slices that process `rank` completes in a tree_reduction, bucket by bucket.
inline std::vector<arena_slice> slices_of_process(std::span<const gradient_bucket> buckets, int rank, int processes,
                                                  int per_machine) {
  std::vector<arena_slice> slices;
  for (const gradient_bucket& b : buckets) {
    const element_range inside = slice_of({b.begin, b.end}, rank % per_machine, per_machine);
    const element_range own = slice_of(inside, rank / per_machine, processes / per_machine);
    slices.push_back({own.begin, own.end, elements_of(slices)});
  }
  return slices;
}

/// Each process has the elements of its own slices and needs those of the others: of parameters, norms, slots. Memory for
/// messages is allocated once, and does not grow with the arena, apart from that for the norms.
template <class T, communicator C>
class process_slices {
  using memory = typename C::memory;
  static constexpr long elements_on_the_way = 1 << 20;

  std::vector<std::vector<arena_slice>> slices_;    // by rank
  std::vector<std::vector<element_range>> pieces_;  // likewise, of norms
  long most_ = 0;                                   // elements of one process in one message
  long pieces_of_all_ = 0;
  memory elements_{}, norms_{};

 public:
  process_slices() = default;
  /// takes_norms: whether share_norms will be called.
  process_slices(C& c, std::span<const gradient_bucket> buckets, std::span<const parameter_range> parameters, bool takes_norms)
      : process_slices(c, slices_of_all(c, buckets), parameters, takes_norms) {}
  /// slices: of each process.
  process_slices(C& c, std::vector<std::vector<arena_slice>> slices, std::span<const parameter_range> parameters,
                 bool takes_norms)
      : slices_(std::move(slices)) {
    std::size_t count = 0;
    for (const auto& of_rank : slices_) count = std::max(count, of_rank.size());
    long largest = 0;
    for (auto& of_rank : slices_) {
      of_rank.resize(count, {0, 0, elements_of(of_rank)});
      std::vector<element_range>& pieces = pieces_.emplace_back();
      for (const arena_slice& s : of_rank) {
        pieces.push_back(pieces_of(parameters, {s.begin, s.end}));
        pieces_of_all_ = std::max(pieces_of_all_, pieces.back().end);
        largest = std::max(largest, s.size());
      }
    }
    most_ = most_at_a_time(c.size(), largest);
    elements_ = c.allocate(std::size_t(most_ * c.size()) * sizeof(T));
    if (takes_norms) norms_ = c.allocate(std::size_t(2 * pieces_of_all_) * sizeof(double));
  }

  /// Adds what an object allocates for messages, without norms, for slices of up to `largest` elements.
  static constexpr void add_memory(process_memory& to, int processes, long largest) {
    to.messages += processes * most_at_a_time(processes, largest) * long(sizeof(T));
  }

  const std::vector<arena_slice>& own(const C& c) const { return slices_[std::size_t(c.rank())]; }
  const std::vector<std::vector<arena_slice>>& of_all() const { return slices_; }

  /// Completes an arena, of which this process has its slices; with `at_chief` only that of rank 0. own(slice) are the elements
  /// of one. The arena of a process that gets nothing may be null.
  template <class Own>
  void share(C& c, const char* what, T* arena, Own&& own, bool at_chief = false) {
    const auto gets = [&](int rank) { return !at_chief || rank == 0; };
    T* const sent = numbers_in<T>(elements_);
    for (std::size_t b = 0; b < slices_.front().size(); ++b)
      for (long done = 0; done < longest(b); done += most_) {
        const auto part = [&](int rank) {
          const arena_slice& s = slices_[std::size_t(rank)][b];
          return element_range{std::min(s.end, s.begin + done), std::min(s.end, s.begin + done + most_)};
        };
        const element_range mine = part(c.rank());
        const T* const from = own(slices_[std::size_t(c.rank())][b]) + done;
        std::copy_n(from, mine.size(), sent + c.rank() * most_);
        for (int r = 0; r < c.size(); ++r) {
          if (r == c.rank()) continue;
          if (gets(c.rank()) && part(r).size() > 0) c.receive(elements_, bytes(r * most_), bytes(part(r).size()), r);
          if (gets(r) && mine.size() > 0) c.send(elements_, bytes(c.rank() * most_), bytes(mine.size()), r);
        }
        c.wait(what);
        for (int r = 0; gets(c.rank()) && r < c.size(); ++r)
          if (r != c.rank() || arena + mine.begin != from) std::copy_n(sent + r * most_, part(r).size(), arena + part(r).begin);
      }
  }

  /// Completes `arrays` arrays of norms, one after the other, each with an element for each piece of the arena.
  void share_norms(C& c, double* numbers, int arrays) {
    double* const packed = numbers_in<double>(norms_);
    const auto for_pieces = [&](int rank, auto&& f) {  // f(numbers, packed numbers, count)
      double* at = packed + arrays * first_piece(rank);
      for (int k = 0; k < arrays; ++k)
        for (const element_range& p : pieces_[std::size_t(rank)]) {
          f(numbers + k * pieces_of_all_ + p.begin, at, p.size());
          at += p.size();
        }
    };
    for_pieces(c.rank(), [](const double* from, double* to, long n) { std::copy_n(from, n, to); });
    const auto place = [&](int rank) { return std::size_t(arrays * first_piece(rank)) * sizeof(double); };
    for (int r = 0; r < c.size(); ++r) {
      if (r == c.rank()) continue;
      if (const auto size = place(r + 1) - place(r); size > 0) c.receive(norms_, place(r), size, r);
      if (const auto size = place(c.rank() + 1) - place(c.rank()); size > 0) c.send(norms_, place(c.rank()), size, r);
    }
    c.wait("norms");
    for (int r = 0; r < c.size(); ++r)
      if (r != c.rank()) for_pieces(r, [](double* to, const double* from, long n) { std::copy_n(from, n, to); });
  }

 private:
  static constexpr long most_at_a_time(int processes, long largest) {
    return std::min(largest, std::max(norm_piece, elements_on_the_way / processes));
  }
  static auto slices_of_all(const C& c, std::span<const gradient_bucket> buckets) {
    std::vector<std::vector<arena_slice>> all;
    for (int r = 0; r < c.size(); ++r) all.push_back(slices_of_process(buckets, r, c.size(), processes_per_machine(c)));
    return all;
  }
  static std::size_t bytes(long elements) { return std::size_t(elements) * sizeof(T); }
  long longest(std::size_t bucket) const {
    long most = 0;
    for (const auto& of_rank : slices_) most = std::max(most, of_rank[bucket].size());
    return most;
  }
  /// The index of the first piece of a process if the pieces of all are stored process by process.
  long first_piece(int rank) const {
    long first = 0;
    for (int r = 0; r < rank; ++r)
      for (const element_range& p : pieces_[std::size_t(r)]) first += p.size();
    return first;
  }
};

}  // namespace strata::core
