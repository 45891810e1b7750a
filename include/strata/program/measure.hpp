// Metrics of the predictions of a micro-batch, and where predictions go.
#pragma once
#include <algorithm>
#include <cstddef>
#include <span>
#include <strata/concepts/batch_source.hpp>
#include <strata/concepts/metric.hpp>
#include <strata/kernel/kernel.hpp>
#include <strata/program/metric_sums.hpp>
#include <strata/program/program.hpp>
#include <type_traits>

namespace strata::detail {

/// Adds metric M of one sample to its sums, and advances `sums` to those of the next metric.
template <class M, class T, class Truth>
constexpr void measure_sample(std::span<const T> prediction, Truth truth, double*& sums) {
  if constexpr (adds_several<M>) {
    M::add(prediction, truth, std::span<double>(sums, std::size_t(M::sums(int(prediction.size())))));
  } else {
    sums[0] += double(M::measure(prediction, truth));
    sums[1] += 1;
  }
  sums += 2 * pairs_of_sums<M>(int(prediction.size()));
}

/// Adds the metrics of one output, for each sample, to the sums at `to`.
template <class Loss, class... M, class T>
constexpr void measure_output(type_list<M...>, const T* predictions, std::size_t size, const truth_rows<T>& y, int count,
                              double* to) {
  for (int n = 0; n < count; ++n) {
    const std::span<const T> one(predictions + std::size_t(n) * size, size);
    [[maybe_unused]] double* sums = to;
    if constexpr (Loss::labels == label_kind::sparse)
      (measure_sample<M>(one, y.labels[n], sums), ...);
    else
      (measure_sample<M>(one, std::span<const T>(y.targets + std::size_t(n) * size, size), sums), ...);
  }
}

/// Adds the metrics of all outputs, one after the other.
template <class Program, class T = typename Program::value_type>
constexpr void measure(const output_rows<const T>& predictions, const samples<T>& batch, double* to) {
  constexpr const end_sizes& ends = ends_of_program<Program>;
  [&]<class... Output>(type_list<Output...>) {
    [[maybe_unused]] int k = 0;
    const auto next = [&]<class One>(std::type_identity<One>) {
      if constexpr (length(typename One::metrics{}) > 0)
        measure_output<typename One::loss>(typename One::metrics{}, predictions.at[k], std::size_t(ends.outputs[k]),
                                           batch.truths[k], batch.count, to);
      to += 2 * pairs_of_metrics<Program>(std::size_t(k), typename One::metrics{});
      ++k;
    };
    (next(std::type_identity<Output>{}), ...);
  }(typename Program::outputs{});
}

/// The use that a host engine makes of the predictions of a micro-batch. Specialised by a backend whose ranks have only a part of
/// the predictions each.
template <class Program, class Backend>
struct use_of_predictions {
  using T = typename Program::value_type;

  static void measure(const output_rows<const T>& predictions, const samples<T>& batch, double* to, rank_exchange<T>*) {
    detail::measure<Program>(predictions, batch, to);
  }
  /// Copies the predictions of output k for `count` samples to `to`, unless that is null.
  static void give(const T* predictions, int k, int count, T* to, rank_exchange<T>*) {
    if (to) std::copy_n(predictions, count * ends_of_program<Program>.outputs[k], to);
  }
};

}  // namespace strata::detail
