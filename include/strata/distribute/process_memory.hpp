// How many bytes a process needs for a training, before it starts: a constant of the program, the strategy and the sizes.
#pragma once
#include <algorithm>
#include <strata/base/reason.hpp>
#include <strata/base/text.hpp>
#include <strata/base/text_table.hpp>
#include <strata/exchange/zero/zero.hpp>
#include <strata/network/leaves.hpp>
#include <strata/network/parameter_ranges.hpp>
#include <strata/network/rank_messages.hpp>
#include <strata/network/summary.hpp>
#include <strata/program/engine_for.hpp>
#include <strata/program/groups_of_strategy.hpp>
#include <strata/program/leaf_policy.hpp>
#include <strata/program/micro_batch.hpp>
#include <strata/program/pass.hpp>
#include <strata/program/stages/stage_plan.hpp>
#include <string>
#include <vector>

namespace strata {

/// What the memory of a process depends on besides the program and zero.
struct training_sizes {
  int batch = 0;  // samples, over all processes
  int processes = 1;
  int threads = 1;             // of each process
  int leaves = 0;              // compute_options::leaves
  int micro_batch = 0;         // compute_options::micro_batch
  int slots = 2;               // optimizer.slots(): 2 for adam
  bool shares_memory = false;  // processes of one machine read each other's messages in place, which counts for both
};

/// In bytes. Code, libraries, threads and what the allocator keeps come on top, 15 to 35 MB together, and the data set.
struct process_memory {
  long parameters = 0;        // with their layouts for kernels
  long slots = 0;             // of the optimizer
  long gradients = 0;         // of the leaves of this process, and its part of their sum
  long activations = 0;       // and their gradients, and scratch of kernels
  long messages = 0;          // gradients and parameters on the way
  long whole_parameters = 0;  // zero<3>, and places: before the first step, and between two epochs
  long whole_slots = 0;       // of the chief, if processes have slots of some parameters only: while it saves a snapshot

  /// During a step.
  constexpr long total() const { return parameters + slots + gradients + activations + messages; }
  /// At most.
  constexpr long peak() const { return total() + whole_parameters; }
  /// At most, of the chief of a training with backup_and_restore.
  constexpr long peak_with_snapshots() const { return peak() + whole_slots; }
};

namespace detail {

template <class Program, class Backend, purpose Why>
constexpr long bytes_of_activations(int leaf, int micro_batch, int workspaces) {
  constexpr const auto& p = plan_of<Program, Backend, Why>;
  const long kept = p.needs_whole_leaf() ? leaf : 0, passing = p.needs_whole_leaf() ? std::min(leaf, micro_batch) : micro_batch;
  return workspaces * (kept * p.workspace + passing * (p.passing + p.scratch_per_sample) + p.scratch) *
         long(sizeof(typename Program::value_type));
}

/// Sums over subtrees of leaves that a process adds up by itself, and those that the others send it: of a process with the most.
struct subtree_counts {
  long own = 0, others = 0;
  constexpr subtree_counts(int leaves, int processes) {
    for (int r = 0; r < processes; ++r) {
      const long count = subtrees(share_of(leaves, r, processes)).count();
      own = std::max(own, count);
      others += count;
    }
    others -= own;
  }
};

/// `38.69 MiB`.
inline std::string in_binary_units(long bytes) {
  std::string text = readable_memory(double(bytes));
  if (bytes >= 1024) text.insert(text.size() - 1, "i");
  return text;
}

class memory_table {
  std::vector<std::vector<std::string>> rows_ = {
      {"", "parameters", "slots", "gradients", "activations", "messages", "in a step", "at most", "chief, saving"}};

 public:
  void add(const std::string& name, const process_memory& m) {
    std::vector<std::string>& row = rows_.emplace_back();
    row.push_back(name);
    for (const long bytes :
         {m.parameters, m.slots, m.gradients, m.activations, m.messages, m.total(), m.peak(), m.peak_with_snapshots()})
      row.push_back(in_binary_units(bytes));
  }
  std::string text() const { return aligned(rows_); }
};

}  // namespace detail

namespace core {
/// A strategy that computes each place of a split network in a process of its own: multi_worker_pipeline, pipeline_among,
/// placed_among, and meshes of pipelines.
template <class Strategy>
concept divides_layers = requires {
  typename Strategy::backend;
  requires divides_parameters<typename Strategy::backend>;
};
}  // namespace core
namespace detail {
template <class Strategy>
concept has_ranks = requires {
  typename Strategy::communicator_type;
  Strategy::division::ranks;
};
template <has_ranks Strategy>
using backend_of_rank_in = typename Strategy::division::template backend_of_rank<typename Strategy::communicator_type>;
}  // namespace detail
namespace core {
/// A strategy whose processes are ranks that divide layers: multi_worker_tensor_parallel, tensor_parallel_among, and meshes of
/// them.
template <class Strategy>
concept divides_into_ranks = detail::has_ranks<Strategy> && !divides_parameters<detail::backend_of_rank_in<Strategy>>;
/// A mesh of three parts, whose ranks have a process for each place.
template <class Strategy>
concept divides_into_stages_of_ranks = detail::has_ranks<Strategy> && divides_parameters<detail::backend_of_rank_in<Strategy>>;
}  // namespace core

namespace reasons {
inline constexpr reason process_memory_is_that_of_a_program_such_as_the_program_type_of_a_trainer{
    "process_memory_of<Program, ...> takes a program, such as decltype(model)::program_type or program<network, loss, optimizer, "
    "type_list<>>"};
inline constexpr reason the_memory_of_a_place_is_asked_for_with_its_number_process_memory_of_sizes_and_place{
    "a process of a divided network has a place: process_memory_of<Program, Strategy>(sizes, place)"};
inline constexpr reason the_processes_of_zero_need_equally_much_process_memory_of_sizes_only{
    "the processes of zero need the same memory: process_memory_of<Program, zero<2>>(sizes)"};
inline constexpr reason the_ranks_that_divide_layers_need_equally_much_process_memory_of_sizes_only{
    "the ranks that divide layers need the same memory: process_memory_of<Program, Strategy>(sizes)"};
inline constexpr reason process_memory_is_known_of_zero_and_of_strategies_over_processes_such_as_multi_worker_pipeline{
    "the memory of a process can be computed with zero<0> to zero<3>, and for strategies over processes that divide a network, "
    "such as multi_worker_pipeline, multi_worker_tensor_parallel, multi_worker_mesh and placed_among"};
}  // namespace reasons

namespace detail {
template <class P>
concept is_program = requires { typename P::optimizer; };
/// zero<Stage>, or a type derived from it.
template <class S>
concept stage_of_zero = requires { S::stage; };
}  // namespace detail

namespace detail {
/// Adds what processes send each other that divide a batch and have all of these trained parameters. shared: see shares_memory.
constexpr void add_messages_of_groups(process_memory& to, int leaves, int groups, long trainable, long bytes, bool shared) {
  if (groups == 1) return;
  const subtree_counts rows(leaves, groups);
  const long pieces = (trainable + norm_piece - 1) / norm_piece;
  const long slice = std::min(trainable, (pieces + groups - 1) / groups * norm_piece), received = rows.others * slice;
  to.messages += (rows.own * trainable + received) * bytes;
  to.gradients += trainable * bytes;
  if (shared) to.messages += (received + trainable - slice) * bytes;
}

/// Adds what `ranks` ranks that divide layers send each other for that many samples at a time: what one sends, what it receives
/// and, with shares_memory, what it reads of others. sending: memories to send from.
template <class Items>
constexpr void add_messages_of_ranks(process_memory& to, long samples, long ranks, long bytes, bool shared, int sending) {
  const long room =
      std::max({elements_of_copies, elements_of_norms(ranks), samples * sent_of_a_sample<Items> + 16 * ranks}) + 16 * ranks;
  to.messages += (room * (sending + ranks + (shared ? ranks - 1 : 0)) + elements_of_norms(ranks)) * bytes;
}

/// Of the pipelines of `groups` groups, each with one thread for each place.
struct size_of_turns {
  long samples = 0;        // of a micro-batch
  long micro_batches = 0;  // of a step
};
template <class Program, class Backend>
constexpr size_of_turns largest_turns(const leaf_policy& policy, int batch, int groups) {
  size_of_turns most;
  for (int count = 1; count <= batch; ++count) {
    const batch_division d = policy(count);
    for (const int own : {d.leaves / groups, (d.leaves + groups - 1) / groups}) {
      const int samples = samples_of_turn<Program, Backend>(d.capacity, own, 1, 0);
      if (own * groups >= d.leaves) most.samples = std::max(most.samples, long(samples));
      most.micro_batches = std::max(most.micro_batches, long(own) * ((d.capacity + samples - 1) / samples));
    }
  }
  return most;
}

constexpr void check_sizes(const training_sizes& how) {
  if (how.batch < 1 || how.processes < 1 || how.threads < 1 || how.slots < 0 || how.micro_batch < 0)
    throw_error("process_memory_of: batch, processes and threads are at least 1, slots and micro_batch at least 0");
}
}  // namespace detail

/// The most that a process of the training needs: `process_memory_of<program_type, zero<2>>({.batch = 64, .processes = 4})`. The
/// backend is that of the CPU. Without `.processes` there is one process, whose slices are everything.
template <class Program, class Sharding = zero<0>, class Backend = core::default_backend>
  requires detail::is_program<Program> && detail::stage_of_zero<Sharding>
constexpr process_memory process_memory_of(const training_sizes& how) {
  detail::check_sizes(how);
  using T = typename Program::value_type;
  using backend = typename Sharding::template backend<Backend>;
  constexpr const auto& plan = core::plan_of<Program, backend>;
  constexpr const auto& inference = core::plan_of<Program, backend, core::purpose::inference>;
  constexpr const auto& layout = core::layout_of_program<Program>;
  constexpr long bytes = long(sizeof(T));
  constexpr int stage = Sharding::stage;
  constexpr bool two_plans = core::has_two_plans<Program, backend>, in_segments = stage >= 2 && plan.is_cut;

  const core::batch_division most = core::leaf_policy_of<Program>(how.leaves, how.processes).most(how.batch);
  const long own_leaves = (most.leaves + how.processes - 1) / how.processes;
  const long window = in_segments ? plan.largest_segment() : 0, gradient = in_segments ? window : layout.trainable;
  const auto slice_of_all = [&](long elements) {  // the largest one: slices end with pieces
    const long pieces = (elements + core::norm_piece - 1) / core::norm_piece;
    return std::min(elements, (pieces + how.processes - 1) / how.processes * core::norm_piece);
  };
  long own = 0;  // elements of the slices of a process
  for (int k = 0; k < plan.segment_count; ++k)
    if (in_segments) own += slice_of_all(plan.begin_of_segment[k + 1] - plan.begin_of_segment[k]);
  if (!in_segments) own = slice_of_all(layout.trainable);
  const long state = layout.size - layout.trainable;

  process_memory out;
  const int micro_batch = std::min(
      most.capacity, how.micro_batch > 0 ? how.micro_batch : core::samples_in_cache<Program, backend, core::purpose::training>());
  out.parameters = (plan.derived + (two_plans ? inference.derived : 0)) * bytes;
  if (stage == 3 && in_segments) {
    out.parameters += (own + 2 * window + state) * bytes;
    out.whole_parameters = layout.size * bytes;
  } else {
    out.parameters += layout.size * bytes;
  }
  out.slots = how.slots * (stage >= 1 ? own : layout.trainable) * bytes;
  if (stage >= 1) out.whole_slots = how.slots * layout.trainable * bytes;
  out.gradients = own_leaves * gradient * bytes;
  out.activations = detail::bytes_of_activations<Program, backend, core::purpose::training>(
      most.capacity, micro_batch, plan.needs_whole_leaf() ? int(own_leaves) : how.threads);
  if (how.processes > 1) {
    const detail::subtree_counts rows(most.leaves, how.processes);
    const long row = in_segments ? 2 * slice_of_all(window) : own;
    const long received = rows.others * row;
    out.messages = (rows.own * (in_segments ? 2 * window : layout.trainable) + received) * bytes;
    out.gradients += (stage >= 1 ? own : layout.trainable) * bytes;
    if (how.shares_memory) out.messages += received * bytes;  // of others, where it reads them
    if (stage == 0 && how.shares_memory) out.messages += (layout.trainable - own) * bytes;
    if (stage >= 1) out.messages += std::min(1L << 20, how.processes * (in_segments ? slice_of_all(window) : own)) * bytes;
  }
  return out;
}

/// What a process needs that computes place `place`: `process_memory_of<program_type, multi_worker_pipeline<
/// balanced<4>>>({.batch = 64}, 0)`. There are as many processes as places of all groups, each of which computes with one thread.
/// process_memory::messages has activations and their gradients on the way.
template <class Program, core::divides_layers Strategy>
  requires detail::is_program<Program>
constexpr process_memory process_memory_of(const training_sizes& how, int place) {
  using backend = typename Strategy::backend;
  using table_type = std::remove_cvref_t<decltype(backend::split::table)>;
  detail::check_sizes(how);
  if (place < 0 || place >= table_type::places) throw_error("process_memory_of: there is no such place");
  constexpr const auto& table = backend::split::table;
  constexpr const auto& plan = core::plan_of<Program, backend>;
  constexpr const auto& stages = core::stage_plan_of<Program, backend>;
  constexpr const auto& arenas = core::arenas_of_places<Program, backend>;
  constexpr const auto& layout = core::layout_of_program<Program>;
  constexpr auto trained = core::trained_ranges(layout);
  constexpr long bytes = long(sizeof(typename Program::value_type)), processes = table_type::places;
  constexpr int groups = detail::groups_of_strategy<Strategy>;
  const core::leaf_policy policy = core::leaf_policy_of<Program>(how.leaves, groups);
  const core::batch_division most = policy.most(how.batch);
  const auto [capacity, room] = detail::largest_turns<Program, backend>(policy, how.batch, groups);

  process_memory out;
  out.parameters =
      (arenas.size[place] + plan.derived + core::plan_of<Program, backend, core::purpose::inference>.derived) * bytes;
  out.whole_parameters = layout.size * bytes;
  out.slots = how.slots * arenas.trainable[place] * bytes;
  if (place == 0) out.whole_slots = how.slots * layout.trainable * bytes;
  out.gradients = (most.leaves + groups - 1) / groups * arenas.trainable[place] * bytes;
  out.activations = (plan.scratch + capacity * plan.scratch_per_sample) * bytes;
  for (int s = 0; s < table_type::stages; ++s)
    if (table_type::place_of(s) == place) out.activations += capacity * stages.memory_of(s, table.in_flight(s)) * bytes;
  for (int t = 0; t < stages.transfer_count; ++t) {
    const int from = table_type::place_of(stages.transfers[t].from), to = table_type::place_of(stages.transfers[t].to);
    if (from == to || (from != place && to != place)) continue;
    out.messages += room * capacity * stages.transfers[t].size * bytes;
    if (how.shares_memory && to == place) out.messages += room * capacity * stages.transfers[t].size * bytes;  // of the other one
  }
  out.messages += processes * std::min(arenas.largest_slice, std::max(core::norm_piece, (1L << 20) / processes)) * bytes;
  const long norms = core::pieces_of(trained.span(), {0, layout.trainable}).end;
  out.messages += (3 + 2) * norms * long(sizeof(double));
  detail::add_messages_of_groups(out, most.leaves, groups, arenas.trainable[place], bytes, how.shares_memory);
  return out;
}

/// What a rank needs: `process_memory_of<program_type, multi_worker_tensor_parallel<2, halves>>({.batch = 64})`. There
/// are as many processes as ranks of all groups. process_memory::messages has the parts of layers that ranks send each other.
template <class Program, core::divides_into_ranks Strategy>
  requires detail::is_program<Program>
constexpr process_memory process_memory_of(const training_sizes& how) {
  detail::check_sizes(how);
  using rank = typename Strategy::division::template program_of_rank<Program>;
  using backend = detail::backend_of_rank_in<Strategy>;
  using items = typename rank::items;
  constexpr const auto& plan = core::plan_of<rank, backend>;
  constexpr const auto& layout = core::layout_of_program<rank>;
  constexpr long bytes = long(sizeof(typename Program::value_type)), ranks = Strategy::division::ranks;
  constexpr int groups = Strategy::groups;

  const core::batch_division most = core::leaf_policy_of<Program>(how.leaves, groups).most(how.batch);
  const int own_leaves = (most.leaves + groups - 1) / groups;
  const int samples = plan.needs_whole_leaf()
                          ? core::samples_in_cache<rank, backend, core::purpose::training>()
                          : std::min(most.capacity, how.micro_batch > 0 ? how.micro_batch : detail::samples_of_rank_at_a_time);

  process_memory out;
  out.parameters = (layout.size + plan.derived) * bytes;
  if (core::has_two_plans<rank, backend>)
    out.parameters += core::plan_of<rank, backend, core::purpose::inference>.derived * bytes;
  out.whole_parameters = core::layout_of_program<Program>.size * bytes;
  out.slots = how.slots * layout.trainable * bytes;
  out.whole_slots = how.slots * core::layout_of_program<Program>.trainable * bytes;
  out.gradients = own_leaves * layout.trainable * bytes;
  out.activations = detail::bytes_of_activations<rank, backend, core::purpose::training>(
      most.capacity, samples, plan.needs_whole_leaf() ? own_leaves : 1);
  detail::add_messages_of_ranks<items>(out, samples, ranks, bytes, how.shares_memory, 1);
  detail::add_messages_of_groups(out, most.leaves, groups, layout.trainable, bytes, how.shares_memory);
  return out;
}

namespace detail {
/// What process_memory_of asks of the strategy of a pipeline, for the stages of one rank.
template <divides_into_stages_of_ranks Strategy>
struct pipeline_of_rank {
  using backend = detail::backend_of_rank_in<Strategy>;
  static constexpr int groups = Strategy::groups;
};
}  // namespace detail

/// What a rank needs at place `place`: `process_memory_of<program_type, multi_worker_mesh<data_parallel<2>,
/// pipeline<balanced<2>>, tensor_parallel<2, halves>>>({.batch = 64}, 0)`.
template <class Program, core::divides_into_stages_of_ranks Strategy>
  requires detail::is_program<Program>
constexpr process_memory process_memory_of(const training_sizes& how, int place) {
  using rank = typename Strategy::division::template program_of_rank<Program>;
  constexpr long bytes = long(sizeof(typename Program::value_type)), ranks = Strategy::division::ranks;
  process_memory out = process_memory_of<rank, detail::pipeline_of_rank<Strategy>>(how, place);
  out.whole_parameters += core::layout_of_program<Program>.size * bytes;
  if (place == 0) out.whole_slots += how.slots * core::layout_of_program<Program>.trainable * bytes;
  const auto turns = detail::largest_turns<rank, detail::backend_of_rank_in<Strategy>>(
      core::leaf_policy_of<rank>(how.leaves, Strategy::groups), how.batch, Strategy::groups);
  detail::add_messages_of_ranks<typename rank::items>(out, turns.samples, ranks, bytes, how.shares_memory, 2);
  return out;
}

// For other arguments. They are not defined: their return types are the diagnostics.
template <class Program, class Strategy = void, class... Place>
  requires(!detail::is_program<Program>)
wrong_argument<Program, detail::because<reasons::process_memory_is_that_of_a_program_such_as_the_program_type_of_a_trainer>>
process_memory_of(const training_sizes&, const Place&...);
template <detail::is_program Program, class Strategy>
  requires core::divides_layers<Strategy> || core::divides_into_stages_of_ranks<Strategy>
wrong_argument<Strategy,
               detail::because<reasons::the_memory_of_a_place_is_asked_for_with_its_number_process_memory_of_sizes_and_place>>
process_memory_of(const training_sizes&);
template <detail::is_program Program, class Strategy, class... Place>
  requires(!core::divides_layers<Strategy> && !core::divides_into_stages_of_ranks<Strategy> &&
           (sizeof...(Place) > 0 || !(detail::stage_of_zero<Strategy> || core::divides_into_ranks<Strategy>)))
wrong_argument<
    Strategy, detail::because<(
                  detail::stage_of_zero<Strategy> ? reasons::the_processes_of_zero_need_equally_much_process_memory_of_sizes_only
                  : core::divides_into_ranks<Strategy>
                      ? reasons::the_ranks_that_divide_layers_need_equally_much_process_memory_of_sizes_only
                      : reasons::process_memory_is_known_of_zero_and_of_strategies_over_processes_such_as_multi_worker_pipeline)>>
process_memory_of(const training_sizes&, const Place&...);

namespace detail {
template <class Program, class Strategy, class Split>
std::string memory_of_places(const training_sizes& how) {
  memory_table table;
  for (int p = 0; p < Split::table.places; ++p)
    table.add(text_of({Split::place, " ", p}), process_memory_of<Program, Strategy>(how, p));
  return table.text();
}
}  // namespace detail

/// process_memory_of for each place, as a table.
template <class Program, core::divides_layers Strategy>
std::string process_memory_table(const training_sizes& how) {
  return detail::memory_of_places<Program, Strategy, typename Strategy::backend::split>(how);
}
/// process_memory_of for a rank at each place, as a table.
template <class Program, core::divides_into_stages_of_ranks Strategy>
std::string process_memory_table(const training_sizes& how) {
  return detail::memory_of_places<Program, Strategy, typename detail::backend_of_rank_in<Strategy>::split>(how);
}

/// process_memory_of for a rank, as a table.
template <class Program, core::divides_into_ranks Strategy>
std::string process_memory_table(const training_sizes& how) {
  detail::memory_table table;
  table.add("rank", process_memory_of<Program, Strategy>(how));
  return table.text();
}

/// process_memory_of for each stage of zero, as a table.
template <class Program, class Backend = core::default_backend>
std::string process_memory_table(const training_sizes& how) {
  detail::memory_table table;
  training_sizes alone = how;
  alone.processes = 1;
  table.add("one process", process_memory_of<Program, zero<0>, Backend>(alone));
  table.add("zero<0>", process_memory_of<Program, zero<0>, Backend>(how));
  table.add("zero<1>", process_memory_of<Program, zero<1>, Backend>(how));
  if constexpr (!core::plan_of<Program, Backend>.needs_whole_leaf()) {
    table.add("zero<2>", process_memory_of<Program, zero<2>, Backend>(how));
    table.add("zero<3>", process_memory_of<Program, zero<3>, Backend>(how));
  }
  return table.text();
}

}  // namespace strata
