// Losses. Element-wise ones are traced on whole tensors, those of the library that depend on a row are emitted here, and any
// other loss is traced for each element of a row.
#pragma once
#include <strata/losses/binary_crossentropy.hpp>
#include <strata/losses/categorical_crossentropy.hpp>
#include <strata/losses/categorical_focal_crossentropy.hpp>
#include <strata/losses/categorical_hinge.hpp>
#include <strata/losses/cosine_similarity.hpp>
#include <strata/losses/element_wise.hpp>
#include <strata/losses/huber.hpp>
#include <strata/losses/mean_absolute_error.hpp>
#include <strata/losses/mean_squared_error.hpp>
#include <strata/losses/sparse_categorical_crossentropy.hpp>
#include <strata/reference/losses.hpp>
#include <strata/xla/emitter/activations.hpp>
#include <strata/xla/emitter/rows.hpp>

namespace strata::stablehlo {

namespace detail {

/// The number of predictions of a sample.
std::int64_t size_of_row(tensor x);

/// The mean over a row, or the sum with `adds`, of a function of prediction and truth.
tensor value_of_elements(tensor each, bool adds);
tensor gradient_of_elements(tensor each, bool adds);

/// A loss whose `value` and `gradient` of one element are those of all: a mean over the elements.
template <class L>
struct mean_of_elements {
  static tensor value(const loss_call& c) {
    return value_of_elements(trace(c.x,
                                   [&] {
                                     const traced p(c.x), t(c.targets);
                                     return L::value(std::span<const traced>(&p, 1), std::span<const traced>(&t, 1));
                                   }),
                             false);
  }
  static tensor gradient(const loss_call& c) {
    return gradient_of_elements(trace(c.x,
                                      [&] {
                                        const traced p(c.x), t(c.targets);
                                        traced dx;
                                        L::gradient(std::span<const traced>(&p, 1), std::span<const traced>(&t, 1),
                                                    std::span<traced>(&dx, 1));
                                        return dx;
                                      }),
                                false);
  }
};

/// A crossentropy of classes, from logits or from shares. targets: (rows, classes).
tensor value_of_classes(tensor x, tensor targets, bool from_logits);
tensor gradient_of_classes(tensor x, tensor targets, bool from_logits);
/// (1 - amount) * targets + amount / classes
tensor smoothed(tensor targets, double amount);

template <bool FromLogits>
struct crossentropy_of_labels {
  static tensor targets(const loss_call& c) { return one_hot(c.labels, size_of_row(c.x), c.x.type().of); }
  static tensor value(const loss_call& c) { return value_of_classes(c.x, targets(c), FromLogits); }
  static tensor gradient(const loss_call& c) { return gradient_of_classes(c.x, targets(c), FromLogits); }
};
template <class L, bool FromLogits>
struct crossentropy_of_shares {
  static tensor value(const loss_call& c) { return value_of_classes(c.x, smoothed(c.targets, L::smoothing), FromLogits); }
  static tensor gradient(const loss_call& c) { return gradient_of_classes(c.x, smoothed(c.targets, L::smoothing), FromLogits); }
};

/// The probability of each class, and the terms of categorical_focal_crossentropy.
template <class L>
struct focal_of_classes {
  using term = typename L::template class_term<traced_math>;
  static constexpr bool from_logits = L::settings.from_logits;

  struct row {
    tensor p, log_p, sum;  // p: from logits a softmax, else x / sum; sum: without logits only
    explicit row(tensor x) {
      if (from_logits) {
        const shifted_logits s(x);
        p = s.exponentials / along_first_axes(s.sums, x);
        log_p = s.shifted - along_first_axes(unary("log", s.sums), x);
      } else {
        sum = along_first_axes(sum_of_rows(x), x);
        p = x / sum;
      }
    }
    term of_element() const {
      if (from_logits) return {traced(p), traced(log_p), traced(1)};
      return term::of_share(traced(p));
    }
  };
  static tensor targets(const loss_call& c) { return smoothed(c.targets, L::settings.label_smoothing.value()); }

  static tensor value(const loss_call& c) {
    const row r(c.x);
    const tensor t = targets(c);
    return sum_of_rows(trace(c.x, [&] { return r.of_element().value(traced(t)); }));
  }
  static tensor gradient(const loss_call& c) {
    const row r(c.x);
    const tensor t = targets(c), slope = trace(c.x, [&] { return r.of_element().slope(traced(t)); });
    const tensor all = along_first_axes(sum_of_rows(slope), slope), p = trace(c.x, [&] { return r.of_element().p; });
    return from_logits ? slope - p * all : (slope / p - all) / r.sum;
  }
};

}  // namespace detail

/// Any other loss: the formula is traced for each element of a row, so rows should be short.
template <loss_function L>
struct loss_emission<L> {
  static tensor value(const loss_call& c) {
    return detail::trace_rows<L::labels>(
        L::name, c.x, c.labels, c.targets, 1,
        [](std::span<const traced> prediction, auto truth) { return std::vector<traced>{L::value(prediction, truth)}; })[0];
  }
  static tensor gradient(const loss_call& c) {
    const std::size_t n = std::size_t(detail::size_of_row(c.x));
    std::vector<tensor> columns =
        detail::trace_rows<L::labels>(L::name, c.x, c.labels, c.targets, n, [&](std::span<const traced> prediction, auto truth) {
          std::vector<traced> dx(n);
          L::gradient(prediction, truth, std::span<traced>(dx));
          return dx;
        });
    for (tensor& t : columns) t = reshape(t, {t.extent(0), 1});
    return reshape(concatenate(columns, 1), c.x.extents());
  }
};

template <loss_function L>
  requires std::is_base_of_v<detail::any_element_wise, L>
struct loss_emission<L> {
  static constexpr bool adds = requires { L::adds_elements; };
  static tensor value(const loss_call& c) {
    return detail::value_of_elements(
        trace(c.x, [&] { return L::template value_of<traced_math>(traced(c.x), traced(c.targets)); }), adds);
  }
  static tensor gradient(const loss_call& c) {
    return detail::gradient_of_elements(
        trace(c.x, [&] { return L::template slope_of<traced_math>(traced(c.x), traced(c.targets)); }), adds);
  }
};

/// A loss with the trait `is_mean_of_elements`.
template <loss_function L>
  requires(traits_of<L>.is_mean_of_elements && !std::is_base_of_v<detail::any_element_wise, L>)
struct loss_emission<L> : detail::mean_of_elements<L> {};

/// Computed from the logits before the sigmoid.
template <class... Options>
  requires(!binary_crossentropy<Options...>::settings.from_logits)
struct loss_emission<fused<sigmoid, binary_crossentropy<Options...>>>
    : detail::mean_of_elements<binary_crossentropy<Options..., from_logits>> {};

template <class... Options>
struct loss_emission<sparse_categorical_crossentropy<Options...>>
    : detail::crossentropy_of_labels<sparse_categorical_crossentropy<Options...>::settings.from_logits> {};
template <class... Options>
struct loss_emission<categorical_crossentropy<Options...>>
    : detail::crossentropy_of_shares<categorical_crossentropy<Options...>,
                                     categorical_crossentropy<Options...>::settings.from_logits> {};
/// Computed from the logits before the softmax.
template <>
struct loss_emission<fused<softmax, sparse_categorical_crossentropy<>>> : detail::crossentropy_of_labels<true> {};
template <class... Options>
  requires(!categorical_crossentropy<Options...>::settings.from_logits)
struct loss_emission<fused<softmax, categorical_crossentropy<Options...>>>
    : detail::crossentropy_of_shares<categorical_crossentropy<Options...>, true> {};

template <class... Options>
struct loss_emission<categorical_focal_crossentropy<Options...>>
    : detail::focal_of_classes<categorical_focal_crossentropy<Options...>> {};
template <>
struct loss_emission<cosine_similarity> {
  static tensor value(const loss_call& c);
  static tensor gradient(const loss_call& c);
};
template <>
struct loss_emission<categorical_hinge> {
  static tensor value(const loss_call& c);
  static tensor gradient(const loss_call& c);
};

}  // namespace strata::stablehlo

#if STRATA_DEFINES
#include <strata/xla/emitter/losses.ipp>
#endif
