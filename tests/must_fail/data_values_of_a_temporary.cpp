// error: (use of|call to) deleted (member )?function '?.*values
#include <strata/data/core/array.hpp>
#include <vector>
using namespace strata;

double check() {
  const std::vector<float> numbers{1, 2, 3};
  double sum = 0;
#ifdef TWIN
  const data::array<float, shape{3}> rows(numbers);
  for (const float v : rows.values()) sum += v;
#else
  for (const float v : data::array<float, shape{3}>(numbers).values()) sum += v;
#endif
  return sum;
}
