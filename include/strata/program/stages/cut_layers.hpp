// Cuts of the layers of a network into stages: balanced by their costs, or by hand.
#pragma once
#include <strata/program/stages/layers_in_a_row.hpp>

namespace strata {

namespace detail {
/// Layers [begin[s], begin[s + 1]) are stage s.
template <int Stages>
struct cut {
  int begin[Stages + 1] = {};
};

/// A layer that computes, with those after it that stay with their input, and those before the first one.
template <int Max>
constexpr layer_row<Max> layers_to_cut_at(const layer_row<Max>& all) {
  layer_row<Max> row;
  for (int k = 0; k < all.count; ++k) {
    if (all.computes[k]) {
      row.first[row.count] = row.count == 0 ? 0 : k;  // the number of the layer in `all`
      ++row.count;
    }
    if (row.count == 0) continue;
    row.cost[row.count - 1] += all.cost[k];
    if (all.sent[k] > 0) row.sent[row.count - 1] = all.sent[k];  // not of a view
  }
  row.first[row.count] = all.count;
  return row;
}

/// Each stage takes as many layers as cost `limit` at most, and leaves one for each stage after it. Returns whether all are
/// taken.
template <int Stages, int Max>
constexpr bool cut_within(const layer_row<Max>& row, double limit, cut<Stages>& c) {
  int at = 0;
  for (int s = 0; s < Stages; ++s) {
    c.begin[s] = row.first[at];
    const int last = row.count - (Stages - 1 - s);
    int end = at;
    double cost = 0;
    for (int k = at; k < last && (cost += row.cost[k]) <= limit; ++k)
      if (cost + (k + 1 < row.count ? row.sent[k] : 0) <= limit) end = k + 1;
    if (end == at) return false;
    at = end;
  }
  c.begin[Stages] = row.first[row.count];
  return at == row.count;
}

/// The smallest limit within which stages can be cut, to a thousandth.
template <int Stages, int Max>
constexpr cut<Stages> balanced_cut(const layer_row<Max>& all) {
  const layer_row<Max> row = layers_to_cut_at(all);
  double low = 0, high = 0;
  for (int k = 0; k < row.count; ++k) high += row.cost[k] + row.sent[k];
  cut<Stages> best, tried;
  cut_within(row, high, best);
  while (high - low > 0.001 * high) {
    const double middle = (low + high) / 2;
    if (cut_within(row, middle, tried))
      high = middle, best = tried;
    else
      low = middle;
  }
  return best;
}

/// The layers that compute in stage s.
template <int Stages, int Max>
constexpr int computing_layers(const layer_row<Max>& row, const cut<Stages>& c, int s) {
  int n = 0;
  for (int k = c.begin[s]; k < c.begin[s + 1] && k < row.count; ++k) n += row.computes[k];
  return n;
}
}  // namespace detail

/// Cuts the layers of a network into `Count` stages that take about equally long: the compiler minimises the time of the longest
/// one, which it estimates from the multiply-adds of its layers and the bytes that they read, write and send.
template <int Count>
struct balanced {
  static constexpr int count = Count;

  template <class Items>
  static constexpr auto cut_of = detail::balanced_cut<Count>(detail::layers_of<Items>);
  template <class Items>
  static constexpr bool has_all_layers = true;
};

/// Cuts the layers of a network by hand: the first stage has the first `Counts...[0]` of them after the input, and so on. Layers
/// of an inner `sequential` count one by one; a join with its branches is one layer.
template <int... Counts>
struct stages {
  static constexpr int count = sizeof...(Counts);

  template <class Items>
  static constexpr auto cut_of = [] {
    detail::cut<count> c;
    int at = 0, s = 0;
    ((c.begin[s++] = at, at += Counts), ...);
    c.begin[count] = at;
    return c;
  }();
  template <class Items>
  static constexpr bool has_all_layers = (0 + ... + Counts) == detail::layers_of<Items>.count;
};

}  // namespace strata
