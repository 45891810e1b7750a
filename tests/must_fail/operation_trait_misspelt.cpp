// error: (operation_traits.*element_wise|element_wise.*operation_traits)
#include <strata/strata.hpp>

using namespace strata;

struct twice {
  using is_activation = void;
  static constexpr auto name = "twice";
#ifdef TWIN
  static constexpr operation_traits traits{.elementwise = true};
#else
  static constexpr operation_traits traits{.element_wise = true};
#endif
  static constexpr expected_shape output_shape(shape in) { return in; }
};

static_assert(operation<twice>);
