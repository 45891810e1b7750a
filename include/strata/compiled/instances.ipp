// The instances in the library for the element type STRATA_ELEMENT: kernels whose types have no shape, or only whole vectors, the
// update of each optimizer, and the loops of fit and evaluate. Included once for each element type; STRATA_INSTANCE selects
// whether the instances are declared (extern template) or defined (template).

namespace strata {

#define STRATA_T STRATA_ELEMENT
#define STRATA_PANEL(R, V)                                                                                                      \
  STRATA_INSTANCE void simd::detail::panel<STRATA_T, R, V, simd::lanes<STRATA_T>, linear>(const simd::product<STRATA_T>&, int); \
  STRATA_INSTANCE void simd::detail::panel<STRATA_T, R, V, simd::lanes<STRATA_T>, simd::of_unsigned_zeros<linear>>(             \
      const simd::product<STRATA_T>&, int);                                                                                     \
  STRATA_INSTANCE void simd::detail::panel<STRATA_T, R, V, simd::lanes<STRATA_T>, simd::of_unsigned_zeros<relu>>(               \
      const simd::product<STRATA_T>&, int);
#define STRATA_SKIPPING_PANEL(R, V)                                                                                        \
  STRATA_INSTANCE void simd::detail::skipping_panel<STRATA_T, R, V, simd::lanes<STRATA_T>, linear>(                        \
      const simd::product<STRATA_T>&);                                                                                     \
  STRATA_INSTANCE void simd::detail::skipping_panel<STRATA_T, R, V, simd::lanes<STRATA_T>, simd::of_unsigned_zeros<relu>>( \
      const simd::product<STRATA_T>&);
#define STRATA_WINOGRAD(M)                                                                              \
  STRATA_INSTANCE void simd::winograd_panel_weights<M, STRATA_T>(const STRATA_T*, int, int, STRATA_T*); \
  STRATA_WINOGRAD_TILES(M, false)                                                                       \
  STRATA_WINOGRAD_TILES(M, true)
#define STRATA_WINOGRAD_TILES(M, WHOLE)                                                                                        \
  STRATA_INSTANCE void simd::winograd_inputs<M, WHOLE, STRATA_T>(                                                              \
      const STRATA_T*, const simd::tiled_image&, int, int, std::ptrdiff_t, int, STRATA_T*, std::ptrdiff_t, std::ptrdiff_t);    \
  STRATA_INSTANCE void simd::winograd_store_tile<M, linear, WHOLE, STRATA_T>(const STRATA_T*, std::ptrdiff_t, int,             \
                                                                             std::type_identity_t<const STRATA_T*>, STRATA_T*, \
                                                                             std::ptrdiff_t, std::ptrdiff_t, int, int, bool);
#define STRATA_WINOGRAD_PRODUCTS(V)                                                                                          \
  STRATA_INSTANCE void simd::winograd_panel_products<STRATA_T, V>(int, const STRATA_T*, std::ptrdiff_t, std::ptrdiff_t, int, \
                                                                  const STRATA_T*, std::ptrdiff_t, int, STRATA_T*,           \
                                                                  std::ptrdiff_t);
#define STRATA_RULE(RULE)                                                                                                        \
  STRATA_INSTANCE void detail::apply_rule(RULE<STRATA_T>, STRATA_T*, STRATA_T* const*, const STRATA_T*, sample_mean<STRATA_T>,   \
                                          STRATA_T, long, long, std::make_integer_sequence<int, RULE<STRATA_T>::slots>);         \
  STRATA_INSTANCE void detail::apply_rule_to_product<1>(RULE<STRATA_T>, STRATA_T*, STRATA_T* const*, gradient_product<STRATA_T>, \
                                                        sample_mean<STRATA_T>, STRATA_T, long,                                   \
                                                        std::make_integer_sequence<int, RULE<STRATA_T>::slots>);                 \
  STRATA_INSTANCE void detail::apply_rule_to_product<8>(RULE<STRATA_T>, STRATA_T*, STRATA_T* const*, gradient_product<STRATA_T>, \
                                                        sample_mean<STRATA_T>, STRATA_T, long,                                   \
                                                        std::make_integer_sequence<int, RULE<STRATA_T>::slots>);

STRATA_PANEL(1, 1)
STRATA_PANEL(1, 2)
STRATA_PANEL(1, 4)
STRATA_PANEL(8, 1)
STRATA_PANEL(12, 1)
STRATA_PANEL(4, 2)
STRATA_PANEL(6, 2)
STRATA_PANEL(8, 2)
STRATA_SKIPPING_PANEL(1, 2)
STRATA_SKIPPING_PANEL(2, 2)
STRATA_WINOGRAD_PRODUCTS(1)
STRATA_WINOGRAD_PRODUCTS(2)
#ifdef STRATA_AVX512
STRATA_PANEL(6, 3)
STRATA_PANEL(8, 3)
STRATA_PANEL(4, 4)
STRATA_PANEL(5, 4)
STRATA_PANEL(6, 4)
STRATA_SKIPPING_PANEL(1, 4)
STRATA_SKIPPING_PANEL(2, 4)
STRATA_WINOGRAD_PRODUCTS(3)
STRATA_WINOGRAD_PRODUCTS(4)
#endif
STRATA_WINOGRAD(4)
STRATA_WINOGRAD(5)
#ifdef __AVX__
// The last layer of ten classes.
STRATA_INSTANCE void simd::detail::panel<STRATA_T, 1, 1, 10 % simd::lanes<STRATA_T>, linear>(const simd::product<STRATA_T>&, int);
STRATA_INSTANCE void simd::detail::panel<STRATA_T, 8, 1, 10 % simd::lanes<STRATA_T>, linear>(const simd::product<STRATA_T>&, int);
STRATA_INSTANCE void simd::detail::panel<STRATA_T, 8, 1, 10 % simd::lanes<STRATA_T>, simd::of_unsigned_zeros<linear>>(
    const simd::product<STRATA_T>&, int);
STRATA_INSTANCE void simd::detail::panel<STRATA_T, 12, 1, 10 % simd::lanes<STRATA_T>, simd::of_unsigned_zeros<linear>>(
    const simd::product<STRATA_T>&, int);
#endif

STRATA_INSTANCE void simd::transpose<STRATA_T>(const STRATA_T*, std::ptrdiff_t, STRATA_T*, std::ptrdiff_t, int, int, bool);
STRATA_INSTANCE void simd::column_sums<STRATA_T>(const STRATA_T*, int, int, STRATA_T*, bool);
STRATA_INSTANCE void simd::few_samples<STRATA_T>::some<1>(const STRATA_T*, int, const STRATA_T*, int, int, STRATA_T*, bool);
STRATA_INSTANCE void simd::few_samples<STRATA_T>::some<simd::few_samples<STRATA_T>::most>(const STRATA_T*, int, const STRATA_T*,
                                                                                          int, int, STRATA_T*, bool);
STRATA_INSTANCE simd::softmax_sum<STRATA_T> simd::softmax_sum_of<STRATA_T>(const STRATA_T*, int, STRATA_T*);
STRATA_INSTANCE simd::softmax_sum<STRATA_T> simd::softmax_of<STRATA_T>(const STRATA_T*, int, STRATA_T*);
STRATA_INSTANCE void simd::through_activation<relu, STRATA_T>(const STRATA_T*, const STRATA_T*, STRATA_T*, int);
STRATA_INSTANCE void simd::pool_planes<STRATA_T>(STRATA_T*, std::ptrdiff_t, int);
STRATA_INSTANCE void simd::pooled_input<STRATA_T, 3, 3>(const STRATA_T*, const STRATA_T*, const std::uint64_t*, STRATA_T*,
                                                        std::ptrdiff_t, std::ptrdiff_t, simd::pooled_image);
STRATA_INSTANCE void simd::pooled_input_weights<STRATA_T>(const STRATA_T*, int, int, int, STRATA_T*);
STRATA_INSTANCE void simd::take_from_frame<STRATA_T>(const STRATA_T*, const simd::frame&, STRATA_T*, int, int, bool);
STRATA_INSTANCE void simd::put_into_frame<STRATA_T>(const STRATA_T*, const simd::frame&, int, STRATA_T*);

STRATA_INSTANCE void detail::add_leaves<STRATA_T>(STRATA_T*, const STRATA_T* const*, int, long, long);
STRATA_INSTANCE void detail::add_many_leaves<STRATA_T>(STRATA_T*, const STRATA_T* const*, int, long, long);
namespace core {
STRATA_INSTANCE void reduce_slice<STRATA_T>(const global_gradient<STRATA_T, host_device>&, const STRATA_T*, penalty, long, long);
STRATA_INSTANCE void update_slice<STRATA_T>(const std::type_identity_t<detail::loops_of_rule<STRATA_T>>&, STRATA_T*,
                                            std::type_identity_t<STRATA_T* const*>, const global_gradient<STRATA_T, host_device>&,
                                            std::type_identity_t<gradient_modifiers<STRATA_T>>, long, long);
STRATA_INSTANCE void update_from_product<STRATA_T>(const std::type_identity_t<detail::loops_of_rule<STRATA_T>>&, STRATA_T*,
                                                   std::type_identity_t<STRATA_T* const*>, const gradient_product<STRATA_T>&,
                                                   sample_mean<STRATA_T>, std::type_identity_t<gradient_modifiers<STRATA_T>>,
                                                   long);
}  // namespace core
STRATA_RULE(adam_rule)
STRATA_RULE(adam_amsgrad_rule)

STRATA_INSTANCE class detail::fit_loop<STRATA_T>;
STRATA_INSTANCE class detail::step_runner<STRATA_T>;

#undef STRATA_T
#undef STRATA_PANEL
#undef STRATA_SKIPPING_PANEL
#undef STRATA_WINOGRAD
#undef STRATA_WINOGRAD_TILES
#undef STRATA_WINOGRAD_PRODUCTS
#undef STRATA_RULE

}  // namespace strata
