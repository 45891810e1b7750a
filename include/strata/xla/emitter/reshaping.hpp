// Operations that move elements: padding, enlarging, joins, columns, looking up rows.
#pragma once
#include <strata/layers/columns.hpp>
#include <strata/layers/concat.hpp>
#include <strata/layers/cropping2d.hpp>
#include <strata/layers/elementwise_join.hpp>
#include <strata/layers/embedding.hpp>
#include <strata/layers/up_sampling2d.hpp>
#include <strata/layers/zero_padding2d.hpp>
#include <strata/xla/emitter/emission.hpp>
#include <strata/xla/emitter/traced.hpp>

namespace strata::stablehlo {

namespace detail {
tensor zero_padding_forward(operation_call& c, const padding_settings& s);
void zero_padding_backward(operation_call& c, const padding_settings& s);
tensor up_sampling_forward(operation_call& c, const up_sampling_settings& s);
void up_sampling_backward(operation_call& c, const up_sampling_settings& s);
tensor columns_forward(operation_call& c, const column_settings& s);
void columns_backward(operation_call& c, const column_settings& s);
}  // namespace detail

template <padding_settings S>
struct emission<zero_padding<S>> {
  static tensor forward(operation_call& c) { return detail::zero_padding_forward(c, S); }
  static void backward(operation_call& c) { detail::zero_padding_backward(c, S); }
};

template <padding_settings S>
struct emission<cropping<S>> : emission<zero_padding<-S>> {};

template <up_sampling_settings S>
struct emission<up_sampling<S>> {
  static tensor forward(operation_call& c) { return detail::up_sampling_forward(c, S); }
  static void backward(operation_call& c) { detail::up_sampling_backward(c, S); }
};

template <column_settings S>
struct emission<column_slice<S>> {
  static tensor forward(operation_call& c) { return detail::columns_forward(c, S); }
  static void backward(operation_call& c) { detail::columns_backward(c, S); }
};

/// Element-wise joins are traced.
template <class Join>
  requires requires { requires Join::is_elementwise_join; }
struct emission<Join> {
  static tensor forward(operation_call& c) {
    return with_count(c, [&]<int N>(std::integral_constant<int, N>) {
      return trace(c.x[0], [&] {
        traced x[N];
        for (int k = 0; k < N; ++k) x[k] = c.x[std::size_t(k)];
        return traced(Join::template value<traced>(x));
      });
    });
  }
  static void backward(operation_call& c) {
    with_count(c, [&]<int N>(std::integral_constant<int, N>) {
      const std::vector<traced> all = select_paths(c.dy, [&] {
        traced x[N], dx[N];
        for (int k = 0; k < N; ++k) x[k] = c.x[std::size_t(k)];
        Join::template gradients<traced>(x, traced(c.dy), dx);
        return std::vector<traced>(dx, dx + N);
      });
      for (int k = 0; k < N; ++k) c.dx[std::size_t(k)] = all[std::size_t(k)].in(c.dy);
      return c.dy;
    });
  }

 private:
  /// f(the number of branches).
  template <class F>
  static tensor with_count(const operation_call& c, F&& f) {
    tensor result;
    const auto try_count = [&]<int N>(std::integral_constant<int, N> n) {
      if constexpr (requires(const traced(&x)[N]) { Join::template value<traced>(x); })
        if (int(c.x.size()) == N) result = f(n);
    };
    [&]<int... I>(std::integer_sequence<int, I...>) {
      (try_count(std::integral_constant<int, I + 1>{}), ...);
    }(std::make_integer_sequence<int, max_inputs>{});
    return result;
  }
};

template <>
struct emission<stack_of_branches> {
  static tensor forward(operation_call& c);
  static void backward(operation_call& c);
};

/// x: (rows, ...) of row indices; table: (rows of the table, width).
template <embedding_settings S>
struct emission<lookup<S>> {
  static tensor forward(operation_call& c) { return reshape(gather_rows(c.w[0], indices(c)), c.out); }
  static void backward(operation_call& c) {
    if (c.wants_dw[0])
      c.dw[0] = scatter_add_rows(c.w[0].type(), indices(c), reshape(c.dy, {c.x[0].type().size(), c.w[0].extent(1)}));
  }

 private:
  static tensor indices(const operation_call& c) { return reshape(convert(c.x[0], element::i32), {c.x[0].type().size(), 1}); }
};

}  // namespace strata::stablehlo

#if STRATA_DEFINES
#include <strata/xla/emitter/reshaping.ipp>
#endif
