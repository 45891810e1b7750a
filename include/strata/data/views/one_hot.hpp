// Converts class numbers to one-hot rows: when a batch is written (one_hot) or immediately (to_categorical).
#pragma once
#include <algorithm>
#include <concepts>
#include <cstddef>
#include <optional>
#include <strata/base/error.hpp>
#include <strata/base/standard_ranges.hpp>
#include <strata/base/text.hpp>
#include <strata/concepts/stored_samples.hpp>
#include <strata/data/core/array.hpp>
#include <strata/data/core/closure.hpp>
#include <strata/data/core/rows_view.hpp>
#include <string>
#include <utility>
#include <vector>

namespace strata::data {

namespace detail {
template <int Classes>
std::size_t checked_class(const char* who, std::integral auto label, std::size_t sample) {
  if (std::cmp_less(+label, 0) || std::cmp_greater_equal(+label, Classes))
    throw_error({who, "<", Classes, ">: label ", +label, " of sample ", sample, " is not in 0 ... ", Classes - 1});
  return static_cast<std::size_t>(label);
}

template <row_source Base, int Classes>
class one_hot_rows : public rows_around<Base> {
 public:
  using value_type = typename Base::value_type;
  static constexpr shape sample_shape = Base::sample_shape;
  static constexpr label_kind labels = label_kind::dense;
  static constexpr shape target_shape{Classes};

  /// Throws strata_error if a label is not in 0 ... Classes - 1. Labels that cannot be read without x are checked later,
  /// when they are read.
  explicit one_hot_rows(Base base) : rows_around<Base>(std::move(base)) {
    if constexpr (sized<Base> && has_label<Base>)
      for (std::uint32_t row = 0; row < this->base_.size(); ++row)
        checked_class<Classes>("one_hot", this->base_.label({row}), row);
  }

  template <class T, class Then>
  void write(sample_index i, sample_index ahead, sample_place<T> to, Then then) const {
    std::int32_t label = 0;
    this->base_.write(i, ahead, sample_place<T>{.x = to.x, .label = &label}, then);
    std::fill_n(to.target, Classes, T(0));
    to.target[checked_class<Classes>("one_hot", label, this->ordinal(i))] = T(1);
  }
  std::string order() const { return strata::detail::text_of({"one_hot<", Classes, ">"}); }
  std::optional<stored_samples> stored() const
    requires has_stored<Base>
  {
    std::optional<stored_samples> all = this->base_.stored();
    if (all) all->classes = Classes;
    return all;
  }
  const value_type* direct(sample_index i) const
    requires has_direct<Base>
  {
    return this->base_.direct(i);
  }
};

template <int Classes>
struct one_hot_fn {
  static_assert(Classes > 0, "one_hot<Classes> needs at least one class");

  template <class V>
  auto operator()(V view) const {
    constexpr bool no_names = !has_names<V>, right_view = is_sample_view<V> || !no_names;
    static_assert(no_names, "data::one_hot takes samples without names: put it before data::named");
    static_assert(right_view, "data::one_hot takes a view of samples: put it before batch");
    if constexpr (sample_view<V>) {
      static_assert(rows_t<V>::labels == label_kind::sparse, "data::one_hot takes samples with class numbers (sparse labels)");
      if constexpr (rows_t<V>::labels == label_kind::sparse) return with_rows<one_hot_rows<rows_t<V>, Classes>>(std::move(view));
    }
  }
};
}  // namespace detail

/// Sparse labels become dense targets of shape (Classes). Category and size are those of the view.
/// Throws strata_error, with sample and value, if a label is not in 0 ... Classes - 1.
template <int Classes>
inline constexpr closure<detail::one_hot_fn<Classes>> one_hot{};  // the classes are a template argument: one_hot<10>

/// in: (samples) integers  out: (samples, Classes)
/// Throws strata_error, with sample and value, if a label is not in 0 ... Classes - 1.
/// https://keras.io/api/utils/python_utils/#to_categorical-function
template <int Classes, std::ranges::forward_range Labels>
  requires std::integral<std::ranges::range_value_t<Labels>>
array<float, shape{Classes}> to_categorical(const Labels& labels) {
  std::vector<float> rows(static_cast<std::size_t>(std::ranges::distance(labels)) * std::size_t{Classes});
  std::size_t sample = 0;
  for (const auto label : labels) {
    rows[sample * std::size_t{Classes} + detail::checked_class<Classes>("to_categorical", label, sample)] = 1;
    ++sample;
  }
  return array<float, shape{Classes}>(std::move(rows));
}

}  // namespace strata::data
