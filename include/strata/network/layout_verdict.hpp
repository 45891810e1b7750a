// The diagnostic for a layout_map whose rules do not fit a network.
#pragma once
#include <strata/base/reason.hpp>
#include <strata/network/divide_nodes.hpp>
#include <strata/network/layout_map.hpp>
#include <type_traits>

namespace strata {

namespace core {
// The words of the diagnostics. None is ever defined.
template <int Index>
struct at_rule;
template <class Where, class Rule, class Why>
struct rule_decides_nothing;
template <class Layer, class Among, class Why>
struct layer_cannot_be_divided;
template <int Ranks>
struct among_ranks;
}  // namespace core
namespace reasons {
inline constexpr reason after_the_number_of_ranks_comes_a_layout_map_of_rules_such_as_rule_of_a_name_and_by_columns{
    "after the number of ranks comes a layout_map of rules: tensor_parallel<2, layout_map<rule<\"dense*\", by_columns>>>{}"};
inline constexpr reason a_layout_map_has_rules_such_as_rule_of_a_name_and_by_columns{
    "a layout_map has rules: layout_map<rule<\"dense*\", by_columns>>"};
inline constexpr reason a_layer_is_divided_by_columns_by_rows_or_by_classes{
    "a layer is divided by_columns, by_rows or by_classes: rule<\"dense*\", by_columns>"};
inline constexpr reason no_layer_has_such_a_name_or_type_or_an_earlier_rule_matches_it{
    "no layer has such a name or type, or an earlier rule matches it"};
}  // namespace reasons

namespace detail {
template <class T>
concept division_rule = requires { typename T::how; } && division_kind_of<typename T::how> != division_kind::whole;

/// no_complaint, or the first diagnostic about the rules.
template <class Network, class Map, int Ranks>
struct layout_verdict {
  using type = wrong_argument<
      Map, because<reasons::after_the_number_of_ranks_comes_a_layout_map_of_rules_such_as_rule_of_a_name_and_by_columns>>;
};
template <class Network, class... Rules, int Ranks>
struct layout_verdict<Network, layout_map<Rules...>, Ranks> {
  static constexpr int wrong = [] {
    const bool is_right[] = {division_rule<Rules>..., false};
    int first = 0;
    while (is_right[first]) ++first;
    return first;
  }();
  using rule = at_t<wrong, type_list<Rules...>>;
  using type = wrong_argument<
      rule, because<(requires { typename rule::how; } ? reasons::a_layer_is_divided_by_columns_by_rows_or_by_classes
                                                      : reasons::a_layout_map_has_rules_such_as_rule_of_a_name_and_by_columns)>>;
};
template <class Network, class... Rules, int Ranks>
  requires(division_rule<Rules> && ...)
struct layout_verdict<Network, layout_map<Rules...>, Ranks> {
  static constexpr const auto& division = division_of_items<typename Network::items, layout_map<Rules...>, Ranks>::value;
  static constexpr const reason& words() { return *division.why; }
  static auto sentence() {
    if constexpr (division.unused_rule >= 0)
      return std::type_identity<
          rule_decides_nothing<at_rule<division.unused_rule>, at_t<division.unused_rule, type_list<Rules...>>,
                               because<reasons::no_layer_has_such_a_name_or_type_or_an_earlier_rule_matches_it>>>{};
    else if constexpr (division.bad_node >= 0)
      return std::type_identity<
          layer_cannot_be_divided<by_layer<typename at_t<division.bad_node, node_types_of<typename Network::items>>::layer>,
                                  among_ranks<Ranks>, because<words()>>>{};
    else
      return std::type_identity<no_complaint>{};
  }
  using type = typename decltype(sentence())::type;
};
}  // namespace detail

}  // namespace strata
