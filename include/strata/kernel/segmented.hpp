// A backend that computes segment by segment: all samples of a leaf pass some layers before they pass the next ones.
#pragma once
#include <strata/kernel/kernel.hpp>

namespace strata {

namespace core {
/// Whether a backend recomputes activations to save memory: fits_in.
template <class Backend>
concept bounds_activations = requires { Backend::most_bytes; };

/// segmented<cpu>: a training plan is cut into segments of whole layers, each with at least LeastElements trained elements. So
/// gradients, and parameters that come from other processes, need memory for a few segments instead of all layers. The
/// activations of all samples of a leaf are kept. The bits are those of an uncut plan. zero<2> and zero<3> use it.
template <class Backend, long LeastElements = 1L << 18>
struct segmented {
  static_assert(!bounds_activations<Backend>,
                "zero<2> and zero<3> keep all activations, so fits_in cannot be combined with them");
  static constexpr auto name = Backend::name;
  static constexpr long least_elements = LeastElements;
  using whole = Backend;
  using device = device_of<Backend>;
};

template <class Backend, long LeastElements, class Operation, class Precision, shape... In>
  requires(!std::is_void_v<typename find_kernel<Backend, Operation, Precision, In...>::type>)
struct kernel<segmented<Backend, LeastElements>, Operation, Precision, In...>
    : find_kernel<Backend, Operation, Precision, In...>::type {};

/// Whether a backend cuts its training plans into segments.
template <class Backend>
concept cuts_plans = requires { Backend::least_elements; };
}  // namespace core

namespace detail {
template <class Backend>
struct whole_backend {
  using type = Backend;
};
template <class Backend>
  requires requires { typename Backend::whole; }
struct whole_backend<Backend> {
  using type = typename Backend::whole;
};
}  // namespace detail

namespace core {
/// The same backend without cut plans and recomputation.
template <class Backend>
using whole_backend_of = typename detail::whole_backend<Backend>::type;
}  // namespace core

}  // namespace strata
