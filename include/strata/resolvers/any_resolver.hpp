// What a strategy keeps of a resolver, such as tf_config().
#pragma once
#include <functional>
#include <strata/base/reason.hpp>
#include <strata/resolvers/cluster.hpp>
#include <utility>

namespace strata {

/// A cluster_resolver of any type, as strategies keep it.
class any_resolver {
  std::function<cluster()> resolve_;

 public:
  template <class Why = detail::because<reasons::a_resolver_such_as_tf_config_comes_first_and_returns_a_cluster_when_called>>
  any_resolver() {
    static_assert(detail::diagnosed<wrong_argument<detail::nothing, Why>>[0]);
  }
  template <class R>
  any_resolver(R resolver) {
    static_assert(detail::diagnosed<typename detail::resolver_verdict<R>::type>[0]);
    if constexpr (core::cluster_resolver<R>) resolve_ = std::move(resolver);
  }
  cluster operator()() const { return resolve_(); }
};

namespace detail {
/// The resolver of a strategy whose other arguments are refused.
inline constexpr cluster (*no_resolver)() = nullptr;
}  // namespace detail

}  // namespace strata
