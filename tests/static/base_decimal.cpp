// Decimal literals as template arguments.
#include <strata/base/decimal.hpp>
using namespace strata;
using namespace strata::core;

static_assert(decimal{}.value() == 0 && decimal{3}.value() == 3 && decimal{-2, 3}.value() == -2000);
static_assert((0.5_r).value() == 0.5 && (1e-4_r).value() == 1e-4 && (1E+3_r).value() == 1000 && (2.5e-1_r).value() == 0.25);
static_assert((1'000.25_r).value() == 1000.25 && (-0.9_r).value() == -0.9 && double(0.001_r) == 0.001);

// One number, one template argument, however it is written.
static_assert(0.5_r == 0.50_r && 0.5_r == 5e-1_r && 100_r == decimal{1, 2} && 0.0_r == decimal{} && 0.5_r != 0.05_r);
static_assert(decimal{0.5} == 0.5_r && decimal{0.9} == 0.9_r && decimal{1e-7} == 1e-7_r && decimal{-0.1} == -0.1_r);
static_assert(decimal{0.999} == 0.999_r && decimal{12.0} == decimal{12} && decimal{0.0} == decimal{});

template <decimal D>
struct rate {
  static constexpr double value = D.value();
};
static_assert(rate<0.1_r>::value == 0.1);
template <class A, class B>
inline constexpr bool is_same = false;
template <class A>
inline constexpr bool is_same<A, A> = true;
static_assert(is_same<rate<0.1_r>, rate<1e-1_r>> && !is_same<rate<0.1_r>, rate<0.2_r>>);
