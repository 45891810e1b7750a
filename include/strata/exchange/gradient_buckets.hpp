// The pieces in which gradients are reduced: ranges of the arena in the order in which the backward completes them.
#pragma once
#include <algorithm>
#include <mutex>
#include <set>
#include <span>
#include <strata/base/text.hpp>
#include <strata/exchange/gradient_bucket.hpp>
#include <strata/network/layer_names.hpp>
#include <strata/program/compiled.hpp>
#include <string>
#include <vector>

namespace strata {

namespace core {
/// The value for bytes_per_pack = 0, chosen by measurement (docs/decisions/distribute/gradient_buckets.md).
inline constexpr std::size_t default_bytes_per_pack = std::size_t{1} << 20;
}  // namespace core

namespace detail {
/// A copy of the text that lives until the program ends.
inline const char* lasting(const std::string& text) {
  static std::mutex mutex;
  static std::set<std::string> kept;
  const std::lock_guard lock(mutex);
  return kept.insert(text).first->c_str();
}

[[gnu::cold]] inline std::vector<gradient_bucket> gradient_buckets(std::span<const kernel_group> groups,
                                                                   std::span<const tape_node> nodes, long elements,
                                                                   long elements_per_pack, std::span<const long> cuts = {}) {
  const std::vector<std::string> layers = layer_names(nodes);
  std::vector<gradient_bucket> buckets;
  long begin = elements, end = elements;
  int last = -1;  // group of the bucket that is being filled
  for (int g = int(groups.size()) - 1; g >= 0; --g) {
    const kernel_group& it = groups[std::size_t(g)];
    const long above = begin;
    for (int k = 0; k < it.parameter_count; ++k)
      if (it.trainable[k]) begin = std::min(begin, it.parameters[k]);
    if (begin == above) continue;
    if (last < 0) last = g;
    if (begin > 0 && (cuts.empty() ? end - begin < elements_per_pack : std::ranges::find(cuts, begin) == cuts.end())) continue;
    const auto layer = [&](int of) {
      return layers[std::size_t(nodes[std::size_t(groups[std::size_t(of)].first)].layer_number)];
    };
    buckets.push_back(
        {begin, end, g,
         lasting(detail::text_of({"gradients of ", layer(g), g == last ? "" : detail::text_of({" ... ", layer(last)})}))});
    end = begin;
    last = -1;
  }
  return buckets;
}
}  // namespace detail

namespace core {
/// Collects whole groups, the last ones first, until a bucket has that many bytes: the arena is in the order of the tape. 0: the
/// default. If the plan is cut, a bucket is the parameters of a segment.
template <class Program, class Backend>
std::vector<gradient_bucket> gradient_buckets(std::size_t bytes_per_pack) {
  constexpr const auto& plan = plan_of<Program, Backend>;
  if (bytes_per_pack == 0) bytes_per_pack = default_bytes_per_pack;
  return detail::gradient_buckets(std::span(plan.groups).first(std::size_t(plan.group_count)),
                                  tape_of<typename Program::items>.nodes, layout_of_program<Program>.trainable,
                                  long(bytes_per_pack / sizeof(typename Program::value_type)),
                                  std::span(plan.begin_of_segment).first(plan.is_cut ? std::size_t(plan.segment_count) : 0));
}
}  // namespace core

}  // namespace strata
