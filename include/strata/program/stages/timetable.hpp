// Who computes which micro-batch when: the timetable of a program that is split into stages, as one constexpr value.
#pragma once
#include <algorithm>
#include <array>
#include <strata/base/reason.hpp>
#include <strata/base/text.hpp>
#include <string>

namespace strata {

namespace core {
/// A place computes forward, or backward, of one stage for one micro-batch.
struct turn {
  int stage = 0, micro_batch = 0;
  bool backward = false;
};

/// For each place its turns, in order. Stage s is computed at place s % Places. If a batch has more micro-batches than the table,
/// the table is repeated. For each stage it has the micro-batches in ascending order, forward and backward: a weight adds up
/// its gradients in the order in which one place would.
template <int Places, int Stages, int MicroBatches>
struct timetable {
  static constexpr int places = Places, stages = Stages, micro_batches = MicroBatches;
  static constexpr int turns_of_place = 2 * MicroBatches * Stages / Places;
  static_assert(Stages % Places == 0);
  std::array<std::array<turn, std::size_t(turns_of_place)>, std::size_t(Places)> turns{};

  static constexpr int place_of(int stage) { return stage % Places; }

  /// The most micro-batches of which a stage keeps activations at a time.
  constexpr int in_flight(int stage) const {
    int now = 0, most = 0;
    for (const turn& t : turns[std::size_t(place_of(stage))])
      if (t.stage == stage) most = std::max(most, now += t.backward ? -1 : 1);
    return most;
  }

  /// Whether each place computes each of its stages once for each micro-batch, in order, backward after forward.
  constexpr bool is_complete() const {
    for (int s = 0; s < Stages; ++s) {
      int done[2] = {};
      for (const turn& t : turns[std::size_t(place_of(s))]) {
        if (t.stage != s) continue;
        if (t.micro_batch != done[t.backward]++ || done[1] > done[0]) return false;
      }
      if (done[0] != MicroBatches || done[1] != MicroBatches) return false;
    }
    return true;
  }

  /// How long the whole table takes if stages form a row and messages take no time, and when each turn ends. -1: places wait for
  /// each other for ever.
  template <class Time>
  struct times {
    std::array<std::array<Time, std::size_t(turns_of_place)>, std::size_t(Places)> end{};
    Time whole = 0;
  };
  /// Forward of a stage takes 1, backward 2.
  constexpr times<int> simulate() const {
    return simulate<int>([](const turn& t) { return t.backward ? 2 : 1; });
  }
  /// A turn takes lasts(turn), which is positive.
  template <class Time, class Lasts>
  constexpr times<Time> simulate(Lasts&& lasts) const {
    times<Time> all;
    Time forward[Stages][MicroBatches] = {}, backward[Stages][MicroBatches] = {}, now[Places] = {};
    int next[Places] = {};
    for (bool goes_on = true; goes_on;) {
      goes_on = false;
      for (int p = 0; p < Places; ++p)
        for (; next[p] < turns_of_place; ++next[p]) {
          const turn& t = turns[std::size_t(p)][std::size_t(next[p])];
          Time begin = now[p];
          const auto after = [&](Time end) {
            begin = std::max(begin, end);
            return end > 0;
          };
          const int s = t.stage, m = t.micro_batch;
          if (!t.backward && s > 0 && !after(forward[s - 1][m])) break;
          if (t.backward && !after(s + 1 < Stages ? backward[s + 1][m] : forward[s][m])) break;
          now[p] = begin + lasts(t);
          (t.backward ? backward : forward)[s][m] = now[p];
          all.end[std::size_t(p)][std::size_t(next[p])] = now[p];
          all.whole = std::max(all.whole, now[p]);
          goes_on = true;
        }
    }
    for (int p = 0; p < Places; ++p)
      if (next[p] < turns_of_place) all.whole = -1;
    return all;
  }
  /// The share of its time that a place waits, by this measure.
  constexpr double bubble() const {
    const double work = 3.0 * MicroBatches * Stages / Places;
    return 1 - work / simulate().whole;
  }
};

/// One micro-batch at a time: each place computes it forward, then backward, and waits in between for others that it reads.
template <int Places>
inline constexpr timetable<Places, Places, 1> one_at_a_time = [] {
  timetable<Places, Places, 1> all;
  for (int p = 0; p < Places; ++p) all.turns[std::size_t(p)] = {turn{p, 0, false}, turn{p, 0, true}};
  return all;
}();

// Diagnostics about schedules. None of the templates is ever defined.
template <class Schedule, class With, class Why>
struct wrong_schedule;
template <int Count>
struct with_stages;
}  // namespace core

/// How many micro-batches a batch is cut into, for a pipeline: places compute different ones at the same time.
template <int Count>
struct micro_batches {
  static constexpr int count = Count;
};

/// All micro-batches forward, then all backward: a stage keeps the activations of all of them (Huang et al. 2019, GPipe).
/// https://arxiv.org/abs/1811.06965
struct gpipe {
  static constexpr auto name = "gpipe";
  static constexpr int stages_of_a_place = 1;

  template <int Stages, int MicroBatches>
  static constexpr auto table() {
    core::timetable<Stages, Stages, MicroBatches> all;
    for (int p = 0; p < Stages; ++p)
      for (int m = 0; m < MicroBatches; ++m) {
        all.turns[std::size_t(p)][std::size_t(m)] = {p, m, false};
        all.turns[std::size_t(p)][std::size_t(MicroBatches + m)] = {p, m, true};
      }
    return all;
  }
};

/// After a few micro-batches forward a stage computes one forward and one backward in turn, so that stage s of S keeps the
/// activations of S - s micro-batches at most (Narayanan et al. 2019, PipeDream; with an update after each batch).
/// https://arxiv.org/abs/1806.03377
struct one_forward_one_backward {
  static constexpr auto name = "one_forward_one_backward";
  static constexpr int stages_of_a_place = 1;

  template <int Stages, int MicroBatches>
  static constexpr auto table() {
    core::timetable<Stages, Stages, MicroBatches> all;
    for (int p = 0; p < Stages; ++p) {
      const int ahead = std::min(MicroBatches, Stages - p);
      int forward = 0, backward = 0;
      for (core::turn& t : all.turns[std::size_t(p)]) {
        const bool goes_back = forward == MicroBatches || forward - backward == ahead;
        t = {p, goes_back ? backward++ : forward++, goes_back};
      }
    }
    return all;
  }
};

/// one_forward_one_backward where each place has `StagesOfAPlace` stages that do not follow each other: of S stages place p of P
/// has p, p + P, ... The bubble is smaller by that factor, and there are more messages. MicroBatches is a multiple of P
/// (Narayanan et al. 2021, Megatron-LM).  https://arxiv.org/abs/2104.04473
template <int StagesOfAPlace>
struct interleaved {
  static constexpr auto name = "interleaved";
  static constexpr int stages_of_a_place = StagesOfAPlace;

  template <int Stages, int MicroBatches>
  static constexpr auto table() {
    constexpr int places = Stages / StagesOfAPlace, whole = places * StagesOfAPlace, turns = MicroBatches * StagesOfAPlace;
    core::timetable<places, Stages, MicroBatches> all;
    // Turn k of one direction: groups of `places` micro-batches go through all stages of the place.
    const auto turn_of = [&](int p, int k, bool backward) {
      const int step = k % whole / places, chunk = backward ? StagesOfAPlace - 1 - step : step;
      return core::turn{chunk * places + p, k / whole * places + k % places, backward};
    };
    for (int p = 0; p < places; ++p) {
      const int ahead = std::min(turns, (places - p - 1) * 2 + (StagesOfAPlace - 1) * places + 1);
      int forward = 0, backward = 0;
      for (core::turn& t : all.turns[std::size_t(p)]) {
        const bool goes_back = forward == turns || forward - backward == ahead;
        t = turn_of(p, goes_back ? backward++ : forward++, goes_back);
      }
    }
    return all;
  }
};

namespace detail {
/// What each place computes, in order.
[[gnu::cold]] std::string text_of_turns(const auto& table) {
  std::string turns;
  for (const auto& of_place : table.turns)
    for (const turn& t : of_place) turns += text_of({t.backward ? " B" : " F", t.micro_batch, ".", t.stage});
  return turns;
}
/// How Split divides a network: ` 2 places with the stages 0 0 1 and the turns F0.0 ...`.
template <class Split, class Items>
[[gnu::cold]] std::string text_of_stages() {
  std::string stages;
  for (const int stage : Split::template stage_of_node<Items>) stages += text_of({" ", stage});
  return text_of({" ", Split::table.places, " places with the stages", stages, " and the turns", text_of_turns(Split::table)});
}
}  // namespace detail

}  // namespace strata
