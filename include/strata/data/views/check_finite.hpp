// Finds NaN and infinity in samples, and names the sample.
#pragma once
#include <cmath>
#include <concepts>
#include <cstddef>
#include <strata/base/all_finite.hpp>
#include <strata/base/error.hpp>
#include <strata/base/standard_function.hpp>
#include <strata/base/standard_ranges.hpp>
#include <strata/data/core/closure.hpp>
#include <strata/data/core/rows_view.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace strata::data {

namespace detail {
using strata::detail::all_finite;

template <std::floating_point T>
void refuse_not_finite(const T* x, std::size_t n, const char* what, std::size_t sample, const char* of = "",
                       std::string_view column = {}) {
  if (all_finite(x, n)) return;
  std::size_t i = 0;
  while (all_finite(x + i, 1)) ++i;
  throw_error({"check_finite: ", what, " ", i, column.empty() ? "" : " of ", column, " of sample ", sample, of, " is ",
               std::isnan(x[i]) ? "NaN" : "infinite"});
}
/// Throws strata_error at the first value that is not finite.
template <class Base>
class finite_rows : public samples_around<Base> {
 public:
  explicit finite_rows(Base base) : samples_around<Base>(std::move(base)) {}

  template <class Place>
    requires named_source<Base>
  void write(sample_index i, sample_index ahead, const Place& to, std::identity) const {
    this->base_.write(i, ahead, to, std::identity{});
    check(i, to, typename finite_rows::columns{});
  }
  template <class T, class Then>
  void write(sample_index i, sample_index ahead, sample_place<T> to, Then then) const {
    constexpr std::size_t n{Base::sample_shape.size()};
    this->base_.write(i, ahead, to, std::identity{});
    refuse_not_finite(to.x, n, "value", this->ordinal(i));
    if constexpr (Base::labels == label_kind::dense)
      refuse_not_finite(to.target, std::size_t{Base::target_shape.size()}, "target", this->ordinal(i));
    if constexpr (!std::same_as<Then, std::identity>)
      for (std::size_t k = 0; k < n; ++k) to.x[k] = then(to.x[k]);
  }

 private:
  template <class Place, class... Node, shape... S, label_kind... Kind>
  void check(sample_index i, const Place& to, type_list<column_of<Node, S, Kind>...>) const {
    const auto check = [&](const auto* values, shape extents, std::string_view name) {
      if constexpr (std::floating_point<std::remove_cvref_t<decltype(*values)>>)
        refuse_not_finite(values, static_cast<std::size_t>(extents.size()), "value", this->ordinal(i), "", name);
    };
    (check(data::get<Node>(to), S, strata::detail::node_name<Node>), ...);
  }
};

struct check_finite_fn {
  template <std::ranges::range V>
  auto operator()(V view) const {
    constexpr bool right_view = is_sample_view<V> || has_names<V>;
    static_assert(right_view, "data::check_finite takes a view of samples (put it before batch) or one batch and its shapes");
    if constexpr (right_view) return with_rows<finite_rows<rows_t<V>>>(std::move(view));
  }
  template <std::floating_point T>
  void operator()(const samples<T>& batch, shape sample_shape, shape target_shape = {}) const {
    const auto check = [&](const T* rows, shape s, const char* what) {
      const std::size_t n{static_cast<std::size_t>(s.size())}, count = static_cast<std::size_t>(batch.count);
      if (rows == nullptr || all_finite(rows, n * count)) return;
      for (std::size_t k = 0; k < count; ++k) refuse_not_finite(rows + k * n, n, what, k, " of the batch");
    };
    check(batch.x(), sample_shape, "value");
    check(batch.targets(), target_shape, "target");
  }
};
}  // namespace detail

/// `train | check_finite | batch<64>`: throws strata_error, with the sample and the place in it, if the stages before it make a
/// value that is NaN or infinite. Category and size are those of the view. Costs one pass over values that are in the cache.
/// `check_finite(batch, sample_shape)`: the same for one batch.
inline constexpr closure<detail::check_finite_fn> check_finite{};

}  // namespace strata::data
