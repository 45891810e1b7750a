// Base of views that hold their own position: start, read, next and done make an input range.
#pragma once
#include <cstddef>
#include <iterator>
#include <strata/base/standard_ranges.hpp>
#include <type_traits>
#include <utility>

namespace strata::data::detail {

/// View has `start()`, which goes to the first element; `read()`, the current one; `next()` and `done()`. Iterators point to the
/// view, so a view that has been moved must begin again. cf. view_facade of range-v3; clang 14 cannot compile libstdc++'s
/// view_interface.
template <class View>
class single_pass : public std::ranges::view_base {
  class iterator {
   public:
    using iterator_concept = std::input_iterator_tag;
    using difference_type = std::ptrdiff_t;
    using value_type = std::remove_cvref_t<decltype(std::declval<const View&>().read())>;

    iterator() = default;
    explicit iterator(View& view) : view_(&view) {}

    decltype(auto) operator*() const { return std::as_const(*view_).read(); }
    iterator& operator++() {
      view_->next();
      return *this;
    }
    void operator++(int) { view_->next(); }
    bool operator==(std::default_sentinel_t) const { return view_->done(); }

   private:
    View* view_ = nullptr;
  };

 public:
  auto begin() {
    self().start();
    return iterator(self());
  }
  std::default_sentinel_t end() const { return {}; }

 private:
  View& self() { return static_cast<View&>(*this); }
};

/// The state of an iteration. It belongs to one view object: a copied or moved view begins with a fresh one, so that copies are
/// O(1).
template <class T>
struct own_state : T {
  own_state() = default;
  own_state(const own_state&) : T{} {}
  own_state& operator=(const own_state&) {
    static_cast<T&>(*this) = T{};
    return *this;
  }
};

}  // namespace strata::data::detail
