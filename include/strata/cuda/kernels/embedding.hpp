// Embedding on a GPU.
// needs: boost_context
#pragma once
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
template <class T>
struct clear_gradient {
  gradient_place<T> dw;
  long size;
  constexpr void operator()(long i) const { dw.store(i / size, i % size, T{}); }
};
/// One thread adds up one column of the table for one leaf, sample after sample, so that no two threads write to one element.
template <class T, int Width, int Indices>
struct look_up_gradient {
  const T *indices, *dy;
  gradient_place<T> dw;
  rows_of_leaves samples;
  constexpr void operator()(long i) const {
    const long leaf = i / Width, column = i % Width;
    T* const table = dw.to + leaf * dw.stride + column;
    const long begin = samples.begin(leaf) * Indices, end = begin + samples.size(leaf) * Indices;
    for (long k = begin; k < end; ++k) table[long(indices[k]) * Width] += dy[k * Width + column];
  }
};

}  // namespace machine

/// x: (count, N), indices of rows, which have no gradient; table: (rows, W); y: (count, N, W). refuse_other_rows has checked the
/// indices.
template <embedding_settings S, class P, shape In>
struct kernel<cuda, lookup<S>, P, In> : kernel_defaults {
  using T = typename P::value_type;

  static void forward(machine::queue q, const operands<T>& o) {
    machine::for_each_index(q, long{o.count} * In.size() * S.width, machine::look_up<T, S.width>{o.x[0], o.w[0], o.y});
  }
  static void backward(machine::queue q, const operands<T>& o) {
    const auto dw = machine::gradient_place<T>::of_weight(o, 0);
    if (!dw.is_wanted()) return;
    const auto samples = machine::rows_of_leaves::of(o);
    constexpr long size = long(S.rows) * S.width;
    if (!dw.adds) machine::for_each_index(q, samples.leaves * size, machine::clear_gradient<T>{dw, size});
    machine::for_each_index(q, long{samples.leaves} * S.width,
                            machine::look_up_gradient<T, S.width, In.size()>{o.x[0], o.dy, dw, samples});
  }
};

}  // namespace strata
