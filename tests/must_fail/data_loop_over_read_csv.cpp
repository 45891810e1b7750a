// error: read_csv returns columns: auto .a, b. = read_csv<int, float>.path.; a loop goes over csv_rows
#include <strata/data/formats/csv.hpp>

using namespace strata;
float sum() {
  float all = 0;
#ifdef TWIN
  for (const auto& [price, count] : data::csv_rows<float, int>("fruit.csv")) all += price * float(count);
#else
  for (const auto& [price, count] : data::read_csv<float, int>("fruit.csv")) all += price * float(count);
#endif
  return all;
}
