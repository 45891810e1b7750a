// The notice that fit prints, once per program, if the inputs look like unscaled pixels.
#pragma once
#include <algorithm>
#include <atomic>
#include <cmath>
#include <strata/concepts/batch_source.hpp>
#include <strata/network/tape.hpp>
#include <string_view>

namespace strata::detail {

/// Whether the first layers compute with numbers as the data have them: neither an embedding nor a normalization or rescaling.
template <class Network>
constexpr bool computes_with_inputs() {
  constexpr const auto& t = tape_of<typename Network::items>;
  for (int i = 0; i < t.size; ++i) {
    const tape_node& node = t.nodes[i];
    if (node.is_input() || input_of_node(t.nodes, i).exists() || !input_of_node(t.nodes, node.input[0]).exists()) continue;
    const std::string_view name = node.operation->name;
    if (node.operation->traits.looks_up || name.ends_with("normalization") || name == "rescaling") return false;
  }
  return true;
}

/// Whether the elements of the first rows are integers from 0 to 255, of which one is above 200. `size`: elements of a row.
template <class T>
[[gnu::cold]] bool are_raw_pixels(const T* rows, int count, long size) {
  if (size < 64) return false;
  T largest = 0;
  for (long i = 0; i < std::min(count, 16) * size; ++i) {
    if (!(rows[i] >= 0 && rows[i] <= 255 && rows[i] == std::floor(rows[i]))) return false;
    largest = std::max(largest, rows[i]);
  }
  return largest > 200;
}

inline constexpr std::string_view pixel_notice =
    "strata: the inputs are whole numbers up to 255, like the pixels of image files; networks learn better from numbers between "
    "0 and 1: divide by 255, or put data::scale(1 / 255.0) before batch";

inline std::atomic<bool> pixel_notice_was_given = false;

}  // namespace strata::detail
