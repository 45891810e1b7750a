// A plan that is split into stages: which group belongs to which stage, what stages send each other, and the memory of each.
#pragma once
#include <cstddef>
#include <span>
#include <strata/program/compiled.hpp>
#include <strata/program/last_reads.hpp>
#include <strata/program/stages/timetable.hpp>

namespace strata {

namespace core {
/// A place in the memory of a stage for one micro-batch, in elements per sample. Other stages write to what is `received`.
struct stage_location {
  int offset = -1;
  bool received = false;
};

/// An array that one stage sends another for each micro-batch: the output of a group, or the gradient of an output. If groups of
/// several stages read an output, its gradient goes from reader to reader, the last one first, and each adds to it: so it is
/// added up in the order of an undivided pass.
struct stage_transfer {
  int group = 0;  // whose output it is
  bool of_gradient = false;
  int from = 0, to = 0;       // stages
  int after = 0, before = 0;  // the group that computes it, and the first that reads it
  int size = 0;               // elements per sample
  stage_location source, target;
};

/// Backward of a group in two calls, where the stage of another reader of its input adds to the same gradient: what the other
/// stage waits for comes first, what this one waits for last.
enum class backward_order { whole, weights_first, input_first };
}  // namespace core

namespace detail {
/// Readings of outputs by groups: of the batch itself, none.
template <int N>
constexpr int count_readings(const plan<N>& p) {
  int n = 0;
  for (int g = 0; g < p.group_count; ++g)
    for (int k = 0; k < p.groups[g].arity; ++k) n += p.groups[g].input[k] >= 0;
  return n;
}

template <int N, int Readings, int Stages>
struct stage_plan {
  static constexpr int stages = Stages;
  int stage_of[N] = {};  // of each group
  // Of each group, in the memory of its stage.
  stage_location output[N], gradient[N], saved[N], x[N][max_inputs], dx[N][max_inputs];
  backward_order order[N] = {};
  int transfer_count = 0;
  stage_transfer transfers[2 * Readings + 1];
  int own[Stages] = {}, received[Stages] = {};  // elements per sample of a micro-batch

  /// Elements per sample of a stage that keeps `in_flight` micro-batches. There is room to receive one more.
  constexpr long memory_of(int stage, int in_flight) const {
    return long(own[stage]) * in_flight + long(received[stage]) * (in_flight + 1);
  }
};

/// Groups of one stage that read the same output, without a group of another stage that reads it between them.
struct readers {
  int group = 0;  // whose output they read
  int stage = 0;
  int first = 0, last = 0;      // groups
  int before = -1, after = -1;  // the readers of the same output before and after them; -1: none
  stage_location values, gradient;
};

/// stage_of_node: of each node of the tape. A stage computes its groups in order, and backward in reverse order.
template <int Stages, int Readings, int N>
constexpr stage_plan<N, Readings, Stages> make_stage_plan(const plan<N>& p, const auto& stage_of_node) {
  stage_plan<N, Readings, Stages> s;
  const int G = p.group_count;
  const auto back = [&](int g) { return 2 * G - 1 - g; };
  for (int g = 0; g < G; ++g) s.stage_of[g] = stage_of_node[std::size_t(p.groups[g].first)];

  readers runs[Readings + 1];
  int run_count = 0, last_run[N + 1] = {}, run_of[N + 1][max_inputs] = {};
  for (int g = 0; g < G; ++g) last_run[g] = -1;
  for (int g = 0; g < G; ++g)
    for (int k = 0; k < p.groups[g].arity; ++k) {
      const int from = p.groups[g].input[k];
      if (from < 0) continue;
      int& run = last_run[from];
      if (run >= 0 && runs[run].stage == s.stage_of[g]) {
        runs[run].last = g;
      } else {
        runs[run_count] = {from, s.stage_of[g], g, g, run, -1, {}, {}};
        if (run >= 0) runs[run].after = run_count;
        run = run_count++;
      }
      run_of[g][k] = run;
    }

  // Memory that other stages write to, which they may do at any time.
  const auto receive = [&](int stage, int size) {
    const stage_location at{s.received[stage], true};
    s.received[stage] += aligned_elements(size);
    return at;
  };
  const auto is_sent = [&](const readers& r) { return r.stage != s.stage_of[r.group]; };
  for (int i = 0; i < run_count; ++i) {
    readers& r = runs[i];
    const kernel_group& from = p.groups[r.group];
    if (is_sent(r)) r.values = receive(r.stage, from.size);
    if (!from.trains) continue;
    if (is_sent(r) && r.after >= 0) r.gradient = receive(r.stage, from.size);
    const bool arrives = is_sent(r) ? r.before < 0 : r.after >= 0;
    if (arrives && s.gradient[r.group].offset < 0) s.gradient[r.group] = receive(s.stage_of[r.group], from.size);
  }

  // The other buffers of each stage, with their lifetimes.
  int last_read[N + 1] = {};
  find_last_reads(p, [](int g) { return g; }, back, [&](int g, int k) { return !is_sent(runs[run_of[g][k]]); }, last_read);
  for (int stage = 0; stage < Stages; ++stage) {
    workspace_buffer buffers[3 * N + Readings + 1];
    workspace_location placed[3 * N + Readings + 1];
    stage_location* wanted[3 * N + Readings + 1] = {};
    int count = 0;
    const auto born = [&](int elements, int birth, int death, stage_location& at) {
      buffers[count] = {aligned_elements(elements), elements, birth, death, &placed[count]};
      wanted[count++] = &at;
    };
    for (int g = 0; g < G; ++g) {
      if (s.stage_of[g] != stage) continue;
      const kernel_group& it = p.groups[g];
      born(it.size, g, last_read[g], s.output[g]);
      if (it.kernel.saved > 0) born(it.kernel.saved, g, it.trains ? back(g) : g, s.saved[g]);
    }
    for (int g = G - 1; g >= 0; --g)
      for (int k = 0; s.stage_of[g] == stage && k < p.groups[g].arity; ++k) {
        const int from = p.groups[g].input[k];
        if (from < 0 || !p.groups[from].trains) continue;
        readers& r = runs[run_of[g][k]];
        if (is_sent(r) ? r.gradient.offset >= 0 : s.gradient[from].offset >= 0) continue;
        is_sent(r) ? born(p.groups[from].size, back(g), back(r.first), r.gradient)
                   : born(p.groups[from].size, back(g), back(from), s.gradient[from]);
        (is_sent(r) ? r.gradient : s.gradient[from]).offset = 0;  // taken; its place follows
      }
    s.own[stage] = place_in_workspace<3 * N + Readings + 1>(buffers, count, [](int step) { return step; });
    for (int b = 0; b < count; ++b) wanted[b]->offset = placed[b].offset;
  }
  for (int i = 0; i < run_count; ++i)
    if (!is_sent(runs[i])) runs[i].values = s.output[runs[i].group], runs[i].gradient = s.gradient[runs[i].group];
  for (int g = 0; g < G; ++g)
    for (int k = 0; k < p.groups[g].arity; ++k)
      if (p.groups[g].input[k] >= 0) s.x[g][k] = runs[run_of[g][k]].values, s.dx[g][k] = runs[run_of[g][k]].gradient;

  // What is sent.
  for (int i = 0; i < run_count; ++i) {
    const readers& r = runs[i];
    const int size = p.groups[r.group].size, home = s.stage_of[r.group];
    if (is_sent(r))
      s.transfers[s.transfer_count++] = {r.group, false, home, r.stage, r.group, r.first, size, s.output[r.group], r.values};
    if (!p.groups[r.group].trains) continue;
    if (r.before >= 0) {
      const readers& next = runs[r.before];
      s.transfers[s.transfer_count++] = {r.group, true, r.stage, next.stage, r.first, next.last, size, r.gradient, next.gradient};
      if (s.order[r.first] == backward_order::whole) s.order[r.first] = backward_order::input_first;
      s.order[next.last] = backward_order::weights_first;
    } else if (is_sent(r)) {
      s.transfers[s.transfer_count++] = {r.group, true, r.stage, home, r.first, r.group, size, r.gradient, s.gradient[r.group]};
    }
  }
  return s;
}

/// A part of a turn: it computes a group, waits for what another stage sends, or sends.
enum class stage_action {
  wait,
  send,
  forward,
  backward,       // with the gradients of weights, unless order[group] says otherwise
  weights_first,  // these gradients, where they come before a wait
  weights_last    // these gradients, where they come after what is sent
};
struct stage_step {
  stage_action does = stage_action::wait;
  int which = 0;  // transfer or group
  constexpr bool computes() const { return does != stage_action::wait && does != stage_action::send; }
};

/// What a turn does: for each direction and stage its steps, in order. Every engine does these.
template <int Stages, int Most>
struct stage_steps {
  stage_step all[2][Most + 1] = {};  // forward, backward
  int begin[2][Stages + 1] = {};     // of each stage

  constexpr std::span<const stage_step> of(bool backward, int stage) const {
    const int first = begin[backward][stage];
    return {all[backward] + first, std::size_t(begin[backward][stage + 1] - first)};
  }
};
/// Forward goes up through the groups, backward down. A group waits before it is computed and sends after.
template <int N, int Readings, int Stages>
constexpr auto make_stage_steps(const plan<N>& p, const stage_plan<N, Readings, Stages>& s) {
  stage_steps<Stages, 2 * N + 2 * (2 * Readings + 1)> steps;
  int count = 0;
  bool backward = false;
  const auto add = [&](stage_action does, int which) { steps.all[backward][count++] = {does, which}; };
  const auto transfers = [&](stage_action does, int stage, auto&& is_wanted) {
    for (int t = 0; t < s.transfer_count; ++t) {
      const stage_transfer& it = s.transfers[t];
      if (it.of_gradient == backward && (does == stage_action::wait ? it.to : it.from) == stage && is_wanted(it)) add(does, t);
    }
  };
  for (int stage = 0; stage < Stages; ++stage) {
    for (int g = 0; g < p.group_count; ++g) {
      if (s.stage_of[g] != stage) continue;
      transfers(stage_action::wait, stage, [&](const stage_transfer& t) { return t.before == g; });
      add(stage_action::forward, g);
      transfers(stage_action::send, stage, [&](const stage_transfer& t) { return t.after == g; });
    }
    steps.begin[0][stage + 1] = count;
  }
  backward = true, count = 0;
  for (int stage = 0; stage < Stages; ++stage) {
    for (int g = p.group_count - 1; g >= 0; --g) {
      if (s.stage_of[g] != stage || !p.groups[g].trains) continue;
      transfers(stage_action::wait, stage, [&](const stage_transfer& t) { return t.before == g && t.group == g; });
      if (s.order[g] == backward_order::weights_first) add(stage_action::weights_first, g);
      // The gradient of an input to which the group adds.
      transfers(stage_action::wait, stage, [&](const stage_transfer& t) { return t.before == g && t.group != g; });
      add(stage_action::backward, g);
      transfers(stage_action::send, stage, [&](const stage_transfer& t) { return t.after == g; });
      if (s.order[g] == backward_order::input_first) add(stage_action::weights_last, g);
    }
    steps.begin[1][stage + 1] = count;
  }
  return steps;
}

/// Whether a timetable ends that is repeated once, where a stage waits for what is sent to it, and for room where it sends.
/// Without backward turns, as in inference, a stage is done with a micro-batch after its forward turn.
template <int N, int Readings, int Stages, class Steps, class Table>
constexpr bool ends(const stage_plan<N, Readings, Stages>& s, const Steps& steps, const Table& table, bool trains = true) {
  constexpr int rounds = 2, M = Table::micro_batches, places = Table::places, turns = Table::turns_of_place;
  int in_flight[Stages] = {}, released[Stages] = {}, sent[2 * Readings + 1] = {}, next[places] = {}, at[places] = {};
  for (int stage = 0; stage < Stages; ++stage) in_flight[stage] = trains ? table.in_flight(stage) : 1;
  for (bool goes_on = true; goes_on;) {
    goes_on = false;
    for (int p = 0; p < places; ++p)
      while (next[p] < rounds * turns) {
        const turn& now = table.turns[std::size_t(p)][std::size_t(next[p] % turns)];
        const int number = next[p] / turns * M + now.micro_batch;
        bool waits = false;
        const int first = steps.begin[now.backward][now.stage], last = steps.begin[now.backward][now.stage + 1];
        for (; (trains || !now.backward) && first + at[p] < last; ++at[p], goes_on = true) {
          const stage_step& e = steps.all[now.backward][first + at[p]];
          if (e.computes()) continue;
          const int to = s.transfers[e.which].to;
          waits = e.does == stage_action::send ? number > released[to] + in_flight[to] : sent[e.which] <= number;
          if (waits) break;
          if (e.does == stage_action::send) ++sent[e.which];
        }
        if (waits) break;
        if (now.backward == trains) ++released[now.stage];
        at[p] = 0, ++next[p], goes_on = true;
      }
  }
  for (int p = 0; p < places; ++p)
    if (next[p] < rounds * turns) return false;
  return true;
}
}  // namespace detail

namespace core {
/// The stages of a program on a backend with `split`.
template <class Program, class Backend, purpose Why = purpose::training>
inline constexpr auto stage_plan_of =
    detail::make_stage_plan<Backend::split::table.stages, detail::count_readings(plan_of<Program, Backend, Why>)>(
        plan_of<Program, Backend, Why>, Backend::split::template stage_of_node<typename Program::items>);
template <class Program, class Backend, purpose Why = purpose::training>
inline constexpr auto stage_steps_of =
    detail::make_stage_steps(plan_of<Program, Backend, Why>, stage_plan_of<Program, Backend, Why>);

/// Where the parameters of each place lie, on a backend that divides them among processes or devices.
template <class Program, class Backend>
inline constexpr auto arenas_of_places = detail::make_place_arenas<std::remove_cvref_t<decltype(Backend::split::table)>>(
    plan_of<Program, Backend>, layout_of<typename Program::items>,
    Backend::split::template stage_of_node<typename Program::items>);
}  // namespace core

}  // namespace strata
