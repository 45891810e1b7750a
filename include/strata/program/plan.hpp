// The plan of a program on a backend, as one constexpr value: fusion groups, segments, which group reads and writes what, and the
// workspace.
#pragma once
#include <algorithm>
#include <strata/kernel/kernel.hpp>
#include <strata/network/layout.hpp>
#include <strata/program/last_reads.hpp>
#include <strata/program/place_buffers.hpp>
#include <utility>

namespace strata {

namespace core {
/// The longest chain of operations that one kernel may take.
inline constexpr int max_fusion = 4;

/// The use of a plan. In inference nothing is kept for backward. A whole-batch operation then is an ordinary one, because its
/// statistics are state, and an operation that is active only in training is a view.
enum class purpose { training, inference };

/// How much memory a kernel needs, in elements: see kernel_traits.
struct kernel_memory {
  int saved = 0, scratch = 0, scratch_per_sample = 0;
};

/// The traits of a kernel, with its type erased.
struct kernel_info : kernel_traits {
  bool exists = false;
  kernel_memory with_narrow[2][2] = {};  // by whether the input is narrow, and the output

  constexpr void use_narrow(bool has_narrow_input, bool has_narrow_output) {
    const kernel_memory& form = with_narrow[has_narrow_input][has_narrow_output];
    saved = form.saved, scratch = form.scratch, scratch_per_sample = form.scratch_per_sample;
  }
};

/// For each node: the longest chain that starts there and has a kernel.
struct kernel_match {
  int length = 1;
  kernel_info kernel;
};

/// One kernel call, for the nodes [first, first + count). Offsets count elements.
struct kernel_group {
  int first = 0, count = 0;
  int arity = 0, input[max_inputs] = {};  // the groups that it reads; -1 - k: input k of the batch
  int number_of_output = -1;              // the output whose loss it computes; -1: none
  int size = 0;                           // of one output
  int parameter_count = 0;
  long parameters[max_group_parameters] = {};  // offsets in the arena
  int segment = 0;                             // where the plan is cut
  bool trainable[max_group_parameters] = {};
  workspace_location output, gradient, saved;    // in the workspace
  workspace_location first_output, first_saved;  // in the forward pass, where the plan is in pieces
  int piece = 0;
  bool runs_again = false;  // before the backward of its piece
  int statistics = 0;       // two ranges of kernel.statistics doubles: forward, backward
  long derived = 0;
  bool adds_dw = false;            // a later group has stored the gradients of its parameters before: add
  bool trains = false;             // it or a group before it has parameters: it takes part in backward
  bool wants_dx[max_inputs] = {};  // the group of that input trains, or the gradient of that input of the batch is computed
  bool adds_dx[max_inputs] = {};   // another group has stored the gradient of that input before: add
  /// Whether its only input, or its output, is narrow: see narrow_end.
  bool has_narrow_input = false, has_narrow_output = false;
  kernel_info kernel;

  /// Elements of the output in memory, and of the gradient of it.
  constexpr int stored_size() const { return has_narrow_output ? size / 2 : size; }
};
}  // namespace core

namespace detail {
template <int Nodes>
struct plan {
  int group_count = 0, segment_count = 1;
  int workspace = 0, passing = 0;  // elements per sample of a leaf, and per sample of a micro-batch
  int unshared_workspace = 0;      // both, without reuse
  int statistics = 0;              // doubles per leaf
  int scratch = 0, scratch_per_sample = 0;
  long derived = 0;
  kernel_group groups[Nodes];
  int group_of[Nodes] = {};  // -1 - k: input k of the batch, or a view of it
  int input_count = 0, output_count = 0;
  int output_group[max_ends] = {};  // the groups with the losses, whose outputs are the predictions
  int first_of_segment[Nodes + 1] = {};
  bool is_cut = false;                    // into segments that need no statistics of the whole batch, see cut_into_segments
  long begin_of_segment[Nodes + 1] = {};  // then: where its trained parameters begin in the arena

  int piece_count = 1;  // see recomputation.hpp
  int first_of_piece[Nodes + 1] = {};

  /// The most elements of trained parameters of one segment: where the plan is cut, those of all lie in the same memory, because
  /// each gradient is read before the next one is computed.
  constexpr long largest_segment() const {
    long most = 0;
    for (int k = 0; k < segment_count; ++k) most = std::max(most, begin_of_segment[k + 1] - begin_of_segment[k]);
    return most;
  }

  /// Whether groups share parameters: their gradients are known when the first of them has added its own.
  constexpr bool shares_parameters() const {
    for (int g = 0; g < group_count; ++g)
      if (groups[g].adds_dw) return true;
    return false;
  }

  /// With several segments, saved values must live for all samples of a leaf, not only for a micro-batch.
  constexpr bool needs_whole_leaf() const { return segment_count > 1; }
};
}  // namespace detail

namespace core {
constexpr bool is_view(const operation_info& operation, purpose why) {
  return operation.traits.is_view || (why == purpose::inference && operation.traits.only_trains);
}
/// True if no kernel may fuse it with the operation before it: an operation that `folds` is fused in inference only.
constexpr bool begins_chain(const operation_info& operation, purpose why) {
  return operation.traits.folds && why == purpose::training;
}
constexpr bool opens_segment(const operation_info& operation, purpose why) {
  return operation.traits.whole_batch && why == purpose::training;
}

/// The length of the longest chain of operations from a node on, in which each operation is the only reader of the one before.
template <int N>
constexpr int chain_length(const detail::tape<N>& t, int first, purpose why = purpose::training) {
  if (t.nodes[first].is_input() || is_view(*t.nodes[first].operation, why)) return 0;
  int n = 1;
  for (int i = first; n < max_fusion && i + 1 < N; ++i, ++n) {
    const tape_node& next = t.nodes[i + 1];
    if (t.nodes[i].consumers != 1 || next.arity != 1 || next.input[0] != i || is_view(*next.operation, why) ||
        begins_chain(*next.operation, why) || opens_segment(*next.operation, why))
      break;
  }
  return n;
}

/// The operation that one kernel may compute together with a loss: the one before it, or before the views that it reads. It
/// commutes with these views, so that they can be views of the logits: flatten(sigmoid(z)) is sigmoid(flatten(z)). 0: there is
/// none.
template <int N>
constexpr int operation_before_loss(const detail::tape<N>& t, int loss) {
  int i = loss;
  do {
    if (t.nodes[i].input[0] != i - 1 || t.nodes[i - 1].consumers != 1) return 0;
    --i;
  } while (i > 0 && t.nodes[i].operation->traits.is_view);
  const operation_info& operation = *t.nodes[i].operation;
  const bool commutes =
      operation.traits.elementwise || (operation.traits.over_last_axis && t.nodes[i].out.last() == t.in(loss).last());
  return i + 1 == loss || commutes ? i : 0;
}
}  // namespace core

namespace detail {
/// The losses of a tape, and for each the operation that the backend computes together with it; 0: none.
struct joint_operations {
  tape_ends ends;
  int with[max_ends] = {};

  /// The end of the nodes that one kernel computes from this operation to a loss; 0: it is not joint.
  constexpr int end_of(int operation) const {
    for (int k = 0; operation > 0 && k < ends.output_count; ++k)
      if (with[k] == operation) return ends.losses[k] + 1;
    return 0;
  }
};

/// True if one kernel may compute the nodes [first, first + count). If the backend has a joint kernel for an operation and a
/// loss, no kernel may take that operation without the loss: only the joint kernel computes both from the logits. For example
/// sigmoid(40) is 1 in float, so a crossentropy of the probability has to clamp it.
constexpr bool may_fuse(int first, int count, const joint_operations& joint) {
  const int end = first + count;
  for (int k = 0; k < joint.ends.output_count; ++k)
    if (const int with = joint.with[k]; with > 0 && first <= with && with < end && end != joint.ends.losses[k] + 1) return false;
  return true;
}

/// A node that needs the whole batch opens a segment: the nodes before it must be computed for every sample.
template <int N>
constexpr void form_groups(const tape<N>& t, const kernel_match* matches, purpose why, plan<N>& p) {
  for (int i = 0; i < N; i += matches[i].length) {
    const tape_node& head = t.nodes[i];
    if (head.is_input()) {
      p.group_of[i] = -1 - p.input_count++;
      continue;
    }
    if (is_view(*head.operation, why)) {
      p.group_of[i] = p.group_of[head.input[0]];
      continue;
    }
    if (opens_segment(*head.operation, why)) p.first_of_segment[p.segment_count++] = p.group_count;
    kernel_group& g = p.groups[p.group_count];
    g.first = i;
    g.count = matches[i].length;
    g.kernel = matches[i].kernel;
    g.size = g.kernel.part_of_output > 0 ? g.kernel.part_of_output : t.nodes[i + g.count - 1].out.size();
    g.arity = head.arity;
    for (int k = 0; k < g.arity; ++k) g.input[k] = p.group_of[head.input[k]];
    g.statistics = p.statistics;
    p.statistics += 2 * g.kernel.statistics;
    g.derived = p.derived;
    p.derived += aligned_elements(g.kernel.derived);
    for (int k = 0; k < g.count; ++k) p.group_of[i + k] = p.group_count;
    if (t.nodes[i + g.count - 1].operation->is_loss) {
      g.number_of_output = p.output_count;
      p.output_group[p.output_count++] = p.group_count;
    }
    ++p.group_count;
  }
  p.first_of_segment[p.segment_count] = p.group_count;
}

/// inputs: a bit for each input of the batch whose gradient is computed instead of those of parameters; 0: none.
template <int N, int Count>
constexpr void find_parameters(const tape<N>& t, const parameter_layout<Count>& l, unsigned inputs, plan<N>& p) {
  const auto give = [&](const parameter_slot& slot, int node) {
    kernel_group& g = p.groups[p.group_of[node]];
    const bool trained = slot.what.trainable && inputs == 0;
    g.trainable[g.parameter_count] = trained;
    g.parameters[g.parameter_count++] = slot.offset;
    g.trains = g.trains || trained;
  };
  for (int s = 0; s < Count; ++s) give(l.slots[s], l.slots[s].node);
  for (int i = 0; i < N; ++i) {
    const int owner = t.nodes[i].owner;
    if (owner < 0) continue;
    for (int s = 0; s < Count; ++s)
      if (l.slots[s].node == owner) {
        give(l.slots[s], i);
        p.groups[p.group_of[owner]].adds_dw = true;
        for (int k = owner + 1; k < i; ++k)
          if (t.nodes[k].owner == owner) p.groups[p.group_of[k]].adds_dw = true;
      }
  }
  // A group trains if any group before it has trained parameters, or reads an input whose gradient is computed.
  for (int i = 0; i < p.group_count; ++i) {
    kernel_group& g = p.groups[i];
    for (int k = 0; k < g.arity; ++k) {
      const int from = g.input[k];
      g.wants_dx[k] = from >= 0 ? p.groups[from].trains : (inputs >> (-1 - from) & 1u) != 0;
      g.trains = g.trains || g.wants_dx[k];
    }
  }
}

/// The output of a group with a single reader is narrow if both kernels allow it (narrow_end).
template <int N>
constexpr void find_narrow_outputs(plan<N>& p) {
  int readers[N] = {};
  for (int g = 0; g < p.group_count; ++g)
    for (int k = 0; k < p.groups[g].arity; ++k)
      if (const int from = p.groups[g].input[k]; from >= 0) ++readers[from];
  for (int g = 0; g < p.group_count; ++g) {
    kernel_group& to = p.groups[g];
    if (to.arity != 1 || to.input[0] < 0 || readers[to.input[0]] > 1) continue;
    kernel_group& from = p.groups[to.input[0]];
    const narrow_end &stored = from.kernel.output_end, &read = to.kernel.input_end;
    if (!stored.is_possible || !read.is_possible || from.size % 2 != 0) continue;
    if (!(stored.rounds_values || read.rounds_values) || !(stored.rounds_gradients || read.rounds_gradients)) continue;
    to.has_narrow_input = from.has_narrow_output = true;
  }
  for (int g = 0; g < p.group_count; ++g)
    if (kernel_group& it = p.groups[g]; it.has_narrow_input || it.has_narrow_output)
      it.kernel.use_narrow(it.has_narrow_input, it.has_narrow_output);
}

/// Sets the sizes of the scratch memory that all kernels share.
template <int N>
constexpr void find_scratch(plan<N>& p) {
  for (int g = 0; g < p.group_count; ++g) {
    p.scratch = std::max(p.scratch, p.groups[g].kernel.scratch);
    p.scratch_per_sample = std::max(p.scratch_per_sample, p.groups[g].kernel.scratch_per_sample);
  }
}

/// Cuts a plan of one segment in front of groups with trained parameters, as soon as a segment has `least` elements of them.
template <int N>
constexpr void cut_into_segments(long trained, long least, plan<N>& p) {
  if (p.segment_count > 1) return;
  bool has_parameters = false;
  for (int g = 0; g < p.group_count; ++g) {
    kernel_group& it = p.groups[g];
    long begin = trained;
    for (int k = 0; k < it.parameter_count; ++k)
      if (it.trainable[k]) begin = std::min(begin, it.parameters[k]);
    if (begin < trained && has_parameters && begin - p.begin_of_segment[p.segment_count - 1] >= least) {
      p.begin_of_segment[p.segment_count] = begin;
      p.first_of_segment[p.segment_count++] = g;
    }
    has_parameters = has_parameters || begin < trained;
    it.segment = p.segment_count - 1;
  }
  p.first_of_segment[p.segment_count] = p.group_count;
  p.begin_of_segment[p.segment_count] = trained;
  p.is_cut = p.segment_count > 1;
}

/// The pass in which each group computes: forward 0 ... G-1, then backward G ... 2G-1. Every pass goes through all micro-batches:
/// forward through one segment after the other; forward and backward through the last one; backward through the others. In
/// backward, the group that opens a segment belongs to the pass of the segment before it, unless the plan is cut.
template <int N>
struct passes {
  int of[2 * N + 1] = {};
  constexpr explicit passes(const plan<N>& p) {
    const int G = p.group_count, last = p.segment_count - 1;
    for (int k = 0; k <= last; ++k)
      for (int g = p.first_of_segment[k]; g < p.first_of_segment[k + 1]; ++g)
        of[g] = k, of[2 * G - 1 - g] = 2 * last - k + (!p.is_cut && k > 0 && g == p.first_of_segment[k]);
  }
};

/// The lifetimes of outputs, saved values and gradients over one step, then their offsets.
template <int N>
constexpr void lay_out_workspace(plan<N>& p, purpose why) {
  const bool trains = why == purpose::training;
  const int G = p.group_count;
  const auto forward = [](int g) { return g; };
  const auto back = [&](int g) { return trains ? 2 * G - 1 - g : g; };
  int last_read[N + 1] = {};
  find_last_reads(p, forward, back, [](int, int) { return true; }, last_read);
  bool has_gradient[N + 1] = {}, has_input_gradient[max_ends] = {};
  for (int g = G - 1; g >= 0; --g)
    for (int k = 0; k < p.groups[g].arity; ++k)
      if (const int from = p.groups[g].input[k]; p.groups[g].wants_dx[k])
        p.groups[g].adds_dx[k] = std::exchange(from >= 0 ? has_gradient[from] : has_input_gradient[-1 - from], true);
  const passes<N> pass(p);
  workspace_buffer lasting[3 * N + 1], passing[3 * N + 1];
  int lasting_count = 0, passing_count = 0;
  const auto born = [&](int elements, int birth, int death, workspace_location& at) {
    const int size = aligned_elements(elements);
    p.unshared_workspace += size;
    at.passes = !trains || pass.of[birth] == pass.of[death];
    (at.passes ? passing[passing_count++] : lasting[lasting_count++]) = {size, elements, birth, death, &at};
  };
  for (int g = 0; g < G; ++g) {
    kernel_group& it = p.groups[g];
    born(it.stored_size(), g, last_read[g], it.output);
    if (it.kernel.saved > 0) born(it.kernel.saved, g, trains && it.trains ? back(g) : g, it.saved);
  }
  for (int g = G - 1; trains && g >= 0; --g)
    for (int k = 0; k < p.groups[g].arity; ++k)
      if (p.groups[g].input[k] >= 0 && p.groups[g].wants_dx[k] && !p.groups[g].adds_dx[k]) {
        kernel_group& from = p.groups[p.groups[g].input[k]];
        born(from.stored_size(), back(g), back(p.groups[g].input[k]), from.gradient);
      }
  p.workspace = place_in_workspace<3 * N + 1>(lasting, lasting_count, [&](int step) { return pass.of[step]; });
  p.passing = place_in_workspace<3 * N + 1>(passing, passing_count, [](int step) { return step; });
}
}  // namespace detail

namespace core {
template <int N, int Count>
constexpr detail::plan<N> make_plan(const detail::tape<N>& t, const parameter_layout<Count>& l, const kernel_match* matches,
                                    purpose why, bool may_be_narrow, long least_elements_of_segment = 0, unsigned inputs = 0) {
  detail::plan<N> p;
  if (!t.well_shaped()) return p;
  detail::form_groups(t, matches, why, p);
  detail::find_parameters(t, l, inputs, p);
  if (may_be_narrow) detail::find_narrow_outputs(p);
  detail::find_scratch(p);
  if (least_elements_of_segment > 0) detail::cut_into_segments(l.trainable, least_elements_of_segment, p);
  detail::lay_out_workspace(p, why);
  return p;
}
}  // namespace core

}  // namespace strata
