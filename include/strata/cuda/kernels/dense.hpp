// Dense layers on a GPU: one product of matrices forward, and two in one launch backward.
#pragma once
#include <algorithm>
#include <strata/cuda/kernels/gradients.hpp>
#include <strata/cuda/kernels/library_rule.hpp>
#include <strata/cuda/kernels/stored_batch.hpp>
#include <strata/cuda/machine/products.hpp>
#include <strata/layers/dense.hpp>
#include <type_traits>

namespace strata {

namespace machine {

/// The tile of the forward product. A narrow layer has all outputs of a sample in one tile, so that each input element is read
/// once. A layer with many inputs has smaller tiles: a block takes long, and a small batch should have more than a few blocks.
template <int Inputs, int Outputs>
struct tile_of_outputs_at {
  using type = product_tile<16, 16>;
};
template <int Inputs, int Outputs>
  requires(Outputs <= 16 || (Outputs <= 64 && Inputs <= 1024))
struct tile_of_outputs_at<Inputs, Outputs> {
  using type = product_tile<16, (Outputs <= 16 ? 16 : Outputs <= 32 ? 32 : 64), 512>;
};
template <int Inputs, int Outputs>
  requires(Outputs > 128)
struct tile_of_outputs_at<Inputs, Outputs> {
  using type = product_tile<32, 32>;
};
template <int Inputs, int Outputs>
using tile_of_outputs = typename tile_of_outputs_at<Inputs, Outputs>::type;

template <class A, class P, int K, int N, class X, class Y, class Tile = tile_of_outputs<K, N>>
struct dense_forward {
  using precision = P;
  using T = typename P::value_type;
  static constexpr bool rows_are_neighbours = false, columns_are_neighbours = true;
  static constexpr int columns = N;
  using tile = Tile;
  const X* x;
  const T *w, *bias;
  Y* y;
  int count;

  static constexpr int all_terms = K;
  constexpr int rows() const { return count; }
  constexpr T a(long, int m, int k) const { return x[long{m} * K + k]; }
  constexpr T b(long, int k, int n) const { return w[long{k} * N + n]; }
  constexpr void store(long, int m, int n, T sum) const {
    y[long{m} * N + n] = stored_as<Y>(activated<A>(bias ? bias[n] + sum : sum));
  }
  STRATA_DEVICE auto a_four(long, int m, int k) const { return load_four(x, long{m} * K + k); }
  STRATA_DEVICE four<T> b_four(long, int k, int n) const { return load_four(w, long{k} * N + n); }
  STRATA_DEVICE void store_four(long, int m, int n, const four<T>& sums) const {
    machine::store_four(y, long{m} * N + n, activated_four<A>(sums, bias, n));
  }
};

/// dense_forward for a batch that is gathered on the device: each element is stored when it is read, and the truth with the first
/// element of a sample.
template <class A, class P, int K, int N, class Y>
struct dense_forward_of_stored : dense_forward<A, P, K, N, typename P::value_type, Y> {
  using T = typename P::value_type;
  stored_batch<T> batch;

  constexpr T a(long, int m, int k) const { return batch.number(m, k); }
  constexpr void keep_a(int m, int k, T value) const {
    batch.x[long{m} * K + k] = value;
    if (k == 0) batch.store_truth(m, 0, 1);
  }
};

template <class Dz, class P, int K, int N, class X, class Tile>
struct dense_input_gradient {
  using precision = P;
  using T = typename P::value_type;
  static constexpr bool rows_are_neighbours = false, columns_are_neighbours = false;
  static constexpr int columns = K;
  using tile = Tile;
  Dz dz;
  const T* w;
  gradient_place<T, X> dx;
  int count;

  static constexpr int all_terms = N;
  constexpr int rows() const { return count; }
  constexpr T a(long, int m, int k) const { return dz[long{m} * N + k]; }
  constexpr T b(long, int k, int n) const { return w[long{n} * N + k]; }
  constexpr void store(long, int m, int n, T sum) const { dx.store(long{m} * K + n, sum); }
  STRATA_DEVICE auto a_four(long, int m, int k) const { return dz.four_at(long{m} * N + k); }
  STRATA_DEVICE four<T> b_four(long, int k, int n) const { return load_four(w, long{n} * N + k); }
  STRATA_DEVICE void store_four(long, int m, int n, const four<T>& sums) const { dx.store_four(long{m} * K + n, sums); }
};

/// The gradient of the weights and, as one more row of the product, of the bias: its input is 1.
template <class Dz, class P, int K, int N, bool Bias, class X, class Tile>
struct dense_weight_gradient {
  using precision = P;
  using T = typename P::value_type;
  static constexpr bool rows_are_neighbours = true, columns_are_neighbours = true, has_row_of_ones = Bias;
  static constexpr int columns = N;
  using tile = Tile;
  const X* x;
  Dz dz;
  gradient_place<T> dw, db;
  rows_of_leaves samples;

  constexpr int rows() const { return K + Bias; }
  constexpr int terms(long leaf) const { return int(samples.size(leaf)); }
  constexpr T a(long leaf, int m, int k) const { return m == K ? T(1) : T(x[(samples.begin(leaf) + k) * K + m]); }
  constexpr T b(long leaf, int k, int n) const { return dz[(samples.begin(leaf) + k) * N + n]; }
  constexpr void store(long leaf, int m, int n, T sum) const {
    if (m == K ? db.is_wanted() : dw.is_wanted()) m == K ? db.store(leaf, n, sum) : dw.store(leaf, long{m} * N + n, sum);
  }
  STRATA_DEVICE auto a_four(long leaf, int m, int k) const { return load_four(x, (samples.begin(leaf) + k) * K + m); }
  STRATA_DEVICE auto b_four(long leaf, int k, int n) const { return dz.four_at((samples.begin(leaf) + k) * N + n); }
};

/// True if a dense layer is large enough for tensor cores, provided that each leaf has enough rows (fills_tiles).
template <class P, int K, int N>
inline constexpr bool dense_on_tensor_cores = is_on_tensor_cores<P> && K % 4 == 0 && N % 4 == 0 && K >= 64 && N >= 32;

/// The parts of the terms of a forward product on tensor cores: about 256 terms each where a layer has few tiles side by side.
/// They follow from the layer alone, so that the bits do not depend on the number of devices.
constexpr product_parts parts_of_forward(int inputs, int units) {
  if (units > 256 || inputs <= 256) return {};
  return parts_of_terms(inputs, std::min((inputs + 255) / 256, 16), tensor_depth);
}

/// The products of a dense layer. X: an element of its input. ForwardTile, BackwardTile: where they are not on tensor cores.
template <dense_settings S, int K, class P, class X, bool OnTensorCores, class ForwardTile, class BackwardTile>
struct tiled_dense {
  using T = typename P::value_type;
  static constexpr int N = S.units;
  static constexpr product_parts parts = OnTensorCores ? parts_of_forward(K, N) : product_parts{};
  static constexpr int scratch_per_sample = parts.count == 1 ? 0 : parts.count * N;

  static bool are_on_tensor_cores(const operands<T>& o) { return OnTensorCores && fills_tiles(rows_of_leaves::of(o).capacity); }
  template <class A, class Y, class Tile = ForwardTile>
  static dense_forward<A, P, K, N, X, Y, Tile> forward_product(const operands<T>& o) {
    return {input_of<X>(o), o.w[0], S.bias ? o.w[1] : nullptr, output_of<Y>(o), o.count};
  }
  /// Y: an element of the output.
  template <class A, class Y>
  static void forward(const queue& q, const operands<T>& o) {
    if constexpr (OnTensorCores)
      if (are_on_tensor_cores(o)) {
        const auto product = forward_product<A, Y, tensor_tile_of<N>>(o);
        machine::launch(q, products(1, product, parts, o.scratch));
        return add_parts(q, 1, product, parts, o.scratch);
      }
    for_each_product(q, 1, forward_product<A, Y>(o));
  }
  /// dz: the gradient before the activation, or before the softmax of the loss.
  template <class Dz>
  static void backward(const queue& q, const operands<T>& o, const Dz& dz) {
    if constexpr (OnTensorCores)
      if (are_on_tensor_cores(o)) return backward_with<tensor_tile_of<N>, tensor_tile_of<K>>(q, o, dz);
    backward_with<BackwardTile, BackwardTile>(q, o, dz);
  }

 private:
  template <class WeightTile, class InputTile, class Dz>
  static void backward_with(const queue& q, const operands<T>& o, const Dz& dz) {
    using place = gradient_place<T>;
    const auto rows = rows_of_leaves::of(o);
    const place dw = place::of_weight(o, 0), db = place::of_weight(o, 1);
    const auto dx = gradient_place<T, X>::of_input(o, 0);
    launch_together(q,
                    products(dw.is_wanted() || db.is_wanted() ? rows.leaves : 0,
                             dense_weight_gradient<Dz, P, K, N, S.bias, X, WeightTile>{input_of<X>(o), dz, dw, db, rows}),
                    products(dx.is_wanted() ? 1 : 0, dense_input_gradient<Dz, P, K, N, X, InputTile>{dz, o.w[0], dx, o.count}));
  }
};

/// x: (count, K); W: (K, F); b: (F); y, dy: (count, F). A: an activation, or linear. X, Y: an element of x, and of y.
template <dense_settings S, class A, class P, shape In, class X = typename P::value_type, class Y = X>
struct dense_kernel {
  using T = typename P::value_type;
  template <bool NarrowInput, bool NarrowOutput>
  using with_narrow = dense_kernel<S, A, P, In, element_of_array<T, NarrowInput>, element_of_array<T, NarrowOutput>>;
  static constexpr int K = In[0], N = S.units;
  using products = tiled_dense<S, K, P, X, dense_on_tensor_cores<P, K, N>, tile_of_outputs<K, N>, product_tile<32, 32>>;
  static constexpr kernel_traits traits{.scratch_per_sample = products::scratch_per_sample,
                                        .reads_output = follows_in_a_kernel<A>,
                                        .input_end = reads_operands<P>,
                                        .output_end = stores_activations<P, A>};

  static void forward(queue q, const operands<T>& o) { products::template forward<A, Y>(q, o); }
  /// True if one block reads all elements of a sample, so that each is gathered once.
  static constexpr bool makes_its_input = N <= tile_of_outputs<K, N>::columns;
  /// forward, of samples that are not mirrored: makes them, too.
  static void forward_of_stored(queue q, const operands<T>& o, const stored_batch<T>& batch)
    requires(makes_its_input && std::is_same_v<X, T>)
  {
    if (!products::are_on_tensor_cores(o))
      return for_each_product(q, 1, dense_forward_of_stored<A, P, K, N, Y>{products::template forward_product<A, Y>(o), batch});
    machine::launch(q, o.count, gather_samples<T, threads_for_row(K)>{batch});
    forward(q, o);
  }
  static void backward(queue q, const operands<T>& o) { products::backward(q, o, gradient_before<A, T, Y>::of(o)); }
};

}  // namespace machine

namespace core {
template <dense_settings S, class P, shape In>
struct kernel<cuda, affine<S>, P, In> : machine::dense_kernel<S, linear, P, In> {};

template <dense_settings S, class A, class P, shape In>
  requires(machine::follows_in_a_kernel<A> && !machine::goes_to_blas<S, P, In>)
struct kernel<cuda, fused<affine<S>, A>, P, In> : machine::dense_kernel<S, A, P, In> {};
}  // namespace core

}  // namespace strata
