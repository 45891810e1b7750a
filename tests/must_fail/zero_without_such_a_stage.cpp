// error: wrong_stage_of_zero<7, .*because<.*zero_has_the_stages
#include <strata/exchange/zero/zero.hpp>

#ifdef TWIN
constexpr strata::zero<1> what;
#else
constexpr strata::zero<7> what;
#endif
static_assert(what.stage >= 0);
