// Shapes: rank, size, comparison; a shape or the reason why there is none.
#include <strata/base/shape.hpp>
#include <type_traits>
using namespace strata;
using namespace strata::core;

static_assert(shape{}.rank() == 0 && shape{}.size() == 1);
static_assert(shape{10}.rank() == 1 && shape{10}.last() == 10);
static_assert(shape{28, 28, 1}.rank() == 3 && shape{28, 28, 1}.size() == 784 && shape{28, 28, 3}.last() == 3);
static_assert(shape{2, 3, 4, 5}.rank() == 4 && shape{2, 3, 4, 5}.size() == 120);
static_assert(shape{2, 3, 4, 5}[0] == 2 && shape{2, 3, 4, 5}[1] == 3 && shape{2, 3, 4, 5}[2] == 4 && shape{2, 3, 4, 5}[3] == 5);
static_assert(shape{4, 5} == shape{4, 5} && shape{4, 5} != shape{5, 4} && shape{4} != shape{4, 1});

// A shape can be a template argument, and is an aggregate of scalars, as nvcc requires.
template <shape>
struct takes_shape;
using usable = takes_shape<shape{28, 28, 1}>;
static_assert(std::is_aggregate_v<shape> && std::is_trivially_copyable_v<shape>);

constexpr shape set_by_index() {
  shape s{1, 2, 3};
  s[1] = 7;
  return s;
}
static_assert(set_by_index() == shape{1, 7, 3});

inline constexpr reason too_small{"the image is too small"};
static_assert(!expected_shape{shape{3}}.refused && expected_shape{shape{3}}.value == shape{3});
static_assert(expected_shape{too_small}.refused && expected_shape{too_small}.why == &too_small);
