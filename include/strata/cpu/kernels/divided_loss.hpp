// The last dense layer of a classifier together with its loss, where each rank has a part of the classes.
#pragma once
#include <algorithm>
#include <cmath>
#include <strata/base/all_finite.hpp>
#include <strata/cpu/kernels/divided.hpp>
#include <strata/cpu/kernels/losses.hpp>
#include <strata/metrics/categorical_accuracy.hpp>
#include <strata/program/measure.hpp>

namespace strata {

namespace detail {
/// y = softmax(x W + b) and its crossentropy L; or, if L takes logits, y = x W + b. y has the classes of this rank only. Ranks
/// send each other three values for a sample: the largest logit, then the sum of exponentials and this rank's share of the loss.
/// In the backward pass they add up the gradient of x. Shoeybi et al. (2019), section 3, https://arxiv.org/abs/1909.08053
template <class Base, class Op, class L, class P, shape In>
struct kernel_by_classes : two_kernels<typename find_kernel<Base, typename Op::part, P, In>::type, no_kernel> {
  using T = typename P::value_type;
  using of_part = typename find_kernel<Base, typename Op::part, P, In>::type;
  using class_loss = simd::class_loss<L>;
  static constexpr int C = Op::classes, all_classes = Op::output_shape(In).value.last();
  static constexpr bool logits = simd::takes_logits<L>;
  static_assert(traits_of_kernel<of_part>.saved == 0);
  using memory = typename two_kernels<of_part, no_kernel>::template with_scratch<C, T>;
  static constexpr kernel_traits traits = [] {
    kernel_traits ours = memory::traits;
    ours.part_of_output = C, ours.reads_output = true;
    ours.saved = logits ? 2 : 0;  // the largest logit, and the factor of the exponentials
    return ours;
  }();

  static void forward(const operands<T>& o) {
    of_part::forward(o);
    T* own = o.ranks->own();
    for (int n = 0; n < o.count; ++n) own[n] = simd::largest_of(row(o, n), C);
    T* const largest = memory::own(o);
    const T* all = o.ranks->gather(o.count);
    own = o.ranks->own();
    for (int n = 0; n < o.count; ++n) {
      largest[n] = all[n];
      for (int r = 1; r < o.ranks->size(); ++r) largest[n] = std::max(largest[n], all[long(r) * o.count + n]);
      own[2 * n + 1] = o.loss ? distance_of_targets(o, n, largest[n]) : T{};
      own[2 * n] = simd::sum_of_exponentials(row(o, n), largest[n], C, logits ? nullptr : row(o, n));
    }
    all = o.ranks->gather(2L * o.count);
    for (int n = 0; n < o.count; ++n) {
      T sum{}, distance{};
      for (int r = 0; r < o.ranks->size(); ++r) {
        const T* const its = all + 2 * (long(r) * o.count + n);
        sum += its[0], distance += its[1];
      }
      if constexpr (logits)
        o.saved[2 * n] = largest[n], o.saved[2 * n + 1] = T(1) / sum;
      else
        multiply_row(row(o, n), T(1) / sum);
      if (o.loss) add_loss(o, n, distance + rounded(T(std::log(sum)) * sum_of_targets(o, n)));
    }
  }

  static void backward(const operands<T>& o) {
    T* const dz = memory::own(o);
    for (int n = 0; n < o.count; ++n) gradient_of_logits(o, n, dz + std::ptrdiff_t(n) * C);
    operands<T> part = o;
    part.dy = dz;
    backward_with_sum_over_ranks<of_part>(part, long(o.count) * In.size());
  }

  static void derive(const T* const* w, T* derived) {
    if constexpr (requires { of_part::derive(w, derived); }) of_part::derive(w, derived);
  }

 private:
  static T* row(const operands<T>& o, int n) { return o.y + std::ptrdiff_t(n) * C; }
  static int first_class(const operands<T>& o) { return o.ranks->rank() * C; }
  static const T* targets(const operands<T>& o, int n) { return o.targets + std::ptrdiff_t(n) * all_classes; }

  /// The sum of target * (largest logit - logit) over the classes of this rank.
  static T distance_of_targets(const operands<T>& o, int n, T largest) {
    const T* const x = row(o, n);
    if constexpr (class_loss::sparse) {
      const int own = o.labels[n] - first_class(o);
      return own >= 0 && own < C ? largest - x[own] : T{};
    } else {
      const T* const truth = targets(o, n) + first_class(o);
      return simd::sum_over<T>(C, [&](int i, auto lane) STRATA_INLINE {
        using V = simd::vec<T>;
        const V t = class_loss::template target<T>(lane.load(truth + i), all_classes),
                distance = t * (simd::broadcast(largest) - lane.load(x + i));
        return t == T(0) ? V{} : distance;  // zero times infinity would be nan
      });
    }
  }
  /// The sum of targets over the classes of all ranks.
  static T sum_of_targets(const operands<T>& o, int n) {
    if constexpr (class_loss::sparse)
      return T(1);
    else
      return simd::sum_over<T>(all_classes, [&](int i, auto lane) STRATA_INLINE {
        return class_loss::template target<T>(lane.load(targets(o, n) + i), all_classes);
      });
  }
  [[gnu::noinline]] static void multiply_row(T* y, T factor) {
    simd::for_vectors<T>(C, [&](std::ptrdiff_t i, auto lane) STRATA_INLINE { lane.store(y + i, lane.load(y + i) * factor); });
  }
  /// dz = weight * (probability * sum of targets - target)
  [[gnu::noinline]] static void gradient_of_logits(const operands<T>& o, int n, T* dz) {
    using V = simd::vec<T>;
    const T* y = row(o, n);
    T factor = sum_of_targets(o, n);
    if constexpr (logits) {
      simd::sum_of_exponentials(y, o.saved[2 * n], C, dz);
      y = dz, factor *= o.saved[2 * n + 1];
    }
    const T weight = weight_of(o, n);
    if constexpr (class_loss::sparse) {
      simd::for_vectors<T>(
          C, [&](std::ptrdiff_t i, auto lane) STRATA_INLINE { lane.store(dz + i, lane.load(y + i) * (factor * weight)); });
      if (const int own = o.labels[n] - first_class(o); own >= 0 && own < C) dz[own] -= weight;
    } else {
      const T* const truth = targets(o, n) + first_class(o);
      simd::for_vectors<T>(C, [&](std::ptrdiff_t i, auto lane) STRATA_INLINE {
        const V slope = simd::multiply_add(lane.load(y + i), simd::broadcast(factor),
                                           -class_loss::template target<T>(lane.load(truth + i), all_classes));
        lane.store(dz + i, simd::rounded<T>(slope * simd::broadcast(weight)));
      });
    }
  }
};

/// For ranks with a part of the classes each: metrics get the rank of the right class's prediction among all classes.
template <class Program, class Base>
  requires(classes_of_rank_in<typename Program::network::items> > 0)
struct use_of_predictions<Program, tensor_backend<Base>> {
  using T = typename Program::value_type;
  static constexpr int C = classes_of_rank_in<typename Program::network::items>;
  static constexpr int all_classes = Program::network::output_shape.last();

  static void measure(const output_rows<const T>& predictions, const samples<T>& batch, double* to, rank_exchange<T>* ranks) {
    if constexpr (length(typename Program::metrics{}) > 0) {
      const int count = batch.count, first = ranks->rank() * C;
      T* own = ranks->own();
      for (int n = 0; n < count; ++n) {
        const int at = label_of(batch, n) - first;
        own[n] = at >= 0 && at < C ? predictions.at[0][std::ptrdiff_t(n) * C + at] : T{};
      }
      const T* all = ranks->gather(count);
      own = ranks->own();
      for (int n = 0; n < count; ++n) {
        const int label = label_of(batch, n);
        const place_of_class its = compare(predictions.at[0] + std::ptrdiff_t(n) * C, label - first, all[label / C * count + n]);
        // Negative where the prediction for the class is not finite.
        own[2 * n] = its.is_finite ? T(its.greater) : -1 - T(its.greater), own[2 * n + 1] = T(its.not_less_before);
      }
      all = ranks->gather(2L * count);
      for (int n = 0; n < count; ++n) {
        place_of_class place;
        for (int r = 0; r < ranks->size(); ++r) {
          const T* const its = all + 2 * (long(r) * count + n);
          place.greater += long(its[0] < 0 ? -1 - its[0] : its[0]), place.not_less_before += long(its[1]);
          place.is_finite = place.is_finite && its[0] >= 0;
        }
        add(typename Program::metrics{}, place, to);
      }
    }
  }

  static void give(const T* predictions, int, int count, T* to, rank_exchange<T>* ranks) {
    std::copy_n(predictions, std::ptrdiff_t(count) * C, ranks->own());
    const T* const parts = ranks->gather(long(count) * C);
    if (to) join_columns(parts, ranks->size(), count, C, all_classes, to);
  }

 private:
  static int label_of(const samples<T>& batch, int n) {
    if constexpr (Program::loss::labels == label_kind::sparse)
      return batch.truths[0].labels[n];
    else
      return position_of_largest(
          std::span<const T>(batch.truths[0].targets + std::ptrdiff_t(n) * all_classes, std::size_t(all_classes)));
  }
  /// Compares within this rank's predictions. label: the index of the class among them, may be outside; its_own: its prediction.
  static place_of_class compare(const T* predictions, int label, T its_own) {
    place_of_class p{.is_finite = is_finite(its_own)};
    for (int i = 0; i < C; ++i) {
      if (predictions[i] != predictions[i]) return place_of_class::none();
      p.greater += predictions[i] > its_own;
      p.not_less_before += i < label && !(predictions[i] < its_own);
    }
    return p;
  }
  template <class... M>
  static void add(type_list<M...>, place_of_class place, double* to) {
    ((to[0] += double(M::measure_place(place)), to[1] += 1, to += 2), ...);
  }
};
}  // namespace detail

namespace core {
template <class Base, class Operation, int Ranks, bool Descends, class L, class P, shape In>
  requires detail::takes_softmax<L>
struct kernel<tensor_backend<Base>, fused<classes_of_rank<Operation, Ranks, Descends>, softmax, L>, P, In>
    : detail::kernel_by_classes<Base, classes_of_rank<Operation, Ranks, Descends>, L, P, In> {};

template <class Base, class Operation, int Ranks, bool Descends, class L, class P, shape In>
  requires simd::takes_logits<L>
struct kernel<tensor_backend<Base>, fused<classes_of_rank<Operation, Ranks, Descends>, L>, P, In>
    : detail::kernel_by_classes<Base, classes_of_rank<Operation, Ranks, Descends>, L, P, In> {};
}  // namespace core

}  // namespace strata
