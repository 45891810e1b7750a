// When the output of each group of a plan is read for the last time.
#pragma once
#include <algorithm>

namespace strata::detail {

/// last[g]: the last step that reads the output of group g. forward(g), back(g): the steps that compute a group and its
/// gradients. is_counted(g, k): whether what group g reads as its input k is the output itself, not a copy.
template <int Max>
constexpr void find_last_reads(const auto& plan, auto&& forward, auto&& back, auto&& is_counted, int (&last)[Max]) {
  const int G = plan.group_count;
  for (int g = 0; g < G; ++g) last[g] = plan.groups[g].trains && plan.groups[g].kernel.reads_output ? back(g) : forward(g);
  for (int k = 0; k < plan.output_count; ++k) {
    int& of_output = last[plan.output_group[k]];
    of_output = std::max(of_output, G);  // metrics read predictions before backward
  }
  for (int g = 0; g < G; ++g) {
    const auto& it = plan.groups[g];
    const int read = it.trains && it.kernel.reads_input ? back(g) : forward(g);
    for (int k = 0; k < it.arity; ++k)
      if (it.input[k] >= 0 && is_counted(g, k)) last[it.input[k]] = std::max(last[it.input[k]], read);
  }
}

}  // namespace strata::detail
