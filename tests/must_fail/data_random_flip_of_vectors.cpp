// error: data::random_flip takes a view of images, samples of shape .height, width, channels., before batch
#include <strata/data/image/random_flip.hpp>
#include <strata/data/sources/from_tensor_slices.hpp>
#include <vector>

using namespace strata;
#ifdef TWIN
constexpr shape sample{4, 4, 1};
#else
constexpr shape sample{16};
#endif
void flip(data::array<float, sample> x) { data::random_flip(data::from_tensor_slices(x)); }
