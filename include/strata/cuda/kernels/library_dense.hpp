// Dense layers by cuBLASLt: one product for the full leaves of a call and one for the leaf that has fewer samples, forward, for
// the gradient of the input, and for those of the weights. Bias, relu and the gradient of the bias are parts of the products.
#pragma once
#include <algorithm>
#include <memory>
#include <optional>
#include <strata/cuda/kernels/dense.hpp>
#include <strata/cuda/kernels/library_operands.hpp>
#include <strata/cuda/kernels/library_rule.hpp>
#include <type_traits>
#include <utility>
#include <vector>

namespace strata {

namespace machine {

#if defined(STRATA_CUBLASLT) || !defined(__CUDACC__)

/// The products of some leaves with equally many samples.
struct dense_products {
  bool full = true;  // leaves have all their samples; otherwise this is the one that has fewer
  int first_leaf = 0, leaves = 0;
  long capacity = 0, first_row = 0, rows = 0;  // samples of a full leaf, of all leaves before, of each leaf
  std::optional<library_product> forward, input_gradient, weight_gradient;
};

/// The products for a number of samples and leaves.
struct prepared_dense {
  std::vector<dense_products> parts;
  int first_empty_leaf = 0, leaves = 0;
  blas_epilogue forward = blas_epilogue::none, backward = blas_epilogue::none;

  /// True if there are products for all requested gradients. The library cannot add to the gradient of a bias.
  bool computes(const operands<float>& o) const {
    const bool sums_bias = backward == blas_epilogue::bias_gradient;
    return std::ranges::all_of(parts, [&](const dense_products& part) {
      return (!o.dw[0] || (part.weight_gradient && !o.adds_dw && (o.dw[1] || !sums_bias))) && (!o.dx[0] || part.input_gradient);
    });
  }
};

/// Falls back to dense_kernel if leaves are small or the library has no algorithm.
///
/// In bfloat16, x is rounded once and kept for backward, unless it is narrow. If y is narrow, the library adds the bias as
/// rounded. scratch: rounded weights and bias | workspace of the library | rounded x (in inference) or dz.
template <dense_settings S, class A, class P, shape In, class X = float, class Y = X>
struct library_dense_kernel : dense_kernel<S, A, P, In, X, Y> {
  using ours = dense_kernel<S, A, P, In, X, Y>;
  template <bool NarrowInput, bool NarrowOutput>
  using with_narrow =
      library_dense_kernel<S, A, P, In, element_of_array<float, NarrowInput>, element_of_array<float, NarrowOutput>>;
  static constexpr int K = In[0], N = S.units;
  static constexpr bool halves = factors_of<P> == factor_type::bf16, is_linear = std::is_same_v<A, linear>;
  static constexpr bool x_is_narrow = !std::is_same_v<X, float>, y_is_narrow = !std::is_same_v<Y, float>;
  /// Elements from row to row of rounded matrices, and their rows in floats. Rows begin at multiples of 16 bytes.
  static constexpr int x_row = (K + 7) / 8 * 8, z_row = (N + 7) / 8 * 8;
  static constexpr int weights = halves ? ((K + S.bias) * (z_row / 2) + 15) / 16 * 16 : 0;
  /// True if dz is computed before the library reads it; otherwise the library reads dy.
  static constexpr bool computes_dz = !is_linear || (halves && !y_is_narrow);
  static constexpr int dz_of_sample = halves ? z_row / 2 : N, x_of_sample = halves && !x_is_narrow ? x_row / 2 : 0;
  static constexpr kernel_traits traits{
      .saved = x_of_sample,
      .scratch = weights + floats_for_workspace(blas_workspace),
      .scratch_per_sample = std::max({ours::traits.scratch_per_sample, x_of_sample, computes_dz ? dz_of_sample : 0}),
      .reads_output = ours::traits.reads_output,
      .input_end = K % 8 == 0 ? ours::traits.input_end : narrow_end{},
      .output_end = N % 8 == 0 ? ours::traits.output_end : narrow_end{}};

  static std::shared_ptr<const void> prepare(queue q, const operands<float>& o, bool trains) {
    const auto rows = rows_of_leaves::of(o);
    if (!fills_tiles(rows.capacity)) return {};
    const auto made = std::make_shared<prepared_dense>();
    const int full = int(o.count / rows.capacity);
    const long rest = o.count % rows.capacity;
    if (full > 0) made->parts.push_back({true, 0, full, rows.capacity, 0, rows.capacity, {}, {}, {}});
    if (rest > 0) made->parts.push_back({false, full, 1, rows.capacity, full * rows.capacity, rest, {}, {}, {}});
    made->first_empty_leaf = full + (rest > 0), made->leaves = rows.leaves;

    constexpr blas_epilogue with_relu = S.bias ? blas_epilogue::relu_bias : blas_epilogue::relu,
                            without = S.bias ? blas_epilogue::bias : blas_epilogue::none;
    constexpr blas_epilogue wanted = std::is_same_v<A, relu> ? with_relu : without;
    const auto find_all = [&](std::optional<library_product> dense_products::* which, auto&& description) {
      for (dense_products& part : made->parts)
        if (part.*which = library_product::find(q, description(part)); !(part.*which)) return false;
      return true;
    };
    const auto find_forward = [&](blas_epilogue epilogue) {
      made->forward = epilogue;
      return find_all(&dense_products::forward, [&](const dense_products& part) { return forward_product(o, part, epilogue); });
    };
    if (!find_forward(wanted) && (y_is_narrow || wanted == blas_epilogue::none || !find_forward(blas_epilogue::none))) return {};
    if (!trains) return made;
    const auto find_weights = [&](blas_epilogue epilogue) {
      made->backward = epilogue;
      return find_all(&dense_products::weight_gradient,
                      [&](const dense_products& part) { return weight_gradient_product(o, part, epilogue); });
    };
    if (!(S.bias && o.dw[0] && o.dw[1] && find_weights(blas_epilogue::bias_gradient)) && o.dw[0] &&
        !find_weights(blas_epilogue::none))
      return {};
    if (o.dx[0] &&
        !find_all(&dense_products::input_gradient, [&](const dense_products& part) { return input_gradient_product(o, part); }))
      return {};
    return made;
  }

  static void forward(queue q, const operands<float>& o) { run(q, o, o.saved); }
  static void infer(queue q, const operands<float>& o) { run(q, o, per_sample(o)); }

  static void backward(queue q, const operands<float>& o) {
    using dz_type = gradient_before<A, float, Y>;
    const dz_type dz = dz_type::of(o);
    const auto* const how = static_cast<const prepared_dense*>(o.prepared);
    const gradient_place<float> dw = gradient_place<float>::of_weight(o, 0), db = gradient_place<float>::of_weight(o, 1);
    if (!how || !how->computes(o)) return ours::backward(q, o);
    const bool sums_bias = how->backward == blas_epilogue::bias_gradient;

    const void* z = o.dy;
    if constexpr (computes_dz && halves) {
      auto* const rounded = reinterpret_cast<bfloat16*>(per_sample(o));
      for_each_index(q, long{o.count} * N, round_rows<dz_type>{dz, rounded, N, z_row});
      z = rounded;
    } else if constexpr (computes_dz) {
      for_each_index(q, long{o.count} * N, store_elements<dz_type>{dz, per_sample(o)});
      z = per_sample(o);
    }
    if (dw.is_wanted()) {
      const void* const x = traits.saved > 0 ? static_cast<const void*>(o.saved) : o.x[0];
      for (const dense_products& part : how->parts) {
        const long place = part.first_leaf * dw.stride;
        part.weight_gradient->run(q, {row(z, part.first_row, z_row, N), row(x, part.first_row, x_row, K), dw.to + place,
                                      sums_bias ? db.to + place : nullptr, workspace(o)});
      }
      clear(q, *how, dw, long{K} * N);
    }
    if (S.bias && db.is_wanted()) {
      if (dw.is_wanted() && sums_bias)
        clear(q, *how, db, N);
      else
        store_bias_gradient(q, rows_of_leaves::of(o), rounded_elements<P, dz_type>{dz}, db, N, 1);
    }
    if (o.dx[0]) {
      const void* const w = factor_of_weights(q, o);
      const auto dx = gradient_place<float, X>::of_input(o, 0);
      for (const dense_products& part : how->parts)
        part.input_gradient->run(q, {w, row(z, part.first_row, z_row, N), dx.to + part.first_row * K, nullptr, workspace(o)},
                                 dx.adds);
    }
  }

 private:
  static float* workspace(const operands<float>& o) { return first_aligned(o.scratch + weights); }
  static float* per_sample(const operands<float>& o) { return o.scratch + traits.scratch; }
  /// Row i of a factor whose rows are `rounded` elements apart in bfloat16, and `exact` in float.
  static const void* row(const void* from, long i, long rounded, long exact) {
    return halves ? static_cast<const void*>(static_cast<const bfloat16*>(from) + i * rounded)
                  : static_cast<const float*>(from) + i * exact;
  }
  static const void* factor_of_weights(const queue& q, const operands<float>& o) {
    if constexpr (halves) {
      auto* const rounded = reinterpret_cast<bfloat16*>(o.scratch);
      const round_weights work{o.w[0], S.bias ? o.w[1] : nullptr, rounded, K, N, z_row};
      for_each_index(q, work.count(), work);
      return rounded;
    } else {
      return o.w[0];
    }
  }
  static void clear(const queue& q, const prepared_dense& how, gradient_place<float> to, long size) {
    for_each_index(q, (how.leaves - how.first_empty_leaf) * size, clear_gradients{to, how.first_empty_leaf, size});
  }

  /// rounded_x: the buffer for rounded x.
  static void run(const queue& q, const operands<float>& o, float* rounded_x) {
    const auto* const how = static_cast<const prepared_dense*>(o.prepared);
    if (!how) return ours::forward(q, o);
    const void* x = o.x[0];
    if constexpr (halves && !x_is_narrow) {
      auto* const rounded = reinterpret_cast<bfloat16*>(rounded_x);
      for_each_index(q, long{o.count} * K, round_rows<const float*>{o.x[0], rounded, K, x_row});
      x = rounded;
    }
    const void* const w = factor_of_weights(q, o);
    float* const bias = S.bias ? const_cast<float*>(o.w[1]) : nullptr;
    void* const added = !S.bias ? nullptr : y_is_narrow ? const_cast<void*>(row(w, K, z_row, N)) : bias;
    Y* const y = output_of<Y>(o);
    for (const dense_products& part : how->parts)
      part.forward->run(q, {w, row(x, part.first_row, x_row, K), y + part.first_row * N, added, workspace(o)});
    const bool adds_bias = S.bias && !has_bias(how->forward);
    if (adds_bias || !(is_linear || (std::is_same_v<A, relu> && how->forward != blas_epilogue::none)))
      if constexpr (!y_is_narrow)  // then all is in the product
        for_each_index(q, long{o.count} * N, finish_outputs<A, float, float>{y, y, adds_bias ? bias : nullptr, N});
  }

  // Rows of ours are columns of cuBLASLt, so each product is the transpose of ours, with its factors exchanged.
  static blas_matrix of_weights(const operands<float>& o, bool transposed) {
    return {transposed, halves ? z_row : N, 0, halves ? 64 : alignment_of(o.w[0])};
  }
  /// Row-major matrix of samples, the first at `at`; `bytes` is the element size.
  static blas_matrix of_rows(const dense_products& part, const void* at, long columns, long bytes = 4) {
    return {false, columns, stride(part, part.capacity * columns),
            alignment_after(bytes * part.capacity * columns, alignment_of(at))};
  }
  static blas_matrix of_factor(const dense_products& part, const void* at, long rounded, long exact) {
    if (!halves) return of_rows(part, at, exact);
    return {false, rounded, stride(part, part.capacity * rounded), alignment_after(2 * part.capacity * rounded)};
  }
  static long stride(const dense_products& part, long elements) { return part.full ? elements : 0; }
  static const float* dz_of(const operands<float>& o) { return is_linear ? o.dy : per_sample(o); }

  /// y = w * x
  static blas_product forward_product(const operands<float>& o, const dense_products& part, blas_epilogue epilogue) {
    return {factors_of<P>,
            N,
            part.rows,
            K,
            part.leaves,
            of_weights(o, false),
            of_factor(part, o.x[0], x_row, K),
            of_rows(part, o.y, N, sizeof(Y)),
            epilogue,
            0,
            y_is_narrow ? 16 : alignment_of(S.bias ? o.w[1] : o.w[0]),
            y_is_narrow};
  }
  /// dx = w^T * dz
  static blas_product input_gradient_product(const operands<float>& o, const dense_products& part) {
    return {factors_of<P>,
            K,
            part.rows,
            N,
            part.leaves,
            of_weights(o, true),
            of_factor(part, dz_of(o), z_row, N),
            of_rows(part, o.dx[0], K, sizeof(X)),
            blas_epilogue::none,
            0,
            4,
            x_is_narrow};
  }
  /// dw = dz * x^T
  static blas_product weight_gradient_product(const operands<float>& o, const dense_products& part, blas_epilogue epilogue) {
    const long leaf = stride(part, o.leaves.gradient_stride);
    const auto aligned = [&](const float* at) { return alignment_after(4 * o.leaves.gradient_stride, alignment_of(at)); };
    blas_matrix x = of_factor(part, o.x[0], x_row, K);
    x.transposed = true;
    return {factors_of<P>,
            N,
            K,
            part.rows,
            part.leaves,
            of_factor(part, dz_of(o), z_row, N),
            x,
            {false, N, leaf, aligned(o.dw[0])},
            epilogue,
            leaf,
            aligned(o.dw[1] ? o.dw[1] : o.dw[0])};
  }
};

#endif

}  // namespace machine

#if defined(STRATA_CUBLASLT) || !defined(__CUDACC__)
namespace core {
template <dense_settings S, class P, shape In>
  requires machine::goes_to_blas<S, P, In>
struct kernel<cuda, affine<S>, P, In> : machine::library_dense_kernel<S, linear, P, In> {};

template <dense_settings S, class A, class P, shape In>
  requires(machine::follows_in_a_kernel<A> && machine::goes_to_blas<S, P, In>)
struct kernel<cuda, fused<affine<S>, A>, P, In> : machine::library_dense_kernel<S, A, P, In> {};
}  // namespace core
#endif

}  // namespace strata
