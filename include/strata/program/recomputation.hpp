// A plan in pieces: only what later pieces read is kept in the forward pass, and a piece computes its activations again before
// its backward pass.
#pragma once
#include <strata/program/last_reads.hpp>
#include <strata/program/plan.hpp>

namespace strata::detail {

/// Cuts a plan of one segment into about `wanted` pieces with about equally many activations, and lays out its workspace anew.
template <int N>
constexpr void recompute_in_pieces(plan<N>& p, int wanted) {
  const int G = p.group_count;
  long total = 0, sum = 0;
  const auto activations = [&](int g) { return long(p.groups[g].stored_size()) + p.groups[g].kernel.saved; };
  for (int g = 0; g < G; ++g) total += activations(g);
  p.piece_count = 0;
  for (int g = 0; g < G; ++g) {
    if (sum * wanted >= total * p.piece_count) p.first_of_piece[p.piece_count++] = g;
    p.groups[g].piece = p.piece_count - 1;
    sum += activations(g);
  }
  p.first_of_piece[p.piece_count] = G;

  // Steps: forward of all groups, then for each piece from the last one on forward again and backward. The last piece has just
  // been computed.
  int again[N + 1] = {}, back[N + 1] = {}, now = G;
  bool is_kept[N + 1] = {};
  for (int c = p.piece_count - 1; c >= 0; --c) {
    bool trains = false;
    for (int g = p.first_of_piece[c]; g < p.first_of_piece[c + 1]; ++g) trains = trains || p.groups[g].trains;
    for (int g = p.first_of_piece[c]; g < p.first_of_piece[c + 1]; ++g) {
      p.groups[g].runs_again = trains && c + 1 < p.piece_count;
      is_kept[g] = !p.groups[g].runs_again;
      again[g] = now++;
    }
    for (int g = p.first_of_piece[c + 1] - 1; g >= p.first_of_piece[c]; --g) back[g] = now++;
  }
  for (int k = 0; k < p.output_count; ++k) is_kept[p.output_group[k]] = true;
  for (int g = 0; g < G; ++g)
    for (int k = 0; k < p.groups[g].arity; ++k)
      if (const int from = p.groups[g].input[k]; from >= 0 && p.groups[from].piece != p.groups[g].piece) is_kept[from] = true;
  for (int g = 0; g < G; ++g)
    if (is_kept[g] && (p.groups[g].kernel.saved == 0 || p.groups[g].number_of_output >= 0)) p.groups[g].runs_again = false;

  // The last step of the forward pass that reads each output, and the last step of all.
  int first_death[N + 1] = {}, death[N + 1] = {};
  const auto at_first = [](int g) { return g; };
  const auto at_last = [&](int g) { return p.groups[g].runs_again ? again[g] : g; };
  const auto all = [](int, int) { return true; };
  find_last_reads(p, at_first, at_first, all, first_death);
  find_last_reads(p, at_last, [&](int g) { return back[g]; }, all, death);

  workspace_buffer buffers[5 * N + 1];
  int count = 0;
  p.unshared_workspace = 0;
  const auto born = [&](int elements, int birth, int died, workspace_location& at) {
    const int size = aligned_elements(elements);
    p.unshared_workspace += size;
    at = {-1, true};
    buffers[count++] = {size, elements, birth, died, &at};
  };
  for (int g = 0; g < G; ++g) {
    kernel_group& it = p.groups[g];
    const bool kept = is_kept[g] || !it.runs_again;
    born(it.stored_size(), g, kept ? death[g] : first_death[g], kept ? it.output : it.first_output);
    if (it.kernel.saved == 0) continue;
    if (it.runs_again)
      born(it.kernel.saved, g, g, it.first_saved);
    else
      born(it.kernel.saved, g, it.trains ? back[g] : g, it.saved);
  }
  for (int c = p.piece_count - 1; c >= 0; --c) {
    for (int g = p.first_of_piece[c]; g < p.first_of_piece[c + 1]; ++g) {
      kernel_group& it = p.groups[g];
      if (!it.runs_again) continue;
      if (!is_kept[g]) born(it.stored_size(), again[g], death[g], it.output);
      if (it.kernel.saved > 0) born(it.kernel.saved, again[g], it.trains ? back[g] : again[g], it.saved);
    }
    for (int g = p.first_of_piece[c + 1] - 1; g >= p.first_of_piece[c]; --g)
      for (int k = 0; k < p.groups[g].arity; ++k)
        if (p.groups[g].wants_dx[k] && !p.groups[g].adds_dx[k]) {
          kernel_group& from = p.groups[p.groups[g].input[k]];
          born(from.stored_size(), back[g], back[p.groups[g].input[k]], from.gradient);
        }
  }
  p.passing = place_in_workspace<5 * N + 1>(buffers, count, [](int step) { return step; });
  for (int g = 0; g < G; ++g) {
    kernel_group& it = p.groups[g];
    if (is_kept[g] || !it.runs_again) it.first_output = it.output;
    if (!it.runs_again) it.first_saved = it.saved;
  }
}

}  // namespace strata::detail
