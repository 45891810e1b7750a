// Adds a text of the user to the description of a data set.
#pragma once
#include <ranges>
#include <strata/base/error.hpp>
#include <strata/base/text.hpp>
#include <strata/data/core/closure.hpp>
#include <string>
#include <utility>

namespace strata::data {

/// V with a text in its description.
template <std::ranges::view V>
class tagged_view : public V {
 public:
  /// Throws strata_error if the text is empty or has more than one line.
  tagged_view(V view, std::string text) : V(std::move(view)), text_(std::move(text)) {
    if (text_.empty() || text_.find_first_of("\r\n") != text_.npos) throw_error("tag: the text must be one line and not empty");
  }

  /// The description of V, followed by the text.
  std::string order() const {
    std::string before;
    if constexpr (requires(const V& view) { view.order(); }) before = V::order() + " | ";
    return before + "tag(" + text_ + ")";
  }

 private:
  std::string text_;
};

namespace detail {
struct tag_fn {
  template <std::ranges::range V>
  auto operator()(V view, std::string text) const {
    constexpr bool right_view = std::ranges::view<V>;
    static_assert(right_view, "data::tag takes a view of samples, elements or batches");
    if constexpr (right_view) return tagged_view<V>(std::move(view), std::move(text));
  }
  auto operator()(std::string text) const { return detail::partial(*this, std::move(text)); }
};
}  // namespace detail

/// `train | map(crop) | tag("crop 2")`: the text becomes part of the description of the data set. Functions cannot be compared:
/// change the tag whenever a function changes, so that cache files, positions and snapshots of the earlier samples are refused.
/// Category, size and samples are those of the view. Throws strata_error if the text is empty or has more than one line.
inline constexpr detail::tag_fn tag{};

}  // namespace strata::data
