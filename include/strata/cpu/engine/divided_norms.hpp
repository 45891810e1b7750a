// Norms of parameters of which each rank has a part.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <strata/base/arena.hpp>
#include <strata/cpu/engine/sums_of_squares.hpp>
#include <strata/kernel/rank_exchange.hpp>
#include <strata/network/parameter_ranges.hpp>
#include <strata/network/rank_messages.hpp>
#include <strata/network/shard_places.hpp>

namespace strata::core {

/// Squares of elements are added up in the pieces of the arena of the whole network, as one device does, so equal elements give a
/// norm of the same bits. A piece has elements of several ranks, so they send them to the rank that adds up this piece; then all
/// ranks get the sums of all pieces. So for each norm a rank sends as many elements as it has of the parameter.
template <class T, divided_network Network>
class divided_norms {
  static constexpr const auto& own_layout = layout_of<typename Network::items>;
  static constexpr const auto& whole_layout = layout_of<typename Network::whole::items>;
  static constexpr const auto& places = detail::shard_places<Network>;
  static constexpr long ranks = Network::ranks, most_elements = detail::elements_of_norms(ranks);
  static constexpr long numbers_of_sum = long(sizeof(double) / sizeof(T));

  rank_exchange<T>* exchange_;
  arena<T> piece_{std::size_t(most_elements)};  // elements of the whole parameter that this rank adds up

 public:
  static constexpr long elements_on_the_way = most_elements;  // for which the exchange has room

  explicit divided_norms(rank_exchange<T>* exchange) : exchange_(exchange) {}

  /// values_of(slot): the values of a trained parameter, or null if they are at another place of a pipeline. `numbers` has one
  /// sum for each piece of each parameter in the arena of the rank: the first becomes the sum of squares of the whole parameter,
  /// the others 0.
  template <class F>
  void complete(double* numbers, F&& values_of, std::span<const parameter_range> parameters) {
    std::size_t k = 0;
    for (std::size_t s = 0; s < std::size_t(own_layout.count); ++s) {
      const parameter_slot& slot = own_layout.slots[s];
      if (!slot.what.trainable) continue;
      const parameter_range& p = parameters[k];
      const long first = piece_of(long(k), p.begin), last = piece_of(long(k), p.end - 1);
      ++k;
      const T* const values = values_of(int(s));
      if (p.frozen || !values) continue;
      const detail::shard_place& place = places[s];
      const parameter_slot& whole = whole_layout.slots[place.whole_slot];
      const long begin = whole.offset, end = begin + whole.what.extents.size();
      numbers[first] = place.is_divided ? sum_over_ranks(place, values, begin, end)
                                        : sum_of_pieces(values - begin, begin, end, 0, [](double) {});
      std::fill(numbers + first + 1, numbers + last + 1, 0.);
    }
  }

 private:
  /// Goes on from `sum`. values[at] is element `at` of the arena. Calls f(sum of the piece) for each.
  template <class F>
  static double sum_of_pieces(const T* values, long begin, long end, double sum, F&& f) {
    for (long at = begin, stop; at < end; at = stop) {
      stop = std::min(end, (at / norm_piece + 1) * norm_piece);
      const double squares = detail::sum_of_squares(values, at, stop);
      f(squares);
      sum += squares;
    }
    return sum;
  }

  /// The sum for a parameter at [begin, end) of the whole arena. In each round every rank adds up equally many pieces.
  double sum_over_ranks(const detail::shard_place& place, const T* own, long begin, long end) {
    long pieces = 1;
    while (ranks * place.most_of(2 * pieces * norm_piece) <= most_elements && 2 * pieces * norm_piece <= most_elements)
      pieces *= 2;
    const long elements = place.most_of(pieces * norm_piece);
    double sum = 0;
    for (long round = begin / norm_piece; round * norm_piece < end; round += ranks * pieces) {
      const auto first_of = [&](int r) { return (round + r * pieces) * norm_piece; };
      // f(element of the arena, own element of rank `of`, count) for the elements that rank `of` sends to rank `to`
      const auto for_runs = [&](int of, int to, auto&& f) {
        const long from = std::max(begin, first_of(to)), stop = std::min(end, first_of(to + 1));
        if (from < stop)
          place.for_runs_of_whole(of, from - begin, stop - begin,
                                  [&](long at, long own_at, long n) { f(begin + at, own_at, n); });
      };
      for (int r = 0; r < int(ranks); ++r) {
        T* to = exchange_->own() + r * elements;
        for_runs(exchange_->rank(), r, [&](long, long own_at, long n) { to = std::copy_n(own + own_at, n, to); });
      }
      const T* const parts = exchange_->swap(elements);
      const int here = exchange_->rank();
      for (int r = 0; r < int(ranks); ++r) {
        const T* from = parts + r * elements;
        for_runs(r, here, [&](long at, long, long n) {
          std::copy_n(from, n, piece_.data() + at - first_of(here));
          from += n;
        });
      }
      sum = add_pieces(std::max(begin, first_of(here)), std::min(end, first_of(here + 1)), first_of(here), pieces, sum);
    }
    return sum;
  }
  /// piece_ has elements [begin, end) of the arena, from `first` on. Adds the sums of `pieces` pieces of each rank to `sum`.
  double add_pieces(long begin, long end, long first, long pieces, double sum) {
    T* to = exchange_->own();
    std::fill_n(to, pieces * numbers_of_sum, T{});
    sum_of_pieces(piece_.data() - first, begin, end, 0, [&](double squares) {
      std::memcpy(to, &squares, sizeof squares);
      to += numbers_of_sum;
    });
    const T* const all = exchange_->gather(pieces * numbers_of_sum);
    for (long i = 0; i < ranks * pieces; ++i) {
      double squares;
      std::memcpy(&squares, all + i * numbers_of_sum, sizeof squares);
      sum += squares;
    }
    return sum;
  }
};

}  // namespace strata::core
