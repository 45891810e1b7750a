// Leaves out samples that cannot be made, instead of ending the run.
#pragma once
#include <cstddef>
#include <memory>
#include <ranges>
#include <strata/base/error.hpp>
#include <strata/base/exceptions.hpp>
#include <strata/data/core/closure.hpp>
#include <strata/data/core/damage_report.hpp>
#include <strata/data/core/element.hpp>
#include <strata/data/core/left_out.hpp>
#include <strata/data/core/rows_view.hpp>
#include <type_traits>
#include <utility>

namespace strata::data {

namespace detail {
constexpr row_properties leaving_out(row_properties p) {
  p.leaves_out = true;
  return p;
}

template <class Base>
class samples_without_errors : public samples_around<Base> {
 public:
  static constexpr row_properties properties = leaving_out(rows_around<Base>::properties);

  samples_without_errors(Base base, std::shared_ptr<damage_report> report)
      : samples_around<Base>(std::move(base)), report_(std::move(report)) {}

  template <class Place, class Then>
  void write(sample_index i, sample_index ahead, const Place& to, Then then) const {
    STRATA_TRY { this->base_.write(i, ahead, to, then); }
    STRATA_CATCH(const left_out& failure) { STRATA_THROW_AGAIN; }
    STRATA_CATCH(const strata_error& why) { throw_exception(left_out(why, report_)); }
  }
  std::int32_t label(sample_index) const = delete;  // a label cannot show whether its sample is left out

 private:
  std::shared_ptr<damage_report> report_;
};

template <class Base>
class elements_without_errors : public rows_around<Base>,
                                public elements_of<elements_without_errors<Base>, typename Base::element> {
 public:
  static constexpr row_properties properties = leaving_out(rows_around<Base>::properties);

  elements_without_errors(Base base, std::shared_ptr<damage_report> report)
      : rows_around<Base>(std::move(base)), report_(std::move(report)) {}

  template <class F>
  decltype(auto) visit(sample_index i, F&& f) const {
    bool was_read = false;
    STRATA_TRY {
      return this->base_.visit(i, [&](const typename Base::element& e) -> decltype(auto) {
        was_read = true;
        return f(e);
      });
    }
    STRATA_CATCH(const left_out& failure) { STRATA_THROW_AGAIN; }
    STRATA_CATCH(const strata_error& why) {
      if (was_read) STRATA_THROW_AGAIN;  // thrown by a later stage
      throw_exception(left_out(why, report_));
    }
  }

 private:
  std::shared_ptr<damage_report> report_;
};
}  // namespace detail

/// A view in which some samples may be left out. It has no size, since their number is not known in advance.
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
    constexpr bool right_view = is_element_view<V>;
    static_assert(right_view, "data::ignore_errors takes a view of samples or elements: put it before batch");
#ifndef __cpp_exceptions
    static_assert(!right_view, "data::ignore_errors catches exceptions, but this program is compiled without them");
#endif
    if constexpr (element_view<V>) {
      using base = rows_t<V>;
      using rows = typename std::conditional_t<element_source<base>, std::type_identity<elements_without_errors<base>>,
                                               std::type_identity<samples_without_errors<base>>>::type;
      rows forgiving(view.rows(), std::move(report));
      return ignore_errors_view<V, rows>(std::move(view), std::move(forgiving));
    }
  }
  auto operator()(std::shared_ptr<damage_report> report) const { return detail::partial(*this, std::move(report)); }
};
}  // namespace detail

/// `ignore_errors`, `ignore_errors(report)` with a std::shared_ptr<damage_report>: leaves out a sample or element for which a
/// stage before this one throws strata_error; the batch takes the next one in its place. The report counts it and stores
/// the first messages, in the order of the samples for any number of threads. Errors of later stages, exceptions of other types
/// and errors of streams that cannot continue still end the run. Without a size.
/// https://www.tensorflow.org/api_docs/python/tf/data/Dataset#ignore_errors
inline constexpr closure<detail::ignore_errors_fn> ignore_errors{};

}  // namespace strata::data
