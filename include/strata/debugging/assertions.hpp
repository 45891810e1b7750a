// Assertions about elements and shapes, as in tf.debugging. Each throws a strata_error that gives the place and the
// difference.
#pragma once
#include <cmath>
#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <limits>
#include <map>
#include <strata/base/error.hpp>
#include <strata/debugging/numbers.hpp>
#include <string>
#include <string_view>
#include <vector>

/// `debugging::assert_near(predicted, expected, {.rtol = 1e-5, .atol = 1e-5}, "after loading")` throws
/// `after loading: assert_near: element 5 (1, 2): 3.1 is further than 4e-05 from 3; this fails for 2 of 6 elements`.
/// A single number is compared with each element of the other side. Otherwise both sides have equal extents. No assertion holds
/// for a nan, except assert_none_equal, assert_shapes and assert_rank.  https://www.tensorflow.org/api_docs/python/tf/debugging
namespace strata::debugging {

namespace detail {

[[noreturn, gnu::cold]] inline void fail(std::string_view message, std::string_view assertion, const std::string& what) {
  throw_error({message, message.empty() ? "" : ": ", assertion, ": ", what});
}

/// Checks each pair of elements. says(i) describes the failure at element i.
template <class Holds, class Says>
void each_pair(std::string_view message, std::string_view assertion, const numbers& x, const numbers& y, Holds&& holds,
               Says&& says) {
  if (!x.is_single() && !y.is_single() && x.extents() != y.extents())
    fail(message, assertion, text_of({"shapes ", x.shape_text(), " and ", y.shape_text(), " differ"}));
  const std::size_t count = x.is_single() ? y.size() : x.size();
  std::size_t first = count, failures = 0;
  for (std::size_t i = 0; i < count; ++i)
    if (!holds(x[i], y[i]) && failures++ == 0) first = i;
  if (failures == 0) return;
  const std::string where = x.is_single() ? y.place(first) : x.place(first);
  fail(message, assertion,
       text_of({where, where.empty() ? "" : ": ", says(first),
                count > 1 ? text_of({"; this fails for ", failures, " of ", count, " elements"}) : std::string()}));
}

template <class Holds>
void compare(std::string_view message, std::string_view assertion, const numbers& x, const numbers& y, std::string_view relation,
             Holds&& holds) {
  each_pair(message, assertion, x, y, holds,
            [&](std::size_t i) { return text_of({x.text(i), " is ", relation, ' ', y.text(i)}); });
}

template <class Holds>
void each(std::string_view message, std::string_view assertion, const numbers& x, std::string_view what, Holds&& holds) {
  each_pair(
      message, assertion, x, 0, [&](long double value, long double) { return holds(value); },
      [&](std::size_t i) { return text_of({x.text(i), " is ", what}); });
}

}  // namespace detail

inline void assert_equal(const numbers& x, const numbers& y, std::string_view message = {}) {
  detail::compare(message, "assert_equal", x, y, "not", [](long double a, long double b) { return a == b; });
}
inline void assert_none_equal(const numbers& x, const numbers& y, std::string_view message = {}) {
  detail::compare(message, "assert_none_equal", x, y, "equal to", [](long double a, long double b) { return a != b; });
}
inline void assert_less(const numbers& x, const numbers& y, std::string_view message = {}) {
  detail::compare(message, "assert_less", x, y, "not less than", [](long double a, long double b) { return a < b; });
}
inline void assert_less_equal(const numbers& x, const numbers& y, std::string_view message = {}) {
  detail::compare(message, "assert_less_equal", x, y, "not at most", [](long double a, long double b) { return a <= b; });
}
inline void assert_greater(const numbers& x, const numbers& y, std::string_view message = {}) {
  detail::compare(message, "assert_greater", x, y, "not greater than", [](long double a, long double b) { return a > b; });
}
inline void assert_greater_equal(const numbers& x, const numbers& y, std::string_view message = {}) {
  detail::compare(message, "assert_greater_equal", x, y, "not at least", [](long double a, long double b) { return a >= b; });
}

/// |x - y| <= atol + rtol * |y|. The defaults are those of TensorFlow for float: ten times the distance from 1 to the next float.
struct tolerance {
  double rtol = 10 * double(std::numeric_limits<float>::epsilon());
  double atol = 10 * double(std::numeric_limits<float>::epsilon());
};
inline void assert_near(const numbers& x, const numbers& y, const tolerance& allowed = {}, std::string_view message = {}) {
  const auto rtol = static_cast<long double>(allowed.rtol), atol = static_cast<long double>(allowed.atol);
  const auto bound = [&](long double b) { return atol + rtol * std::fabs(b); };
  detail::each_pair(
      message, "assert_near", x, y,
      [&](long double a, long double b) { return a == b || (std::isfinite(b) && std::fabs(a - b) <= bound(b)); },
      [&](std::size_t i) {
        return detail::text_of(
            {x.text(i), " is further than ", strata::detail::formatted("%.3g", double(bound(y[i]))), " from ", y.text(i)});
      });
}
inline void assert_near(const numbers& x, const numbers& y, std::string_view message) { assert_near(x, y, {}, message); }

inline void assert_positive(const numbers& x, std::string_view message = {}) {
  detail::each(message, "assert_positive", x, "not positive", [](long double a) { return a > 0; });
}
inline void assert_non_negative(const numbers& x, std::string_view message = {}) {
  detail::each(message, "assert_non_negative", x, "negative", [](long double a) { return a >= 0; });
}
inline void assert_negative(const numbers& x, std::string_view message = {}) {
  detail::each(message, "assert_negative", x, "not negative", [](long double a) { return a < 0; });
}
inline void assert_non_positive(const numbers& x, std::string_view message = {}) {
  detail::each(message, "assert_non_positive", x, "positive", [](long double a) { return a <= 0; });
}
inline void assert_all_finite(const numbers& x, std::string_view message = {}) {
  detail::each(message, "assert_all_finite", x, "not finite", [](long double a) { return std::isfinite(a); });
}

inline void assert_rank(const numbers& x, std::size_t rank, std::string_view message = {}) {
  if (x.extents().size() != rank)
    detail::fail(message, "assert_rank",
                 detail::text_of({"shape ", x.shape_text(), " has rank ", x.extents().size(), ", not ", rank}));
}

/// An extent: a number, or a name, which must stand for the same number wherever it is used.
struct extent {
  std::size_t size = 0;
  std::string_view name = {};
  template <std::integral N>
  extent(N n) : size(static_cast<std::size_t>(n)) {}
  extent(const char* its_name) : name(its_name) {}
};
struct shaped {
  numbers of;
  std::vector<extent> extents;
};
/// assert_shapes({{images, {"N", 28, 28}}, {labels, {"N"}}}): there are as many labels as images.
inline void assert_shapes(std::initializer_list<shaped> arrays, std::string_view message = {}) {
  std::map<std::string_view, std::size_t> known;
  std::size_t number = 0;
  for (const shaped& each : arrays) {
    const std::vector<std::size_t>& is = each.of.extents();
    const auto refuse = [&](const std::string& why) {
      detail::fail(message, "assert_shapes",
                   detail::text_of({"array ", number, " has shape ", each.of.shape_text(), ", but ", why}));
    };
    if (is.size() != each.extents.size()) refuse(detail::text_of({"should have rank ", each.extents.size()}));
    for (std::size_t axis = 0; axis < is.size(); ++axis) {
      const auto& [size, name] = each.extents[axis];
      if (name.empty()) {
        if (is[axis] != size) refuse(detail::text_of({"extent ", axis, " should be ", size}));
      } else if (const std::size_t before = known.emplace(name, is[axis]).first->second; before != is[axis]) {
        refuse(detail::text_of({name, " was ", before, " before"}));
      }
    }
    ++number;
  }
}

}  // namespace strata::debugging
