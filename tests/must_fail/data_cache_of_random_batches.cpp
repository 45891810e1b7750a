// error: data::cache after a random stage would keep the random numbers of the first epoch
#include <strata/data/image/random_flip.hpp>
#include <strata/data/sources/from_tensor_slices.hpp>
#include <strata/data/views/batch.hpp>
#include <strata/data/views/cache.hpp>
using namespace strata;

auto check(data::array<float, shape{2, 2, 1}> images) {
  auto view = data::from_tensor_slices(images);
#ifdef TWIN
  return data::cache(view | data::batch<2>);
#else
  return data::cache(view | data::random_flip() | data::batch<2>);
#endif
}
