// reshape<Extents...>: the same elements under another shape.
#pragma once
#include <span>
#include <strata/concepts/operation.hpp>

namespace strata {

namespace reasons {
inline constexpr reason reshape_must_keep_the_number_of_elements{"reshape must keep the number of elements"};
inline constexpr reason reshape_takes_one_to_four_extents{"reshape takes one to four extents"};
inline constexpr reason reshape_extents_must_be_positive{
    "the extents of reshape must be at least 1; one of them may be -1 and is then computed"};
}  // namespace reasons

namespace detail {
/// One of the extents may be -1, and is computed.
constexpr expected_shape reshaped(shape in, std::span<const int> extents) {
  if (extents.empty() || extents.size() > 4) return reasons::reshape_takes_one_to_four_extents;
  shape out;
  int open = -1, known = 1;
  for (int i = 0; i < int(extents.size()); ++i) {
    out[i] = extents[std::size_t(i)];
    if (out[i] == 0 || out[i] < -1 || (out[i] == -1 && open >= 0)) return reasons::reshape_extents_must_be_positive;
    if (out[i] == -1)
      open = i;
    else
      known *= out[i];
  }
  if (open >= 0) out[open] = in.size() % known == 0 ? in.size() / known : 1;
  if (out.size() != in.size()) return {reasons::reshape_must_keep_the_number_of_elements, shape{out.size()}};
  return out;
}
}  // namespace detail

/// in: any shape  out: (Extents...). The order of elements is row-major, and the memory stays the same. One extent may be -1: it
/// is computed from the others. reshape<7, 7, 64>, reshape<-1, 64>   https://keras.io/api/layers/reshaping_layers/reshape
template <int... Extents>
struct reshape {
  static constexpr auto name = "reshape", class_name = "Reshape";
  static constexpr core::operation_traits traits{.is_view = true, .makes = core::value_range::those_of_its_input};

  static constexpr core::expected_shape output_shape(shape in) {
    constexpr int extents[sizeof...(Extents) + 1] = {Extents..., 0};
    return detail::reshaped(in, std::span<const int>(extents, sizeof...(Extents)));
  }
};

}  // namespace strata
