// prediction: (C), a probability per class  truth: (C), e.g. a one-hot row
#pragma once
#include <span>
#include <strata/concepts/batch_source.hpp>
#include <strata/losses/class_crossentropy.hpp>
#include <strata/losses/focal.hpp>
#include <strata/losses/measured.hpp>
#include <type_traits>

namespace strata {

namespace core {
struct categorical_focal_settings {
  bool from_logits = false;
  decimal label_smoothing{}, alpha{25, -2}, gamma = 2;
};
}  // namespace core

/// -alpha sum_i truth[i] (1 - p[i])^gamma log p[i], where p is the prediction divided by its sum and clamped to [1e-7, 1 - 1e-7]:
/// classes that are predicted well weigh little (Lin et al. 2017). With from_logits, p is the softmax of the prediction, and
/// nothing is clamped. Options: from_logits, label_smoothing, focal_alpha, focal_gamma.
/// https://keras.io/api/losses/probabilistic_losses/#categoricalfocalcrossentropy-class
template <class... Options>
struct categorical_focal_crossentropy : core::layer_options<core::categorical_focal_settings, Options...>,
                                        detail::measured<categorical_focal_crossentropy<Options...>> {
  static constexpr auto name = "categorical_focal_crossentropy";
  static constexpr label_kind labels = label_kind::dense;
  static constexpr bool one_hot = true;
  static constexpr core::categorical_focal_settings settings = categorical_focal_crossentropy::configured({});
  static constexpr core::operation_traits traits{.takes = settings.from_logits ? core::value_range::real
                                                                               : core::value_range::distribution};

  static constexpr core::expected_shape output_shape(shape in) {
    return detail::shape_for_focal(settings, detail::shape_of_classes(in));
  }

  /// A class with probability p, and log p; the last member is 0 if p is clamped, so that it has no gradient, else 1.
  template <class M>
  struct class_term {
    using T = typename M::number;
    using V = typename M::value;
    V p, log_p, active;

    /// From the share of the class in the sum of the predictions.
    static constexpr class_term of_share(V share) {
      const V p = detail::at_most<M>(detail::at_least<M>(share, 1e-7), 1 - 1e-7), one = detail::spread_over<M>(1);
      const V unless_above = p < share ? V{} : one;
      return {p, M::log(p), p > share ? V{} : unless_above};
    }
    /// Its contribution to the loss.
    constexpr V value(V target) const {
      const V y = -T(alpha) * target * detail::power<M>(T(1) - p, gamma) * log_p;
      return target == V{} ? V{} : y;  // zero times infinity would be nan
    }
    /// p times the derivative of value() by p.
    constexpr V slope(V target) const {
      const V of_weight = M::rounded(detail::slope_of_power<M>(T(1) - p, gamma) * p * log_p);
      const V y = T(alpha) * target * (of_weight - M::rounded(detail::power<M>(T(1) - p, gamma))) * active;
      return target == V{} ? V{} : y;
    }
  };

  /// The smoothed truth of one class.
  template <class M, class V = typename M::value>
  static constexpr V target(V truth, std::size_t classes) {
    using T = typename M::number;
    if constexpr (smoothing == 0)
      return truth;
    else
      return M::rounded(truth * T(1 - smoothing)) + T(smoothing) / T(classes);
  }

  template <class T>
  static constexpr T value(std::span<const T> prediction, std::span<const T> truth) {
    const row<T> r(prediction);
    T loss{};
    for (std::size_t i = 0; i < prediction.size(); ++i)
      loss += detail::rounded(r.at(prediction[i]).value(target<detail::number_math<T>>(truth[i], truth.size())));
    return loss;
  }
  template <class T>
  static constexpr void gradient(std::span<const T> prediction, std::span<const T> truth, std::span<T> dx) {
    const row<T> r(prediction);
    T all{};
    for (std::size_t i = 0; i < dx.size(); ++i) {
      dx[i] = r.at(prediction[i]).slope(target<detail::number_math<T>>(truth[i], truth.size()));
      all += dx[i];
    }
    // With g = d/dp, it is (g_i - sum_j p_j g_j) / sum x for p = x / sum x, and p_i (g_i - sum_j p_j g_j) for p = softmax(x).
    for (std::size_t i = 0; i < dx.size(); ++i) {
      const T p = r.at(prediction[i]).p;
      dx[i] = settings.from_logits ? dx[i] - detail::rounded(p * all) : (dx[i] / p - all) / r.sum.sum;
    }
  }

 private:
  static constexpr double gamma = settings.gamma.value(), alpha = settings.alpha.value(),
                          smoothing = settings.label_smoothing.value();

  template <class T>
  struct plain_sum {
    T sum{};
    explicit constexpr plain_sum(std::span<const T> prediction) {
      for (T p : prediction) sum += p;
    }
  };
  template <class T>
  struct row {
    std::conditional_t<settings.from_logits, detail::softmax_sum<T>, plain_sum<T>> sum;

    explicit constexpr row(std::span<const T> prediction) : sum(prediction) {}
    constexpr class_term<detail::number_math<T>> at(T x) const {
      if constexpr (settings.from_logits)
        return {sum.probability(x), -sum.negative_log_probability(x), T(1)};
      else
        return class_term<detail::number_math<T>>::of_share(x / sum.sum);
    }
  };
};

}  // namespace strata
