// Embedding on a GPU.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <strata/cuda/kernels/gradients.hpp>
#include <strata/layers/embedding.hpp>

namespace strata {

namespace machine {

template <class T, int Width>
struct look_up {
  const T *indices, *table;
  T* y;
  constexpr void operator()(long i) const { y[i] = table[long(indices[i / Width]) * Width + i % Width]; }
};

/// The gradient of a table, for each leaf. Of n blocks, a power of two, block b owns the rows b, b + n, b + 2n... It scans all
/// indices of the leaf in chunks: it lists those that refer to its own rows in shared memory, in the order of the samples, and
/// then adds these rows of dy, each thread in a column of its own. So one thread adds up an element, sample by sample, and the
/// bits do not depend on the number of blocks. docs/decisions/cuda/blocks_own_rows_of_a_table.md
template <class T, int Width>
struct look_up_gradient {
  static constexpr int threads = 128, per_thread = 8, chunk = threads * per_thread;  // of indices, between two barriers
  static constexpr int at_once = 16;                                                 // rows of dy that a thread fetches
  static constexpr int columns = Width < threads ? int(std::bit_ceil(unsigned(Width))) : threads;
  static constexpr int groups = threads / columns;               // of threads; row r of a block belongs to group r % groups
  static constexpr int parts = (Width + columns - 1) / columns;  // of the table, each of which has blocks of its own
  /// The number of blocks that keeps the memory busy. Each block scans all indices, so more of them cost more than they gain.
  static constexpr long enough_blocks = 512;
  static_assert(per_thread * 8 <= 64 && threads < 1 << 8, "the counts of a thread are bytes of one word");
  struct shared {
    std::uint64_t counts[2][threads];
    int rows[chunk], places[chunk];
  };
  const T *indices, *dy;
  gradient_place<T> dw;
  rows_of_leaves samples;
  int indices_of_sample, rows, shift, blocks_of_part;  // row r belongs to block r % (1 << shift)

  static grid<look_up_gradient> of(const operands<T>& o, gradient_place<T> dw, int indices_of_sample, int rows) {
    const auto samples = rows_of_leaves::of(o);
    const long all_parts = long{samples.leaves} * parts;
    int shift = 0;
    while (all_parts << shift < enough_blocks && 1 << shift < rows) ++shift;
    const int blocks = std::min(1 << shift, rows);
    return {{o.x[0], o.dy, dw, samples, indices_of_sample, rows, shift, blocks}, all_parts * blocks};
  }

  STRATA_DEVICE void operator()(const lane& l, shared& memory) const {
    const int own = int(l.block() % blocks_of_part), group = l.thread() / columns;
    const long part = l.block() / blocks_of_part, leaf = part / parts;
    const int column = int(part % parts) * columns + l.thread() % columns;
    // Row r of the block; the column may come after the last one.
    const auto place_of = [&](int r) { return leaf * dw.stride + (long{r} << shift | own) * Width + column; };
    if (!dw.adds && column < Width)
      for (int r = group; (long{r} << shift | own) < rows; r += groups) dw.to[place_of(r)] = T{};
    const long begin = samples.begin(leaf) * indices_of_sample, end = begin + samples.size(leaf) * indices_of_sample;
    for (long first = begin; first < end; first += chunk) {
      const int count = list_own(l, memory, first, end, own);
      for (int i = 0; column < Width && i < count; i += at_once) {
        int of[at_once];
        T terms[at_once] = {}, sums[at_once] = {};
        for (int u = 0; u < at_once; ++u) {
          of[u] = i + u < count ? memory.rows[i + u] : -1;
          if (of[u] < 0 || of[u] % groups != group) {
            of[u] = -1;
            continue;
          }
          terms[u] = dy[(first + memory.places[i + u]) * Width + column];
          sums[u] = dw.to[place_of(of[u])];
        }
        for (int u = 0; u < at_once; ++u) {
          if (of[u] < 0) continue;
          // A row that these terms have several times: its sum goes from one to the next.
          for (int before = 0; before < u; ++before)
            if (of[before] == of[u]) sums[u] = sums[before];
          dw.to[place_of(of[u])] = sums[u] += terms[u];
        }
      }
    }
  }

 private:
  /// Lists those of the indices [first, first + chunk), or up to `end`, that refer to rows of this block: the row, counted within
  /// the block, and the position in the chunk. Returns their number. Index j of each thread is counted in byte j of a word, so
  /// that one sum over the threads gives each its position in the list.
  STRATA_DEVICE int list_own(const lane& l, shared& memory, long first, long end, int own) const {
    int found[per_thread];
    std::uint64_t mine = 0;
    for (int j = 0; j < per_thread; ++j) {
      const long k = first + j * threads + l.thread();
      const int row = k < end ? int(indices[k]) : -1;
      found[j] = row >= 0 && (row & ((1 << shift) - 1)) == own ? row >> shift : -1;
      if (found[j] >= 0) mine += std::uint64_t{1} << 8 * j;
    }
    const auto count_of = [](std::uint64_t counts, int j) { return int(counts >> 8 * j & 0xff); };
    const auto [up_to, all] = prefix_sum_of_block(l, memory.counts, mine);
    int before = 0;
    for (int j = 0; j < per_thread; ++j) {
      if (found[j] >= 0) {
        const int at = before + count_of(up_to, j) - 1;
        memory.rows[at] = found[j];
        memory.places[at] = j * threads + l.thread();
      }
      before += count_of(all, j);
    }
    l.barrier();
    return before;
  }
};

}  // namespace machine

namespace core {
/// x: (count, N), indices of rows, which have no gradient; table: (rows, W); y: (count, N, W). refuse_other_rows has checked the
/// indices.
template <embedding_settings S, class P, shape In>
struct kernel<cuda, lookup<S>, P, In> {
  using T = typename P::value_type;

  static void forward(machine::queue q, const operands<T>& o) {
    machine::for_each_index(q, long{o.count} * In.size() * S.width, machine::look_up<T, S.width>{o.x[0], o.w[0], o.y});
  }
  static void backward(machine::queue q, const operands<T>& o) {
    const auto dw = machine::gradient_place<T>::of_weight(o, 0);
    if (!dw.is_wanted()) return;
    machine::launch(q, machine::look_up_gradient<T, S.width>::of(o, dw, In.size(), S.rows));
  }
};
}  // namespace core

}  // namespace strata
