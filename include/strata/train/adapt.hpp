// What trainer::adapt computes: the mean and variance of each feature of a data set, for the layers `normalization`.
#pragma once
#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <span>
#include <strata/base/error.hpp>
#include <strata/base/multiply_add.hpp>
#include <strata/base/text.hpp>
#include <strata/layers/normalization.hpp>
#include <strata/network/layer_names.hpp>
#include <strata/network/layout.hpp>
#include <strata/train/batch_stream.hpp>
#include <string>
#include <vector>

namespace strata {

namespace core {
template <class Network, class Why>
struct nothing_to_adapt;
}  // namespace core

namespace reasons {
inline constexpr reason adapt_needs_a_normalization_after_input{
    "adapt sets normalization layers that receive the data unchanged: put one after input, or after flatten, reshape or "
    "columns"};
}  // namespace reasons

namespace detail {

/// The moments of features that arrive batch by batch (Chan, Golub and LeVeque 1979).
class feature_moments {
 public:
  explicit feature_moments(int features)
      : mean_(std::size_t(features)), squares_(mean_), batch_mean_(mean_), batch_squares_(mean_) {}

  template <class T>
  [[gnu::cold]] void add(const T* values, std::size_t size) {
    const std::size_t features = mean_.size(), rows = size / features;
    // Sums of differences from the first row, so that a constant feature has exactly that mean, and variance 0.
    batch_mean_.assign(features, 0), batch_squares_.assign(features, 0);
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t c = 0; c < features; ++c) batch_mean_[c] += double(values[r * features + c]) - double(values[c]);
    for (std::size_t c = 0; c < features; ++c) batch_mean_[c] = double(values[c]) + batch_mean_[c] / double(rows);
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t c = 0; c < features; ++c) {
        const double d = double(values[r * features + c]) - batch_mean_[c];
        batch_squares_[c] = multiply_add(d, d, batch_squares_[c]);
      }
    const double before = count_, now = double(rows);
    count_ += now;
    for (std::size_t c = 0; c < features; ++c) {
      const double d = batch_mean_[c] - mean_[c];
      mean_[c] = multiply_add(d, now / count_, mean_[c]);
      squares_[c] += multiply_add(d * d, before * now / count_, batch_squares_[c]);
    }
  }

  /// Throws strata_error if a feature is nan or infinite, or if its moments are too large for T.
  template <class T>
  [[gnu::cold]] void write(T* mean, T* variance) const {
    for (std::size_t c = 0; c < mean_.size(); ++c) {
      mean[c] = T(mean_[c]), variance[c] = T(squares_[c] / count_);
      if (!std::isfinite(variance[c]))  // otherwise the mean is finite, too
        throw_error({"adapt: feature ", c, " is nan, infinite or too large for the precision"});
    }
  }

 private:
  std::vector<double> mean_, squares_, batch_mean_, batch_squares_;
  double count_ = 0;
};

/// Whether node i is a normalization of the data as they come: of the input, of a view of it, or of some columns.
template <class Network>
constexpr bool adapts(int i) {
  constexpr const auto& t = tape_of<typename Network::items>;
  return !t.nodes[i].is_input() && t.nodes[i].operation == &info_of<normalization> &&
         input_of_node(t.nodes, t.nodes[i].input[0]).exists();
}
template <class Network>
constexpr int count_adapting() {
  int count = 0;
  for (int i = 0; i < tape_of<typename Network::items>.size; ++i) count += adapts<Network>(i);
  return count;
}
template <class Network>
struct adapt_verdict {
  using type = nothing_to_adapt<Network, because<reasons::adapt_needs_a_normalization_after_input>>;
};
template <class Network>
  requires(count_adapting<Network>() > 0)
struct adapt_verdict<Network> {
  using type = no_complaint;
};

/// The place of a normalization in the arena of parameters.
struct adapting_layer {
  int features;
  long mean, variance;
  part_of_input takes;
};
template <class Network>
constexpr auto adapting_layers() {
  constexpr const auto& t = tape_of<typename Network::items>;
  constexpr const auto& l = layout_of<typename Network::items>;
  std::array<adapting_layer, std::size_t(count_adapting<Network>())> found{};
  std::size_t n = 0;
  for (int s = 0; s < l.count; ++s) {
    if (!adapts<Network>(l.slots[s].node)) continue;
    if (l.slots[s].index == 0)
      found[n] = {l.slots[s].what.extents[0], l.slots[s].offset, 0, input_of_node(t.nodes, t.nodes[l.slots[s].node].input[0])};
    else
      found[n++].variance = l.slots[s].offset;
  }
  return found;
}

template <class Network>
constexpr bool has_normalization() {
  for (const tape_node& each : tape_of<typename Network::items>.nodes)
    if (!each.is_input() && each.operation == &info_of<normalization>) return true;
  return false;
}
/// The notice that fit prints, once for a network, about a layer normalization with mean 0 and variance 1. Otherwise empty.
template <class Network, class T>
[[gnu::cold]] std::string notice_of_normalization(std::span<const T> parameters) {
  static std::atomic<bool> is_said = false;
  constexpr const auto& l = layout_of<typename Network::items>;
  for (int s = 0; s < l.count; ++s) {
    const tape_node& owner = tape_of<typename Network::items>.nodes[l.slots[s].node];
    if (owner.operation != &info_of<normalization> || l.slots[s].index != 0) continue;
    const auto all = [&](int slot, T value) {
      const auto own = parameters.subspan(std::size_t(l.slots[slot].offset), std::size_t(l.slots[slot].what.extents.size()));
      return std::ranges::all_of(own, [value](T each) { return each == value; });
    };
    if (all(s, 0) && all(s + 1, 1) && !is_said.exchange(true))
      return text_of({layer_names_of<Network>()[std::size_t(owner.layer_number)],
                      " changes nothing, because its mean is 0 and its ",
                      adapts<Network>(l.slots[s].node)
                          ? "variance 1: adapt(data) of the trainer sets both, before fit"
                          : "variance 1, which adapt sets only if a normalization receives the data unchanged: batch_norm<> "
                            "learns them anywhere"});
  }
  return {};
}

/// Reads one pass of the data. Nothing has changed if it throws.
template <class T>
[[gnu::cold]] void adapt_to(batch_stream<T>& data, int sample_size, std::span<const adapting_layer> layers,
                            std::span<T> parameters) {
  std::vector<feature_moments> moments;
  for (const adapting_layer& l : layers) moments.emplace_back(l.features);
  long count = 0;
  std::vector<T> part;
  data.start(0);
  for (samples<T> batch; data.next(batch); count += batch.count)
    for (std::size_t i = 0; i < layers.size(); ++i) {
      const part_of_input& takes = layers[i].takes;
      std::span numbers(batch.x(), std::size_t(batch.count) * std::size_t(sample_size));
      if (takes.count < takes.all) {
        part.clear();
        for (std::size_t row = 0; row < numbers.size(); row += std::size_t(takes.all)) {
          const auto some = numbers.subspan(row + std::size_t(takes.first), std::size_t(takes.count));
          part.insert(part.end(), some.begin(), some.end());
        }
        numbers = part;
      }
      moments[i].add(numbers.data(), numbers.size());
    }
  if (count == 0) throw_error("adapt: the data set has no samples");
  std::vector<T> adapted(parameters.begin(), parameters.end());
  for (std::size_t i = 0; i < layers.size(); ++i)
    moments[i].write(adapted.data() + layers[i].mean, adapted.data() + layers[i].variance);
  std::copy_n(adapted.data(), adapted.size(), parameters.data());
}

}  // namespace detail

}  // namespace strata
