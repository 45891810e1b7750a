// Metrics: what the samples of a replica add to their sums.
#pragma once
#include <strata/concepts/metric.hpp>
#include <strata/metrics/accuracy.hpp>
#include <strata/metrics/auc.hpp>
#include <strata/metrics/confusion.hpp>
#include <strata/metrics/confusion_matrix.hpp>
#include <strata/metrics/f1_score.hpp>
#include <strata/metrics/r2_score.hpp>
#include <strata/metrics/root_mean_squared_error.hpp>
#include <strata/metrics/top_k_categorical_accuracy.hpp>
#include <strata/xla/emitter/losses.hpp>

namespace strata::stablehlo {

namespace detail {
/// (1, 2): the sum of (rows) over samples, and their number.
tensor mean_over_samples(const metric_call& c, tensor of_row);
/// Arranges a tensor (n), or scalars, as (pairs, 2).
tensor pairs_of(tensor numbers);
tensor pairs_of_scalars(std::span<const tensor> numbers);

/// The two conditions of yes-or-no metrics for each element: predicted positive, and truly positive.
struct yes_or_no {
  tensor predicted, is_true;  // (rows, n) of i1

  yes_or_no(const metric_call& c, const confusion_settings& s);
  /// The number of elements of this kind, over the samples.
  tensor count(const metric_call& c, detail::confusion what) const;
};

/// The truth of each element as truth_of_element says: (rows, n).
tensor truth_of_elements(const metric_call& c);

tensor right_class(const metric_call& c, tensor label);
tensor right_side(const metric_call& c, double threshold);
tensor among_largest(const metric_call& c, tensor label, int k);
tensor true_label(const metric_call& c);
tensor histogram_of_auc(const metric_call& c, int thresholds, bool from_logits);
tensor counts_of_f1(const metric_call& c, const f1_settings& s);
tensor counts_of_classes(const metric_call& c, double threshold);
tensor sums_of_r2(const metric_call& c);
tensor sums_of_squares(const metric_call& c);

template <class M, detail::confusion... What>
struct counts_of_confusion {
  static tensor sums(const metric_call& c) {
    const yes_or_no each(c, M::settings);
    const tensor counts[] = {each.count(c, What)...};
    return pairs_of_scalars(counts);
  }
};
/// The true positives; and the sum of these and Other.
template <class M, detail::confusion Other>
struct share_of_positives {
  static tensor sums(const metric_call& c) {
    const yes_or_no each(c, M::settings);
    const tensor right = each.count(c, detail::confusion::true_positive);
    const tensor counts[] = {right, right + each.count(c, Other)};
    return pairs_of_scalars(counts);
  }
};
}  // namespace detail

/// A loss, or a metric of the user: its formula is traced for each element of a row. Its sums may depend only on comparisons of
/// predictions, unless they are generic over their value.
template <metric M>
struct metric_emission<M> {
  static tensor sums(const metric_call& c) {
    if constexpr (loss_function<M>) {
      const tensor value = loss_emission<M>::value({c.step, c.predictions, c.labels, c.targets});
      return detail::mean_over_samples(c, std::is_same_v<M, cosine_similarity> ? -value : value);
    } else {
      return c.labels ? traced_sums<label_kind::sparse>(c) : traced_sums<label_kind::dense>(c);
    }
  }

 private:
  template <label_kind Kind>
  static tensor traced_sums(const metric_call& c) {
    if constexpr (!measures<M, Kind>) {
      return {};  // the trainer has refused such a pair
    } else if constexpr (detail::adds_several<M>) {
      const std::size_t n = M::sums(int(detail::size_of_row(c.predictions)));
      std::vector<tensor> all =
          detail::trace_rows<Kind>(M::name, c.predictions, c.labels, c.targets, n, [&](std::span<const traced> p, auto truth) {
            std::vector<double> to(n);
            M::add(p, truth, std::span<double>(to));
            return std::vector<traced>(to.begin(), to.end());
          });
      for (tensor& t : all) t = sum(c.step.only_samples(t));
      return detail::pairs_of_scalars(all);
    } else {
      return detail::mean_over_samples(
          c, detail::trace_rows<Kind>(M::name, c.predictions, c.labels, c.targets, 1, [](std::span<const traced> p, auto truth) {
            return std::vector<traced>{M::measure(p, truth)};
          })[0]);
    }
  }
};

template <>
struct metric_emission<accuracy> {
  static tensor sums(const metric_call& c) {
    return detail::mean_over_samples(
        c, detail::size_of_row(c.predictions) > 1 ? detail::right_class(c, detail::true_label(c)) : detail::right_side(c, 0.5));
  }
};
template <>
struct metric_emission<sparse_categorical_accuracy> {
  static tensor sums(const metric_call& c) { return detail::mean_over_samples(c, detail::right_class(c, c.labels)); }
};
template <>
struct metric_emission<categorical_accuracy> {
  static tensor sums(const metric_call& c) { return detail::mean_over_samples(c, detail::right_class(c, detail::true_label(c))); }
};
template <decimal Threshold>
struct metric_emission<binary_accuracy<Threshold>> {
  static tensor sums(const metric_call& c) { return detail::mean_over_samples(c, detail::right_side(c, Threshold.value())); }
};
template <int K>
struct metric_emission<sparse_top_k_categorical_accuracy<K>> {
  static tensor sums(const metric_call& c) { return detail::mean_over_samples(c, detail::among_largest(c, c.labels, K)); }
};
template <int K>
struct metric_emission<top_k_categorical_accuracy<K>> {
  static tensor sums(const metric_call& c) {
    return detail::mean_over_samples(c, detail::among_largest(c, detail::true_label(c), K));
  }
};
template <class... Options>
struct metric_emission<true_positives<Options...>>
    : detail::counts_of_confusion<true_positives<Options...>, detail::confusion::true_positive> {};
template <class... Options>
struct metric_emission<false_positives<Options...>>
    : detail::counts_of_confusion<false_positives<Options...>, detail::confusion::false_positive> {};
template <class... Options>
struct metric_emission<true_negatives<Options...>>
    : detail::counts_of_confusion<true_negatives<Options...>, detail::confusion::true_negative> {};
template <class... Options>
struct metric_emission<false_negatives<Options...>>
    : detail::counts_of_confusion<false_negatives<Options...>, detail::confusion::false_negative> {};
template <class... Options>
struct metric_emission<precision_score<Options...>>
    : detail::share_of_positives<precision_score<Options...>, detail::confusion::false_positive> {};
template <class... Options>
struct metric_emission<recall<Options...>> : detail::share_of_positives<recall<Options...>, detail::confusion::false_negative> {};
template <class... Options>
struct metric_emission<auc<Options...>> {
  static tensor sums(const metric_call& c) {
    return detail::histogram_of_auc(c, auc<Options...>::thresholds, auc<Options...>::settings.from_logits);
  }
};
template <class... Options>
struct metric_emission<f1_score<Options...>> {
  static tensor sums(const metric_call& c) { return detail::counts_of_f1(c, f1_score<Options...>::settings); }
};
template <decimal Threshold>
struct metric_emission<confusion_matrix<Threshold>> {
  static tensor sums(const metric_call& c) { return detail::counts_of_classes(c, Threshold.value()); }
};
template <>
struct metric_emission<r2_score> {
  static tensor sums(const metric_call& c) { return detail::sums_of_r2(c); }
};
template <>
struct metric_emission<root_mean_squared_error> {
  static tensor sums(const metric_call& c) { return detail::sums_of_squares(c); }
};

}  // namespace strata::stablehlo

#if STRATA_DEFINES
#include <strata/xla/emitter/metrics.ipp>
#endif
