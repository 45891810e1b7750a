// Kernels that sum up the squares of parameters, in the order of the CPU, and find the factors of clipping by norms.
#pragma once
#include <strata/cuda/engine/update_terms.hpp>
#include <strata/cuda/machine/device.hpp>
#include <strata/network/parameter_ranges.hpp>
#include <strata/optimizers/elementwise.hpp>
#include <strata/optimizers/gradient_modifiers.hpp>

namespace strata::machine {

/// The pieces of norms (norm_piece), parameter after parameter, and a sum of squares for each.
struct norm_pieces {
  device_ranges ranges;
  const long* first;       // the number of the first piece of each parameter, and of all
  const long* into_piece;  // where each parameter begins in its first piece
  double* sums;

  constexpr long count() const { return first[ranges.count]; }
  constexpr int parameter_of(long piece) const {
    int low = 0, high = ranges.count - 1;
    while (low < high) {
      const int middle = (low + high + 1) / 2;
      if (first[middle] <= piece)
        low = middle;
      else
        high = middle - 1;
    }
    return low;
  }
};

/// The squares of the pieces of one or two arrays, in the order in which the CPU adds them up: 16 sums, then these in a tree.
template <class T>
struct squares_of_pieces {
  static constexpr int lanes = int(slice_alignment), at_once = 8, threads = lanes * at_once;
  struct shared {
    double part[threads];
  };
  norm_pieces pieces;
  const T* values[2];
  long count, blocks_of_array;

  STRATA_DEVICE void operator()(const lane& l, shared& memory) const {
    const long array = l.block() / blocks_of_array, piece = l.block() % blocks_of_array * at_once + l.thread() / lanes;
    const int own = l.thread() % lanes;
    double sum = 0;
    if (piece < count) {
      const int k = pieces.parameter_of(piece);
      const parameter_range& p = pieces.ranges.all[k];
      const long from = p.begin - pieces.into_piece[k] + (piece - pieces.first[k]) * norm_piece, last = p.begin + p.elements;
      const long begin = from < p.begin ? p.begin : from, end = from + norm_piece < last ? from + norm_piece : last;
      for (long i = begin + own; i < end && !p.frozen; i += lanes) {
        const double value = double(values[array][i]);
        sum += strata::detail::product(value, value);
      }
    }
    memory.part[l.thread()] = sum;
    for (int distance = 1; distance < lanes; distance *= 2) {
      l.barrier();
      if (own % (2 * distance) == 0) memory.part[l.thread()] += memory.part[l.thread() + distance];
    }
    if (own == 0 && piece < count) pieces.sums[array * count + piece] = memory.part[l.thread()];
  }
};

/// The sum over the pieces of each parameter, for one array after the other. A block adds up a parameter: its threads fetch
/// pieces side by side, and one of them adds these in the order of the CPU. docs/decisions/optimizers/rules_with_norms.md
struct add_pieces {
  static constexpr int threads = 128, at_once = 8 * threads, unrolled = 16;
  struct shared {
    double pieces[at_once];
  };
  norm_pieces pieces;
  double* to[2];

  STRATA_DEVICE void operator()(const lane& l, shared& memory) const {
    const long array = l.block() / pieces.ranges.count, k = l.block() % pieces.ranges.count;
    const double* const sums = pieces.sums + array * pieces.count();
    double sum = 0;
    for (long first = pieces.first[k], end = pieces.first[k + 1]; first < end; first += at_once) {
      const int count = int(end - first < at_once ? end - first : at_once);
      // Zeros after the last piece change no sum.
      for (int i = l.thread(); i < count + unrolled - 1 && i < at_once; i += threads)
        memory.pieces[i] = i < count ? sums[first + i] : 0.;
      l.barrier();
      if (l.thread() == 0)
        for (int i = 0; i < count; i += unrolled)
          for (int j = 0; j < unrolled; ++j) sum += memory.pieces[i + j];
      l.barrier();
    }
    if (l.thread() == 0) to[array][k] = sum;
  }
};

struct clip_factors {
  device_ranges ranges;
  const double* squares;      // 0 of those that are frozen
  const double* all_squares;  // of all parameters of the network
  int all_count;
  double* to;
  double clipnorm, global_clipnorm;

  template <class K>
  constexpr void operator()(K k) const {
    if (global_clipnorm > 0) {
      double sum = 0;
      for (int j = 0; j < all_count; ++j) sum += all_squares[j];
      to[k] = clipnorm_factor(sum, global_clipnorm);
    }
    if (clipnorm > 0) to[k] = clipnorm_factor(squares[k], clipnorm);
  }
};

}  // namespace strata::machine
