// Computes losses row by row. Short rows are computed by one thread each, and one block adds up those of a leaf. Long rows are
// computed by one block each, whose threads read neighbouring elements, and another kernel adds up their losses.
#pragma once
#include <strata/base/rounded.hpp>
#include <strata/cuda/kernels/gradients.hpp>
#include <strata/cuda/kernels/loss_sums.hpp>
#include <strata/cuda/kernels/row_threads.hpp>

namespace strata::machine {

/// The largest number of sums that a long row may contribute to its leaf: its loss, and its metrics that are means. Rows with
/// more are computed as short ones.
inline constexpr int most_sums_of_row = 8;
/// Elements of scratch memory for each sample, for these sums.
template <class T>
constexpr int scratch_of_row(int N) {
  return is_long_row(N) ? most_sums_of_row * int(sizeof(double) / sizeof(T)) : 0;
}

/// y of each sample, without a loss.
template <class Loss>
struct predict_row {
  Loss loss;
  template <class Row>
  STRATA_DEVICE void operator()(const Row& row, long n) const {
    loss.forward(row, n);
  }
};

/// y of each sample, and the sums of each leaf, of which a block computes one.
template <class Loss, class Metrics>
struct loss_of_short_rows {
  static constexpr int threads = 128;
  struct shared {
    double part[threads];
  };
  Loss loss;
  rows_of_leaves rows;
  sums_of_leaves<Metrics> to;

  STRATA_DEVICE void operator()(const lane& l, shared& memory) const {
    const long leaf = l.block(), begin = rows.begin(leaf), size = rows.size(leaf);
    typename sums_of_leaves<Metrics>::totals sums = {};
    for (long n = begin + l.thread(); n < begin + size; n += threads) {
      sums[0] += double(strata::detail::rounded(loss.forward(row_by_thread{}, n)));
      to.metrics.measure(row_by_thread{}, n, sums + 1);
    }
    to.store(l, memory.part, leaf, begin, size, sums);
  }
};

/// y of each sample, its loss and its metrics.
template <class Loss, class Metrics>
struct loss_of_long_row {
  static constexpr int size = sums_of_leaves<Metrics>::size;
  Loss loss;
  Metrics metrics;
  double* to;  // (sample, size)

  template <class Row>
  STRATA_DEVICE void operator()(const Row& row, long n) const {
    double sums[size] = {double(strata::detail::rounded(loss.forward(row, n)))};
    row.wait_for_all();  // for the predictions that other threads have stored
    metrics.measure(row, n, sums + 1);
    if (!row.is_first()) return;
    for (int i = 0; i < size; ++i) to[n * size + i] = sums[i];
  }
};
/// Adds up what loss_of_long_row has stored; a block computes a leaf.
template <class Metrics>
struct add_long_rows {
  static constexpr int threads = 128, size = sums_of_leaves<Metrics>::size;
  struct shared {
    double part[threads];
  };
  const double* from;  // (sample, size)
  rows_of_leaves rows;
  sums_of_leaves<Metrics> to;

  STRATA_DEVICE void operator()(const lane& l, shared& memory) const {
    const long leaf = l.block(), begin = rows.begin(leaf), count = rows.size(leaf);
    typename sums_of_leaves<Metrics>::totals sums = {};
    for (long n = begin + l.thread(); n < begin + count; n += threads)
      for (int i = 0; i < size; ++i) sums[i] += from[n * size + i];
    to.store(l, memory.part, leaf, begin, count, sums);
  }
};

template <class Loss>
struct gradient_of_row {
  Loss loss;
  gradient_place<typename Loss::T> dx;
  template <class Row>
  STRATA_DEVICE void operator()(const Row& row, long n) const {
    loss.gradient(row, n, dx);
  }
};

/// Computes y and, unless o.loss is null, the sums of the leaves. Members of Loss:
///   `T`, `row_size`         the element type, and the number of elements of a sample
///   `forward(row, n)`       stores y of sample n, perhaps in place of x; the first thread of the row gets its weighted loss
///   `gradient(row, n, dx)`  stores the gradient of sample n
template <class Loss, class T, class Metrics>
void compute_loss(const queue& q, const operands<T>& o, const Loss& loss, const Metrics& metrics) {
  const auto rows = rows_of_leaves::of(o);
  const sums_of_leaves<Metrics> to{o.loss, o.leaves.sums_stride, metrics};
  constexpr int N = Loss::row_size;
  if (!o.loss) {
    for_each_row<T, N>(q, o.count, predict_row<Loss>{loss});
  } else if constexpr (is_long_row(N) && sums_of_leaves<Metrics>::size <= most_sums_of_row) {
    auto* const sums = reinterpret_cast<double*>(o.scratch);
    for_each_row<T, N>(q, o.count, loss_of_long_row<Loss, Metrics>{loss, metrics, sums});
    machine::launch(q, rows.leaves, add_long_rows<Metrics>{sums, rows, to});
  } else {
    machine::launch(q, rows.leaves, loss_of_short_rows<Loss, Metrics>{loss, rows, to});
  }
}
/// The gradient of the input, if it is wanted.
template <class Loss, class T>
void compute_loss_gradient(const queue& q, const operands<T>& o, const Loss& loss) {
  const auto dx = gradient_place<T>::of_input(o, 0);
  if (dx.is_wanted()) for_each_row<T, Loss::row_size>(q, o.count, gradient_of_row<Loss>{loss, dx});
}

}  // namespace strata::machine
