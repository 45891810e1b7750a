// error: a settings value has more than 12 members: group some of them in a struct
#include <strata/base/numbers_of.hpp>

using namespace strata;
struct settings_value {
  int a, b, c, d, e, f, g, h, i, j, k, l;
#ifndef TWIN
  int m;
#endif
};
template <settings_value Settings>
struct of_mine {};
const auto numbers = detail::numbers_of<of_mine<settings_value{1, 2, 3}>>;
