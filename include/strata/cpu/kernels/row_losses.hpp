// Losses on vectors that depend on a whole row: sums over it come first, then a function of each element and these sums.
#pragma once
#include <strata/cpu/kernels/losses.hpp>
#include <strata/losses/categorical_focal_crossentropy.hpp>
#include <strata/losses/categorical_hinge.hpp>
#include <strata/losses/cosine_similarity.hpp>

namespace strata {

namespace simd {

/// A loss of one row of N predictions x: `value(x, truth, N, scratch)`, `gradient(x, truth, weight, N, scratch, dx, add)`. The
/// scratch has room for `rows_of_scratch` aligned rows.
template <class L>
struct row_loss;

template <>
struct row_loss<cosine_similarity> {
  static constexpr int rows_of_scratch = 0;

  template <class T>
  [[gnu::noinline]] static T value(const T* x, const T* truth, int N, T*) {
    const sums<T> s(x, truth, N);
    return -s.product * s.of_prediction * s.of_truth;
  }
  template <class T>
  [[gnu::noinline]] static void gradient(const T* x, const T* truth, T weight, int N, T*, T* dx, bool add) {
    const sums<T> s(x, truth, N);
    const vec<T> along = broadcast(weight * cosine_similarity::along_prediction(s.product, s.of_prediction, s.of_truth)),
                 against = broadcast(weight * s.of_prediction * s.of_truth);
    for_vectors<T>(N, [&](std::ptrdiff_t i, auto lane) STRATA_INLINE {
      put<T>(lane, dx + i, rounded<T>(along * lane.load(x + i)) - rounded<T>(against * lane.load(truth + i)), add);
    });
  }

 private:
  template <class T>
  struct sums {
    T product, of_prediction, of_truth;

    sums(const T* x, const T* truth, int N) {
      T total[3];
      sums_over<T, 3>(N, total, [&](int i, auto lane, vec<T>* sum) STRATA_INLINE {
        const vec<T> p = lane.load(x + i), t = lane.load(truth + i);
        sum[0] += rounded<T>(p * t), sum[1] += rounded<T>(p * p), sum[2] += rounded<T>(t * t);
      });
      product = total[0];
      of_prediction = strata::detail::inverse_norm(total[1]), of_truth = strata::detail::inverse_norm(total[2]);
    }
  };
};

template <>
struct row_loss<categorical_hinge> {
  static constexpr int rows_of_scratch = 1;

  template <class T>
  [[gnu::noinline]] static T value(const T* x, const T* truth, int N, T* scores) {
    const T missing = missing_margin(x, truth, N, scores);
    return missing < 0 ? T{} : missing;
  }
  template <class T>
  [[gnu::noinline]] static void gradient(const T* x, const T* truth, T weight, int N, T* scores, T* dx, bool add) {
    const bool misses = missing_margin(x, truth, N, scores) > 0;
    const vec<T> by = broadcast(weight);
    for_vectors<T>(N, [&](std::ptrdiff_t i, auto lane) STRATA_INLINE {
      put<T>(lane, dx + i, misses ? rounded<T>(-lane.load(truth + i) * by) : broadcast(T(0)), add);
    });
    if (!misses) return;
    const T best = largest_of(scores, N);
    int rival = 0;
    while (rival + 1 < N && scores[rival] != best) ++rival;
    dx[rival] += strata::detail::rounded((1 - truth[rival]) * weight);
  }

 private:
  /// scores: receives what competes with the score of the right class.
  template <class T>
  static T missing_margin(const T* x, const T* truth, int N, T* scores) {
    const T right = sum_over<T>(N, [&](int i, auto lane) STRATA_INLINE {
      const vec<T> p = lane.load(x + i), t = lane.load(truth + i);
      lane.store(scores + i, (T(1) - t) * p);
      return t * p;
    });
    return largest_of(scores, N) - right + 1;
  }
};

template <class... Options>
struct row_loss<categorical_focal_crossentropy<Options...>> {
  using L = categorical_focal_crossentropy<Options...>;
  static constexpr bool logits = L::settings.from_logits;
  static constexpr int rows_of_scratch = logits ? 2 : 1;

  template <class T>
  [[gnu::noinline]] static T value(const T* x, const T* truth, int N, T* scratch) {
    const row<T> r(x, N, scratch);
    return sum_over<T>(N, [&](int i, auto lane) STRATA_INLINE {
      return r.at(lane, i).value(L::template target<vector_math<T>>(lane.load(truth + i), std::size_t(N)));
    });
  }
  template <class T>
  [[gnu::noinline]] static void gradient(const T* x, const T* truth, T weight, int N, T* scratch, T* dx, bool add) {
    const row<T> r(x, N, scratch);
    T* const slopes = scratch + (rows_of_scratch - 1) * aligned_size<T>(N);
    const vec<T> all = broadcast(sum_over<T>(N,
                                             [&](int i, auto lane) STRATA_INLINE {
                                               const vec<T> slope = r.at(lane, i).slope(
                                                   L::template target<vector_math<T>>(lane.load(truth + i), std::size_t(N)));
                                               lane.store(slopes + i, slope);
                                               return slope;
                                             })),
                 by = broadcast(weight);
    for_vectors<T>(N, [&](std::ptrdiff_t i, auto lane) STRATA_INLINE {
      const vec<T> slope = lane.load(slopes + i), p = r.at(lane, i).p;
      if constexpr (logits)
        put<T>(lane, dx + i, rounded<T>((slope - rounded<T>(p * all)) * by), add);
      else
        put<T>(lane, dx + i, rounded<T>((slope / p - all) * r.inverse_sum * by), add);
    });
  }

 private:
  /// The classes of a row. With logits, their probabilities are in the scratch.
  template <class T>
  struct row {
    const T* x;
    const T* probabilities;
    vec<T> inverse_sum{}, top{}, log_sum{};

    STRATA_INLINE row(const T* of, int N, T* scratch) : x(of), probabilities(scratch) {
      if constexpr (logits) {
        const softmax_sum<T> s = softmax_of(x, N, scratch);
        top = broadcast(s.largest), log_sum = broadcast(T(std::log(s.sum)));
      } else {
        inverse_sum = broadcast(T(1) / sum_over<T>(N, [&](int i, auto lane) STRATA_INLINE { return lane.load(x + i); }));
      }
    }
    template <class Lane>
    STRATA_INLINE auto at(const Lane& lane, std::ptrdiff_t i) const {
      using term = typename L::template class_term<vector_math<T>>;
      if constexpr (logits)
        return term{lane.load(probabilities + i), (lane.load(x + i) - top) - log_sum, broadcast(T(1))};
      else
        return term::of_share(lane.load(x + i) * inverse_sum);
    }
  };
};

template <class L>
concept loss_of_rows = requires { row_loss<L>::rows_of_scratch; };

}  // namespace simd

namespace core {
/// x, y: (count, N); y = x.
template <loss_function L, class P, shape In>
  requires simd::loss_of_rows<L>
struct kernel<cpu, L, P, In> : simd::loss_kernel<P, In> {
  using base = simd::loss_kernel<P, In>;
  using typename base::T;
  static constexpr kernel_traits traits{
      .scratch = simd::row_loss<L>::rows_of_scratch * simd::aligned_size<T>(base::N), .reads_input = false, .reads_output = true};

  static void forward(const operands<T>& o) {
    simd::copy_rows(o.x[0], base::N, o.y, base::N, o.count, base::N);
    for (int n = 0; o.loss && n < o.count; ++n)
      detail::add_loss(o, n, simd::row_loss<L>::value(base::x(o, n), base::truth(o, n), base::N, o.scratch));
  }
  static void backward(const operands<T>& o) {
    for (int n = 0; o.dx[0] && n < o.count; ++n)
      simd::row_loss<L>::gradient(static_cast<const T*>(base::y(o, n)), o.targets + std::ptrdiff_t(n) * base::N,
                                  detail::weight_of(o, n), base::N, o.scratch, base::dx(o, n), o.adds_dx[0]);
  }
};
}  // namespace core

}  // namespace strata
