// The predictions of a sample for losses and metrics: rows along the last axis.
#pragma once
#include <strata/concepts/loss.hpp>
#include <strata/xla/emitter/emission.hpp>
#include <strata/xla/emitter/traced.hpp>

namespace strata::stablehlo {

/// (rows, all other extents).
tensor as_rows(tensor x);
/// (rows, classes): 1 at the index of each row, else 0.
tensor one_hot(tensor indices, std::int64_t classes, element of);
/// (rows) of i32: where the largest number of (rows, n) stands; of equal ones, the first.
tensor position_of_largest(tensor x);

namespace detail {
/// Each number of a row (rows, n), as a tensor (rows).
std::vector<traced> numbers_of_rows(tensor x);

/// f(prediction, truth) of one row, with std::span<const traced> and, for sparse labels, each class; f returns some results.
/// name: of the formula, for messages.
template <label_kind Kind, class F>
std::vector<tensor> trace_rows(const char* name, tensor x, tensor labels, tensor targets, std::size_t results, F&& f) {
  const set_for_now named(formula_name, name);
  const std::vector<traced> numbers = numbers_of_rows(as_rows(x));
  const std::span<const traced> prediction(numbers);
  const tensor like = filled(0, numbers[0].in(x));
  std::vector<tensor> out;
  if constexpr (Kind == label_kind::dense) {
    const std::vector<traced> truth = numbers_of_rows(as_rows(targets));
    for (const traced t : select_paths(like, [&] { return f(prediction, std::span<const traced>(truth)); }))
      out.push_back(t.in(like));
  } else {
    const int classes = numbers.size() > 1 ? int(numbers.size()) : 2;
    out.assign(results, like);
    for (int label = 0; label < classes; ++label) {
      const tensor is = compare("EQ", labels, filled(label, labels));
      const std::vector<traced> of_class = select_paths(like, [&] { return f(prediction, std::int32_t(label)); });
      for (std::size_t k = 0; k < results; ++k) out[k] = select(is, of_class[k].in(like), out[k]);
    }
  }
  return out;
}
}  // namespace detail

}  // namespace strata::stablehlo

#if STRATA_DEFINES
#include <strata/xla/emitter/rows.ipp>
#endif
