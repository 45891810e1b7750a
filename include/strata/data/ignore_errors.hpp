// Samples that cannot be made are left out instead of ending the run.
#pragma once
#include <cstddef>
#include <memory>
#include <ranges>
#include <strata/base/error.hpp>
#include <strata/data/adaptor.hpp>
#include <strata/data/damage_report.hpp>
#include <strata/data/element.hpp>
#include <strata/data/left_out.hpp>
#include <strata/data/sample_view.hpp>
#include <type_traits>
#include <utility>

namespace strata::data {

namespace detail {
/// Rows whose samples may be left out.
template <class Base>
class forgiving_rows : public rows_around<Base> {
 public:
  static constexpr bool leaves_out = true;

  forgiving_rows(Base base, std::shared_ptr<damage_report> report)
      : rows_around<Base>(std::move(base)), report_(std::move(report)) {}

 protected:
  std::shared_ptr<damage_report> report_;
};
}  // namespace detail

template <class Base>
class samples_without_errors : public detail::forgiving_rows<Base> {
 public:
  using value_type = typename Base::value_type;
  static constexpr shape sample_shape = Base::sample_shape, target_shape = Base::target_shape;
  static constexpr label_kind labels = Base::labels;

  using detail::forgiving_rows<Base>::forgiving_rows;

  template <class T, class Then>
  void write(sample_index i, sample_index ahead, sample_place<T> to, Then then) const {
    try {
      this->base_.write(i, ahead, to, then);
    } catch (const detail::left_out&) {
      throw;
    } catch (const error& why) {
      throw detail::left_out(why, this->report_);
    }
  }
};

template <class Base>
class elements_without_errors : public detail::forgiving_rows<Base>,
                                public detail::elements_of<elements_without_errors<Base>, typename Base::element> {
 public:
  using detail::forgiving_rows<Base>::forgiving_rows;

  template <class F>
  decltype(auto) visit(sample_index i, F&& f) const {
    bool was_read = false;
    try {
      return this->base_.visit(i, [&](const typename Base::element& e) -> decltype(auto) {
        was_read = true;
        return f(e);
      });
    } catch (const detail::left_out&) {
      throw;
    } catch (const error& why) {
      if (was_read) throw;  // of a stage behind this one
      throw detail::left_out(why, this->report_);
    }
  }
};

/// The numbers of a view some of whose samples will turn out to be damaged: nobody knows how many are left.
template <element_view V, class Rows>
class ignore_errors_view : public rows_view<V, Rows> {
 public:
  using rows_view<V, Rows>::rows_view;

  std::size_t size() const = delete;
};

namespace detail {
struct ignore_errors_fn {
  template <std::ranges::range V>
  auto operator()(V view, std::shared_ptr<damage_report> report = std::make_shared<damage_report>()) const {
    static_assert(element_view<V>, "data::ignore_errors takes a view of samples or elements: put it before batch");
    if constexpr (element_view<V>) {
      using base = rows_t<V>;
      using rows = typename std::conditional_t<element_source<base>, std::type_identity<elements_without_errors<base>>,
                                               std::type_identity<samples_without_errors<base>>>::type;
      rows forgiving(view.rows(), std::move(report));
      return ignore_errors_view<V, rows>(std::move(view), std::move(forgiving));
    }
  }
  auto operator()(std::shared_ptr<damage_report> report) const {
    return adaptor{[report]<class V>(V&& view) { return ignore_errors_fn{}(std::forward<V>(view), report); }};
  }
};
}  // namespace detail

/// `ignore_errors`, `ignore_errors(report)` with a std::shared_ptr<damage_report>: a sample or element for which a stage before
/// this one throws strata::error is left out, and the batch takes the next one in its place. The report counts it and keeps the
/// first messages, in the order of the samples, whatever the number of threads. Errors of the stages behind, and exceptions of
/// other types, still end the run, and so do errors of streams that cannot go on. Without a size, since nobody knows what is
/// damaged.
/// https://www.tensorflow.org/api_docs/python/tf/data/Dataset#ignore_errors
inline constexpr adaptor<detail::ignore_errors_fn> ignore_errors{};

}  // namespace strata::data
