// Reads a view element by element.
#pragma once
#include <algorithm>
#include <strata/base/shape.hpp>
#include <strata/base/tensor.hpp>
#include <strata/data/core/element.hpp>
#include <strata/data/core/index_stage.hpp>
#include <strata/data/core/left_out.hpp>
#include <strata/data/core/named_sample.hpp>
#include <strata/data/core/sample.hpp>
#include <utility>

namespace strata::data {

namespace detail {
/// The type in which elements of V are stored.
template <element_view V>
using kept_t = stored_t<element_t<rows_t<V>>>;

/// Copies an element passed by visit into a stored one, whose memory is reused.
template <class Kept, class Shown>
void keep(const Shown& from, Kept& to) {
  to = from;
}
template <class T, shape S, class U>
void keep(const tensor<U, S>& from, stored_tensor<T, S>& to) {
  std::copy_n(from.data, to.values.size(), to.values.begin());
}
template <class X, class Y, class A, class B>
void keep(const sample<A, B>& from, sample<X, Y>& to) {
  detail::keep(from.x, to.x), detail::keep(from.y, to.y);
}
template <class... Node, class... A, class... X>
void keep(const named_sample<column<Node, A>...>& from, named_sample<column<Node, X>...>& to) {
  (detail::keep(data::get<Node>(from), static_cast<column<Node, X>&>(to).values), ...);
}
template <class X, class Y, class A, class B>
void keep(const std::pair<A, B>& from, std::pair<X, Y>& to) {
  detail::keep(from.first, to.first), detail::keep(from.second, to.second);
}

/// Reads a view element by element.
template <element_view V>
class element_reader {
 public:
  void start(V& from, int epoch) {
    detail::release_all(from.rows());
    from.set_epoch(epoch);
    position_.start(from);
    fresh_ = true;
  }
  /// Calls f with the next element, or returns false at the end. Skips elements that ignore_errors leaves out.
  template <class F>
  bool next(V& from, F&& f) {
    for (bool shown = false; !shown;) {
      if (!std::exchange(fresh_, false)) ++*position_.at;
      if (position_.done(from)) return false;
      const sample_index i = **position_.at;
      shown = unless_left_out([&] { detail::visit(from.rows(), i, f); });
      detail::release(from.rows(), i);
    }
    return true;
  }

 private:
  position<V> position_;
  bool fresh_ = true;
};
}  // namespace detail

}  // namespace strata::data
