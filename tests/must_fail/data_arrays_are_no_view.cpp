// error: data::from_tensor_slices makes a view of x and y: put it around them
#include <strata/data/formats/csv.hpp>
#include <strata/data/sources/from_tensor_slices.hpp>
#include <strata/data/views/batch.hpp>
using namespace strata;

auto batches() {
#ifdef TWIN
  return data::from_tensor_slices(data::csv<3, 1>("houses.csv")) | data::batch<2>;
#else
  return data::csv<3, 1>("houses.csv") | data::batch<2>;
#endif
}
