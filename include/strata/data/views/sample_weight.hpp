// Weights of samples in the loss, as a stage of a pipeline.
#pragma once
#include <bit>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <strata/base/error.hpp>
#include <strata/base/hash.hpp>
#include <strata/base/shape.hpp>
#include <strata/base/standard_ranges.hpp>
#include <strata/data/core/array.hpp>
#include <strata/data/core/checksum.hpp>
#include <strata/data/core/closure.hpp>
#include <strata/data/core/element.hpp>
#include <strata/data/core/function.hpp>
#include <strata/data/core/rows_view.hpp>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace strata::data {

namespace detail {
/// Samples with weights, which `Self::weight(i)` returns. Base writes the samples.
template <class Base>
class samples_with_weights : public samples_around<Base> {
 public:
  static constexpr row_properties properties = Base::properties;

  template <class Place, class Then>
  void write(sample_index i, sample_index ahead, const Place& to, Then then) const {
    this->base_.write(i, ahead, to, then);
  }
  auto direct(sample_index i) const
    requires has_direct<Base>
  {
    return this->base_.direct(i);
  }

 protected:
  explicit samples_with_weights(Base base) : samples_around<Base>(std::move(base)) {}
};

/// Weights from an array, one for each row.
template <class Base, class W>
class listed_weights : public samples_with_weights<Base> {
 public:
  listed_weights(Base base, array<W, shape{1}> weights)
      : samples_with_weights<Base>(std::move(base)), weights_(std::move(weights)) {}
  W weight(sample_index i) const { return *weights_.row(i.row); }
  std::string order() const {
    strata::detail::fnv1a sum;
    each_of_some(weights_.size(), bytes_of_cheap_rows / sizeof(W),
                 [&](std::size_t row) { sum.add(std::bit_cast<std::uint64_t>(static_cast<double>(*weights_.row(row)))); });
    return "sample_weight(" + text_of_checksum(sum.value()) + ")";
  }

 private:
  array<W, shape{1}> weights_;
};

/// Weights that a function of the user computes.
template <class Base, class F>
class computed_weights : public samples_with_weights<Base> {
 public:
  static constexpr row_properties properties = around(Base::properties);  // which calls a function of the user

  computed_weights(Base base, F f) : samples_with_weights<Base>(std::move(base)), f_(std::move(f)) {}
  std::string order() const { return "sample_weight"; }
  /// Throws strata_error, with the sample, if f throws, and if a weight is not finite.
  double weight(sample_index i) const {
    return detail::call("sample_weight", this->base_, i, *f_, [&](const auto& w) {
      const double weight = static_cast<double>(w);
      if (!std::isfinite(weight))
        throw_error({"sample_weight: the weight of ", detail::describe(this->base_, i), " is ", weight});
      return weight;
    });
  }

 private:
  function<F> f_;
};

template <class W>
void refuse_infinite_weights(std::span<const W> weights) {
  for (std::size_t n = 0; n < weights.size(); ++n)
    if (!std::isfinite(static_cast<double>(weights[n])))
      throw_error({"sample_weight: the weight of sample ", n, " is ", double(weights[n])});
}

/// The argument of data::sample_weight.
template <class V, class Weights>
struct given_weights {
  static constexpr bool are_listed = false, are_numbers = false, stay_valid = false;
  static constexpr bool are_computed = [] {
    if constexpr (takes<const Weights, element_t<rows_t<V>>>)
      return std::convertible_to<mapped_t<Weights, rows_t<V>>, double>;
    else
      return false;
  }();
};
template <class V, std::ranges::contiguous_range Weights>
struct given_weights<V, Weights> {
  using value_type = std::ranges::range_value_t<Weights>;
  using kept = std::conditional_t<std::same_as<Weights, std::vector<value_type>>, Weights, std::span<const value_type>>;
  static constexpr bool are_listed = true, are_computed = false, are_numbers = std::is_arithmetic_v<value_type>;
  static constexpr bool stay_valid = std::same_as<Weights, kept> || std::ranges::borrowed_range<Weights>;
};

struct sample_weight_fn {
  template <std::ranges::range V, class Weights>
  auto operator()(V view, Weights weights) const {
    constexpr bool right_view = is_sample_view<V> || has_names<V>;
    static_assert(right_view, "data::sample_weight takes a view of samples: put it before batch");
    if constexpr (right_view) {
      using given = given_weights<V, Weights>;
      constexpr bool fits = given::are_numbers || given::are_computed, has_none = has_no_weights<V>;
      static_assert(
          fits,
          "data::sample_weight takes a vector or span of float, a number for each sample, or a function of x, or of x and "
          "y, that returns a number; it is called as const");
      static_assert(has_none, "data::sample_weight: the samples have weights already");
      if constexpr (fits && has_none && given::are_listed) {
        constexpr bool has_a_number = sized<rows_t<V>>, stays_valid = given::stay_valid;
        static_assert(has_a_number,
                      "data::sample_weight(weights) takes samples whose number is known: put it after their source, or give a "
                      "function of x and y");
        static_assert(stays_valid, "data::sample_weight takes a std::vector, which it owns, or a std::span, which it borrows");
        if constexpr (has_a_number && stays_valid) return listed(std::move(view), typename given::kept(std::move(weights)));
      } else if constexpr (fits && has_none) {
        return with_rows<computed_weights<rows_t<V>, Weights>>(std::move(view), std::move(weights));
      }
    }
  }
  template <class Weights>
  constexpr auto operator()(Weights weights) const {
    return detail::partial(*this, std::move(weights));
  }

 private:
  template <class V, class Weights>
  static auto listed(V view, Weights weights) {
    using W = std::ranges::range_value_t<Weights>;
    const std::size_t count = weights.size(), expected = view.rows().size();
    if (count != expected) throw_error({"sample_weight: ", count, " weights for the ", expected, " samples of the data set"});
    refuse_infinite_weights(std::span<const W>(weights));
    return with_rows<listed_weights<rows_t<V>, W>>(std::move(view), array<W, shape{1}>(std::move(weights)));
  }
};
}  // namespace detail

/// A weight for each sample multiplies its loss, and so its gradient; see strata::sample_weight, the option of fit.
/// `train | sample_weight(weights) | shuffle(1000) | batch<64>`: a vector (owned) or span (borrowed) with an element for each
/// sample of the data set, in its order.
/// `| sample_weight([](auto x, int label) { return label == 3 ? 50.0 : 1.0; })`: computed whenever the sample is written into a
/// batch. Stages before batch keep the weights if each of their samples is made from one; other stages refuse weights. Throws
/// strata_error if the number of weights differs from that of the samples, and, with the sample, if a weight is not
/// finite. Category and size are those of the view. https://keras.io/api/models/model_training_apis/#fit-method
inline constexpr detail::sample_weight_fn sample_weight{};

}  // namespace strata::data
