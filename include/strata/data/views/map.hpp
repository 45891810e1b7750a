// Applies a user's function to each sample or element, when the sample is written into its batch.
#pragma once
#include <concepts>
#include <cstddef>
#include <functional>
#include <strata/base/exceptions.hpp>
#include <strata/base/shape.hpp>
#include <strata/base/tensor.hpp>
#include <strata/data/core/batch_stage.hpp>
#include <strata/data/core/closure.hpp>
#include <strata/data/core/element.hpp>
#include <strata/data/core/function.hpp>
#include <strata/data/core/parallel.hpp>
#include <strata/data/core/rows_view.hpp>
#include <strata/data/views/batch_map.hpp>
#include <string>
#include <type_traits>
#include <utility>

namespace strata::data {

namespace detail {
/// Base of rows that request threads; the rows that they read may request more.
template <class Base>
class parallel_rows : public rows_around<Base> {
 public:
  int parallelism() const { return parallel_; }
  std::string order() const { return "map"; }

 protected:
  parallel_rows(Base base, parallel p)
      : rows_around<Base>(std::move(base)), parallel_(more_threads(detail::parallelism(this->base_), p.threads())) {}

 private:
  int parallel_;
};
template <class Rows>
decltype(auto) x_or_element(const element_t<Rows>& e) {
  if constexpr (row_source<Rows>)
    return sample_traits<element_t<Rows>>::x(e);
  else
    return (e);
}

/// Elements f(element).
template <class Base, class F>
class mapped_rows : public parallel_rows<Base>, public elements_of<mapped_rows<Base, F>, mapped_t<F, Base>> {
 public:
  using element = mapped_t<F, Base>;

  mapped_rows(Base base, F f, parallel p) : parallel_rows<Base>(std::move(base), p), f_(std::move(f)) {}

  template <class Then>
  decltype(auto) visit(sample_index i, Then&& then) const {
    return detail::call("map", this->base_, i, *f_, then);
  }

 private:
  function<F> f_;
};

/// Samples whose x is written by f(element, tensor<float, Out>); labels are those of Base.
template <class Base, shape Out, class F>
class written_rows : public parallel_rows<Base> {
  static constexpr bool has_labels = row_source<Base>;

 public:
  using value_type = float;
  static constexpr shape sample_shape = Out;
  static constexpr label_kind labels = [] {
    if constexpr (has_labels) return Base::labels;
    return label_kind::none;
  }();
  static constexpr shape target_shape = [] {
    if constexpr (has_labels) return Base::target_shape;
    return shape{};
  }();

  written_rows(Base base, F f, parallel p) : parallel_rows<Base>(std::move(base), p), f_(std::move(f)) {}

  template <class T, class Then>
  void write(sample_index i, sample_index, sample_place<T> to, Then then) const {
    constexpr int n = Out.size();
    if constexpr (std::same_as<T, float> && std::same_as<Then, std::identity>) {
      write_x(i, to.x, to);
    } else {
      const scratch<float> x(std::size_t{n});
      write_x(i, x.data(), to);
      for (int k = 0; k < n; ++k) to.x[k] = then(static_cast<T>(x.data()[k]));
    }
  }

 private:
  template <class T>
  void write_x(sample_index i, float* x, sample_place<T> to) const {
    detail::visit(this->base_, i, [&](const element_t<Base>& e) {
      STRATA_TRY { (*f_)(x_or_element<Base>(e), tensor<float, Out>{x}); }
      STRATA_CATCH(const std::exception& failure) { throw_error({"map: ", this->describe(i), ": ", failure.what()}); }
      using traits = sample_traits<element_t<Base>>;
      if constexpr (labels == label_kind::sparse) *to.label = label_number(traits::y(e));
      if constexpr (labels == label_kind::dense) write_numbers(traits::y(e), to.target, std::identity{});
    });
  }

  function<F> f_;
};

inline constexpr parallel one_thread{1};

struct map_fn {
  template <std::ranges::range V, class F>
  auto operator()(V view, F f, parallel p = one_thread) const {
    constexpr bool right_view = is_element_view<V> || is_batches<V>;
    static_assert(right_view, "data::map takes a view of samples, elements or batches");
    if constexpr (element_view<V>) {
      constexpr bool fits = takes<const F, element_t<rows_t<V>>>;
      static_assert(fits,
                    "the function of data::map takes x, or x and y of samples with labels, or an element: write (auto x) or "
                    "(auto x, auto y); it is called as const");
      if constexpr (fits) {
        constexpr bool returns_one = !std::is_void_v<mapped_t<F, rows_t<V>>>;
        static_assert(returns_one, "the function of data::map returns a sample or an element, but this one returns nothing");
        if constexpr (returns_one) {
          using result = mapped_t<F, rows_t<V>>;
          constexpr bool distinct = !std::same_as<result, wrong_columns<false>>, fit_columns = !is_wrong_columns<result>;
          static_assert(distinct, "data::columns has a node twice");
          static_assert(fit_columns || !distinct,
                        "a column of data::columns is a number, a std::array of numbers (of arrays ...) or a tensor");
          if constexpr (fit_columns) return with_rows<mapped_rows<rows_t<V>, F>>(std::move(view), std::move(f), p);
        }
      }
    } else if constexpr (strata::detail::has_columns<V>) {
      constexpr bool has_no_names = !strata::detail::has_columns<V>;
      static_assert(has_no_names, "data::map changes samples with names one by one: put it before batch");
    } else if constexpr (batches<V>) {
      constexpr bool fits = std::is_invocable_v<const F&, mutable_batch_of<V>&>;
      static_assert(fits, "the function of data::map after data::batch takes a data::mutable_batch; it is called as const");
      if (p.threads() != 1) throw_error("map: one thread changes a batch: put a parallel map before batch");
      if constexpr (fits) return batch_map_view<V, F>(std::move(view), std::move(f));
    }
  }
  template <class F>
    requires(!std::ranges::range<F>)
  constexpr auto operator()(F f, parallel p = one_thread) const {
    return detail::partial(*this, std::move(f), p);
  }
};

template <shape Out>
struct map_to_fn {
  template <std::ranges::range V, class F>
  auto operator()(V view, F f, parallel p = one_thread) const {
    constexpr bool right_view = is_element_view<V>;
    static_assert(right_view, "data::map_to takes a view of samples or elements: put it before batch");
    if constexpr (element_view<V>) {
      using x = decltype(x_or_element<rows_t<V>>(std::declval<const element_t<rows_t<V>>&>()));
      constexpr bool fits = std::is_invocable_v<const F&, x, tensor<float, Out>>;
      static_assert(fits,
                    "the function of data::map_to<shape> takes x, or an element, and the tensor<float, shape> to write; it is "
                    "called as const");
      if constexpr (fits) return with_rows<written_rows<rows_t<V>, Out, F>>(std::move(view), std::move(f), p);
    }
  }
  template <class F>
    requires(!std::ranges::range<F>)
  constexpr auto operator()(F f, parallel p = one_thread) const {
    return detail::partial(*this, std::move(f), p);
  }
};
}  // namespace detail

/// `map(f)`, `map(f, parallel(4))`: f(x), f(x, y) of a sample or f(element) returns the replacement: x, a pair or data::sample of
/// x and label, or any other element. x of a sample is a tensor<const T, shape>, a sparse label an int, a dense target a tensor.
/// f is called when the sample is written into its batch, with parallel by several threads at once, so it must not change shared
/// data; the order of the samples stays the same. An exception of f is converted to strata_error that names the sample.
/// Category and size are those of the view.
///
/// After batch, f(data::mutable_batch&) changes a batch in place, in one thread; its exceptions name the batch.
/// https://www.tensorflow.org/api_docs/python/tf/data/Dataset#map
inline constexpr detail::map_fn map{};

/// `map_to<shape{32, 32, 3}>(f)`: f(x or element, tensor<float, shape>) writes x directly into the batch; labels stay the same.
/// Otherwise it is like map.
template <shape Out>
inline constexpr detail::map_to_fn<Out> map_to{};

}  // namespace strata::data
