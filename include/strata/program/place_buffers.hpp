// Places buffers with known lifetimes in one workspace.
#pragma once
#include <strata/base/namespaces.hpp>

namespace strata::core {

/// The place of a buffer, in elements per sample. A buffer that passes lives within one pass over a micro-batch: the next
/// micro-batch uses the same memory, which is still in the cache.
struct workspace_location {
  int offset = -1;
  bool passes = false;
};

/// A buffer that is alive over the steps [birth, death]: `elements` elements per sample, in a place for `size`.
struct workspace_buffer {
  int size = 0, elements = 0, birth = 0, death = 0;
  workspace_location* at = nullptr;
};

/// A linear scan with a sorted list of holes, as in register allocation. Buffers come in order of birth. Few are looked at more
/// than twice, because clang stops a constant expression after 2^20 steps. Returns the size of the workspace.
///
/// pass_of(step): within a pass the steps repeat for other samples of the same buffers. So until the pass has ended, the place of
/// a dead buffer can only be reused by one whose samples are at the same positions.
template <int Max>
constexpr int place_in_workspace(const workspace_buffer* buffers, int count, auto&& pass_of) {
  struct hole {
    int offset, size;
  };
  hole holes[Max + 1] = {};
  int n = 0, top = 0, now = 0;
  const workspace_buffer* resting[Max + 1] = {};
  int resting_count = 0;
  const auto remove = [&](int at) {
    for (int i = at; i + 1 < n; ++i) holes[i] = holes[i + 1];
    --n;
  };
  const auto merge_with_next = [&](int at) {
    if (at < 0 || at + 1 >= n || holes[at].offset + holes[at].size != holes[at + 1].offset) return;
    holes[at].size += holes[at + 1].size;
    remove(at + 1);
  };
  const auto release = [&](const workspace_buffer& freed) {
    int at = n++;
    for (; at > 0 && holes[at - 1].offset > freed.at->offset; --at) holes[at] = holes[at - 1];
    holes[at] = {freed.at->offset, freed.size};
    merge_with_next(at);
    merge_with_next(at - 1);
  };
  int dying[Max + 1] = {}, next[Max + 1] = {};  // per step: a list of buffers, numbered from 1
  for (int b = 0; b < count; ++b) {
    const workspace_buffer& wanted = buffers[b];
    while (now < wanted.birth) {
      const int old = dying[now];
      if (old == 0) {
        ++now;
        continue;
      }
      dying[now] = next[old - 1];
      resting[resting_count++] = &buffers[old - 1];
    }
    int same = -1, left = 0;
    for (int i = 0; i < resting_count; ++i) {
      const workspace_buffer& freed = *resting[i];
      if (pass_of(freed.death) < pass_of(wanted.birth)) {
        release(freed);
      } else {
        if (freed.elements == wanted.elements) same = left;
        resting[left++] = &freed;
      }
    }
    resting_count = left;
    int best = -1;
    for (int i = 0; i < n; ++i)
      if (holes[i].size >= wanted.size && (best < 0 || holes[i].size < holes[best].size)) best = i;
    if (same >= 0) {
      wanted.at->offset = resting[same]->at->offset;
      resting[same] = resting[--resting_count];
    } else if (best >= 0) {
      wanted.at->offset = holes[best].offset;
      holes[best].offset += wanted.size;
      if ((holes[best].size -= wanted.size) == 0) remove(best);
    } else {
      wanted.at->offset = top;
      top += wanted.size;
    }
    next[b] = dying[wanted.death];
    dying[wanted.death] = b + 1;
  }
  return top;
}

}  // namespace strata::core
