// residual<items...>: layers with a short cut around them.
#pragma once
#include <strata/layers/add.hpp>

namespace strata {

namespace reasons {
inline constexpr reason residual_keeps_height_and_width_use_same_padding{
    "the layers of residual keep height and width: use same_padding and stride 1, or add with a conv2d<..., 1, stride<...>> "
    "branch"};
inline constexpr reason residual_keeps_the_channels_or_use_add_with_a_branch_of_conv2d_1x1{
    "the layers of residual keep the number of channels: else write add<branch<layers...>, branch<conv2d<channels, 1>>>"};
inline constexpr reason residual_keeps_the_shape{"the layers of residual keep the shape of their input, to which they are added"};
}  // namespace reasons

/// Items... plus their input (He et al., "Deep residual learning", 2016): add<branch<Items...>, branch<>>.
template <class... Items>
struct residual {
  static constexpr auto name = "add", class_name = "Add";
  using join = core::sum_of_branches;
  using operations = core::type_list<join>;
  using branches = core::type_list<branch<Items...>, branch<>>;

  /// The reason why the shape of the items differs from that of their input.
  static constexpr const core::reason& why(shape made, shape input) {
    if (made.rank() != 3 || input.rank() != 3) return reasons::residual_keeps_the_shape;
    return made[0] != input[0] || made[1] != input[1]
               ? reasons::residual_keeps_height_and_width_use_same_padding
               : reasons::residual_keeps_the_channels_or_use_add_with_a_branch_of_conv2d_1x1;
  }
};

}  // namespace strata
