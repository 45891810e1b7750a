// Placing buffers with known lifetimes into one workspace.
#pragma once

namespace strata {

/// A piece of workspace, alive over the steps [birth, death].
struct buffer {
  int size = 0, birth = 0, death = 0;
  int* offset = nullptr;
};

/// Linear scan with a sorted list of holes, as a register allocator does. Buffers come in order of birth; each is looked at
/// twice, because clang stops a constant expression after 2^20 steps. Returns the size of the workspace.
template <int Max>
constexpr int place(const buffer* buffers, int count) {
  struct hole {
    int offset, size;
  };
  hole holes[Max + 1] = {};
  int n = 0, top = 0, now = 0;
  const auto remove = [&](int at) {
    for (int i = at; i + 1 < n; ++i) holes[i] = holes[i + 1];
    --n;
  };
  const auto merge_with_next = [&](int at) {
    if (at < 0 || at + 1 >= n || holes[at].offset + holes[at].size != holes[at + 1].offset) return;
    holes[at].size += holes[at + 1].size;
    remove(at + 1);
  };
  int dying[Max + 1] = {}, next[Max + 1] = {};  // per step: a list of buffers, numbered from 1
  for (int b = 0; b < count; ++b) {
    const buffer& wanted = buffers[b];
    while (now < wanted.birth) {
      const int old = dying[now];
      if (old == 0) {
        ++now;
        continue;
      }
      dying[now] = next[old - 1];
      const buffer& freed = buffers[old - 1];
      int at = n++;
      for (; at > 0 && holes[at - 1].offset > *freed.offset; --at) holes[at] = holes[at - 1];
      holes[at] = {*freed.offset, freed.size};
      merge_with_next(at);
      merge_with_next(at - 1);
    }
    int best = -1;
    for (int i = 0; i < n; ++i)
      if (holes[i].size >= wanted.size && (best < 0 || holes[i].size < holes[best].size)) best = i;
    if (best >= 0) {
      *wanted.offset = holes[best].offset;
      holes[best].offset += wanted.size;
      if ((holes[best].size -= wanted.size) == 0) remove(best);
    } else {
      *wanted.offset = top;
      top += wanted.size;
    }
    next[b] = dying[wanted.death];
    dying[wanted.death] = b + 1;
  }
  return top;
}

}  // namespace strata
