// Metrics on a GPU: the kernel of a loss computes those of its output, too.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <strata/base/all_finite.hpp>
#include <strata/cuda/kernels/losses.hpp>
#include <strata/program/compiled.hpp>
#include <strata/program/metric_sums.hpp>
#include <type_traits>

namespace strata {

namespace machine {

/// The metrics M of one output with N predictions per sample, with the interface of no_metrics. `to` has their pairs of sums,
/// metric after metric.
template <class Loss, class T, long N, class... M>
struct metrics_of_output {
  static constexpr int means = (int(!strata::detail::adds_several<M>) + ... + 0);
  static constexpr bool has_others = (strata::detail::adds_several<M> || ...);
  const T* predictions;
  const std::int32_t* labels;
  const T* targets;
  double* to;
  long stride;  // from leaf to leaf

  static constexpr std::span<const T> row(const T* rows, long n) { return {rows + n * N, std::size_t(N)}; }
  constexpr auto truth(long n) const {
    if constexpr (Loss::labels == label_kind::sparse)
      return labels[n];
    else
      return row(targets, n);
  }

  template <class Row>
  STRATA_DEVICE void measure(const Row& by, [[maybe_unused]] long n, [[maybe_unused]] double* sums) const {
    constexpr bool finds_place = is_long_row(int(N)) && (strata::detail::measures_places<M> || ...);
    [[maybe_unused]] place_of_class place;
    if constexpr (finds_place) place = place_of(by, row(predictions, n), class_of(by, n));
    [[maybe_unused]] const auto next = [&]<class One>(std::type_identity<One>) {
      if constexpr (strata::detail::adds_several<One>)
        return;
      else if constexpr (finds_place && strata::detail::measures_places<One>)
        *sums++ += double(One::measure_place(place));
      else if constexpr (is_loss_of_elements<One> && std::is_base_of_v<strata::detail::measured<One>, One>)
        *sums++ += double(value_of_elements<One, int(N)>(by, predictions + n * N, targets + n * N));
      else
        *sums++ += by.is_first() ? double(One::measure(row(predictions, n), truth(n))) : 0;
    };
    (next(std::type_identity<M>{}), ...);
  }
  constexpr void store([[maybe_unused]] long leaf, [[maybe_unused]] long count, [[maybe_unused]] const double* sums) const {
    [[maybe_unused]] double* at = to + leaf * stride;
    [[maybe_unused]] const auto next = [&]<class One>(std::type_identity<One>) {
      if constexpr (!strata::detail::adds_several<One>) at[0] = *sums++, at[1] = double(count);
      at += 2 * strata::detail::pairs_of_sums<One>(int(N));
    };
    (next(std::type_identity<M>{}), ...);
  }
  constexpr void store_others(long leaf, long begin, long count) const {
    double* at = to + leaf * stride;
    [[maybe_unused]] const auto next = [&]<class One>(std::type_identity<One>) {
      constexpr std::size_t size = 2 * strata::detail::pairs_of_sums<One>(int(N));
      if constexpr (strata::detail::adds_several<One>) {
        for (std::size_t i = 0; i < size; ++i) at[i] = 0;
        for (long n = begin; n < begin + count; ++n)
          One::add(row(predictions, n), truth(n), std::span<double>(at, std::size_t(One::sums(int(N)))));
      }
      at += size;
    };
    (next(std::type_identity<M>{}), ...);
  }

 private:
  /// The class of sample n: of dense labels, the first of the largest ones.
  template <class Row>
  STRATA_DEVICE int class_of(const Row& by, long n) const {
    if constexpr (Loss::labels == label_kind::sparse) {
      return labels[n];
    } else {
      const T* const of = targets + n * N;
      const T largest = by.largest(row(targets, n));
      const int first = by.first_where(int(N), [&](int i) { return of[i] == largest; });
      return first < N ? first : 0;  // the largest is nan
    }
  }
  template <class Row>
  static STRATA_DEVICE place_of_class place_of(const Row& by, std::span<const T> predictions, int label) {
    // Only a loss of the user's may let a label pass that is no class.
    if (label < 0 || label >= N) return place_of_class::none();
    const auto at = [&](int i) { return predictions[std::size_t(i)]; };
    if (by.template sum<long>(int(N), [&](int i) { return long{at(i) != at(i)}; }) > 0) return place_of_class::none();
    return {by.template sum<long>(int(N), [&](int i) { return long{at(i) > at(label)}; }),
            by.template sum<long>(label, [&](int i) { return long{at(i) >= at(label)}; }), strata::detail::is_finite(at(label))};
  }
};

/// The kernel of the loss of output number Output, with the metrics of that output.
template <class Program, class Kernel, int Output>
struct measuring : Kernel {
  using T = typename Program::value_type;

  static void forward(queue q, const operands<T>& o) { Kernel::forward_with(q, o, metrics(o)); }

 protected:
  using counts = strata::detail::sum_counts<Program>;
  /// The sums of a leaf between the loss of this output and its first metric.
  static constexpr long first = []<class... Each>(type_list<Each...>) {
    long pairs = long(counts::outputs) - Output;
    int k = 0;
    ((pairs += k < Output ? long(strata::detail::pairs_of_metrics<Program>(std::size_t(k), typename Each::metrics{})) : 0, ++k),
     ...);
    return 2 * pairs;
  }(typename Program::outputs{});

  static auto metrics(const operands<T>& o) {
    using output = strata::detail::at_t<Output, typename Program::outputs>;
    return [&]<class... M>(type_list<M...>) {
      return metrics_of_output<typename output::loss, T, ends_of_program<Program>.outputs[Output], M...>{
          o.y, o.labels, o.targets, o.loss ? o.loss + first : nullptr, o.leaves.sums_stride};
    }(typename output::metrics{});
  }
};
/// `measuring` for a kernel that computes both directions at once.
template <class Program, class Kernel, int Output>
struct measuring_at_once : measuring<Program, Kernel, Output> {
  using base = measuring<Program, Kernel, Output>;
  static void forward_backward(queue q, const operands<typename base::T>& o) {
    Kernel::forward_backward_with(q, o, base::metrics(o));
  }
};

}  // namespace machine

namespace core {
template <class Program, class Kernel, int Output>
struct kernel_of_output<Program, cuda, Kernel, Output> {
  using type = std::conditional_t<requires { &Kernel::forward_backward; }, machine::measuring_at_once<Program, Kernel, Output>,
                                  machine::measuring<Program, Kernel, Output>>;
};
}  // namespace core

}  // namespace strata
