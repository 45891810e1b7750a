// Where parameters lie in their arena, and buffers in the workspace.
#include <strata/program/place_buffers.hpp>
#include <strata/strata.hpp>
using namespace strata;
using namespace strata::core;

// Each parameter begins at an aligned address, and ends before the next one begins.
using net = sequential<input<5, 5, 3>, conv2d<7, 3, relu>, batch_norm<>, flatten, dense<3>>;
constexpr const auto& layout = layout_of<net::items>;
constexpr auto follow_each_other = [](bool trainable, long at) {
  for (int s = 0; s < layout.count; ++s) {
    if (layout.slots[s].what.trainable != trainable) continue;
    if (layout.slots[s].offset != at) return -1L;
    at += detail::aligned_elements(layout.slots[s].what.extents.size());
  }
  return at;
};
static_assert(detail::aligned_elements(7) > 7 &&
              detail::aligned_elements(detail::aligned_elements(7)) == detail::aligned_elements(7));
static_assert(follow_each_other(true, 0) == layout.trainable && follow_each_other(false, layout.trainable) == layout.size);

// The places of two buffers that are not used at the same time.
struct placed {
  int size, first, second;
  friend bool operator==(const placed&, const placed&) = default;
};
constexpr placed place(int elements_of_first, int elements_of_second, auto pass_of) {
  workspace_location at[2];
  const workspace_buffer buffers[] = {{16, elements_of_first, 0, 1, &at[0]}, {16, elements_of_second, 2, 3, &at[1]}};
  const int size = place_in_workspace<4>(buffers, 2, pass_of);
  return {size, at[0].offset, at[1].offset};
}
constexpr auto one_pass = [](int) { return 0; };
constexpr auto two_passes = [](int step) { return step / 2; };
// In a later pass any memory is free again; within a pass only where the samples lie at the same positions.
static_assert(place(10, 12, two_passes) == placed{16, 0, 0});
static_assert(place(10, 12, one_pass) == placed{32, 0, 16});
static_assert(place(10, 10, one_pass) == placed{16, 0, 0});
