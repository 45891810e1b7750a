// A user's function as a member of a view. Views must be assignable; lambdas with captures are not.
#pragma once
#include <concepts>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace strata::data::detail {

/// Holds F and is assignable even if F is not. cf. the standard's exposition-only copyable-box.
template <class F>
class function {
 public:
  explicit function(F f) : f_(std::move(f)) {}
  function(const function&) = default;
  function(function&&) = default;
  function& operator=(const function& other) {
    if (this != std::addressof(other)) f_.emplace(*other.f_);
    return *this;
  }
  function& operator=(function&& other) {
    if (this != std::addressof(other)) f_.emplace(std::move(*other.f_));
    return *this;
  }
  const F& operator*() const { return *f_; }
  F& operator*() { return *f_; }

 private:
  std::optional<F> f_;
};

}  // namespace strata::data::detail
