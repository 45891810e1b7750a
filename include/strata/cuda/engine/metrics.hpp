// Metrics on a GPU: one thread adds up those of a leaf, sample after sample, as on the host.
// needs: boost_context
#pragma once
#include <strata/cuda/kernels/gradients.hpp>
#include <strata/program/pass.hpp>

namespace strata::machine {

template <class Program>
struct measure_leaf {
  using T = typename Program::value_type;
  rows_of_leaves rows;
  output_rows<const T> predictions;
  samples<T> batch;
  double* to;
  long count, stride;  // sums of a leaf; from leaf to leaf

  constexpr void operator()(long leaf) const {
    constexpr const end_sizes& ends = ends_of_program<Program>;
    const int begin = int(rows.begin(leaf)), size = int(rows.size(leaf));
    output_rows<const T> own;
    for (int k = 0; k < ends.output_count; ++k) own.at[k] = predictions.at[k] + long{begin} * ends.outputs[k];
    for (long i = 0; i < count; ++i) to[leaf * stride + i] = 0;
    strata::detail::measure<Program>(own, batch.rows(begin, size, ends), to + leaf * stride);
  }
};

}  // namespace strata::machine
