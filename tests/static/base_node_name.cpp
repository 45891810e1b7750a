// The names of nodes at run time.
#include <strata/base/node_name.hpp>
#include <strata/data/core/column.hpp>
#include <type_traits>
#include <vector>

using namespace strata;
using namespace strata::core;

namespace {
struct kind {};
struct outer {
  struct box {};
};
template <class From, int N>
struct down {};
struct renamed {
  static constexpr auto node_name = "the class";
};
}  // namespace

static_assert(detail::node_name<kind> == "kind");
static_assert(detail::node_name<outer::box> == "box");
static_assert(detail::node_name<down<outer::box, 3>>.starts_with("down<"));
static_assert(detail::node_name<renamed> == "the class");

// A column borrows an array that has a name and owns one that has not.
static_assert(std::is_same_v<decltype(of<kind>(std::declval<std::vector<float>&>())), column<kind, const std::vector<float>&>>);
static_assert(std::is_same_v<decltype(of<kind>(std::vector<float>())), column<kind, std::vector<float>>>);
static_assert(std::is_same_v<column<kind, const std::vector<float>&>::array_type, std::vector<float>>);
static_assert(detail::is_column<column<kind, std::vector<float>>> && !detail::is_column<kind>);
