// How many bytes a process needs for a training, before it starts: a constant of the program, the strategy and the sizes. It is
// the sum of what the classes of its executor declare in add_memory, next to where they allocate it.
#pragma once
#include <strata/base/error.hpp>
#include <strata/base/reason.hpp>
#include <strata/base/text.hpp>
#include <strata/base/text_table.hpp>
#include <strata/communicators/in_process.hpp>
#include <strata/exchange/zero/zero.hpp>
#include <strata/network/summary.hpp>
#include <strata/program/leaf_policy.hpp>
#include <strata/program/training_sizes.hpp>
#include <strata/synchronous/among_processes.hpp>
#include <string>
#include <type_traits>
#include <vector>

namespace strata {

namespace reasons {
inline constexpr reason process_memory_is_that_of_a_program_such_as_the_program_type_of_a_trainer{
    "process_memory_of<Program, ...> takes a program, such as decltype(model)::program_type or program<network, loss, optimizer, "
    "type_list<>>"};
inline constexpr reason process_memory_is_known_of_zero_and_of_strategies_over_processes_such_as_multi_worker_pipeline{
    "the memory of a process can be computed with zero<0> to zero<3>, and for strategies over processes that divide a network, "
    "such as multi_worker_pipeline, multi_worker_tensor_parallel, multi_worker_mesh and placed_among"};
}  // namespace reasons

namespace detail {
template <class P>
concept is_program = requires { typename P::optimizer; };
/// A strategy that divides a network among processes.
template <class S>
concept divides_among_processes = requires {
  typename S::communicator_type;
  typename S::division::split;
};

/// The executor that process_memory_of describes for `Of`, which is zero<Stage> or a strategy, with the places of its stages and
/// the number of groups of processes that divide a batch; 0: training_sizes::processes is that number.
template <class Program, class Of, class Backend>
struct process_of {
  using wrong = std::conditional_t<
      is_program<Program>,
      because<reasons::process_memory_is_known_of_zero_and_of_strategies_over_processes_such_as_multi_worker_pipeline>,
      because<reasons::process_memory_is_that_of_a_program_such_as_the_program_type_of_a_trainer>>;
  static_assert(diagnosed<wrong_argument<std::conditional_t<is_program<Program>, Of, Program>, wrong>>[0]);
  static constexpr int places = 0;
};
template <is_program Program, class Of, class Backend>
  requires requires { Of::stage; }
struct process_of<Program, Of, Backend> {
  using executor = core::synchronous_executor<Program, typename Of::template backend<Backend>, in_process, Of>;
  static constexpr int places = 1, groups = 0;
};
template <is_program Program, divides_among_processes Of, class Backend>
struct process_of<Program, Of, Backend> {
  using division = typename Of::division;
  using executor = typename division::template executor<Program, typename Of::communicator_type>;
  static constexpr int places = [] {
    if constexpr (std::is_void_v<typename division::split>)
      return 1;
    else
      return division::split::table.places;
  }();
  static constexpr int groups = division::groups;
};

/// `38.69 MiB`.
inline std::string in_binary_units(long bytes) {
  std::string text = readable_memory(double(bytes));
  if (bytes >= 1024) text.insert(text.size() - 1, "i");
  return text;
}
}  // namespace detail

/// The most that a process of the training needs: `process_memory_of<program_type, zero<2>>({.batch = 64, .processes = 4})`. The
/// backend of zero is that of the CPU. Without `.processes` there is one process, whose slices are everything.
/// With a strategy that divides the network, what the process of a rank, or of place `place`, needs:
/// `process_memory_of<program_type, multi_worker_tensor_parallel<2, halves>>({.batch = 64})`,
/// `process_memory_of<program_type, multi_worker_pipeline<balanced<4>>>({.batch = 64}, 0)`. There are as many processes as places
/// and ranks of all groups, each of which computes with one thread. process_memory::messages has the activations, their gradients
/// and the parts of layers that are on the way. Throws strata_error for a size below its minimum, and for a place that the
/// network does not have; a network with one place needs none.
template <class Program, class Of = zero<0>, class Backend = core::default_backend>
constexpr process_memory process_memory_of(const training_sizes& how, int place = -1) {
  using process = detail::process_of<Program, Of, Backend>;
  process_memory all;
  if constexpr (process::places > 0) {
    if (how.batch < 1 || how.processes < 1 || how.threads < 1 || how.slots < 0 || how.micro_batch < 0)
      throw_error("process_memory_of: batch, processes and threads are at least 1, slots and micro_batch at least 0");
    if (place < 0 && process::places == 1) place = 0;
    if (place < 0 || place >= process::places)
      throw_error({"process_memory_of: the second argument is a place of the network, 0 to ", process::places - 1});
    core::sizes_of_process its{how, place,
                               core::leaf_policy_of<Program>(how.leaves, process::groups > 0 ? process::groups : how.processes)};
    if (process::groups > 0) its.processes = process::groups;
    process::executor::add_memory(all, its);
  }
  return all;
}

/// process_memory_of for each place of a strategy, or for each stage of zero, as a table.
template <class Program, class Of = core::default_backend>
std::string process_memory_table(const training_sizes& how) {
  std::vector<std::vector<std::string>> rows = {
      {"", "parameters", "slots", "gradients", "activations", "messages", "in a step", "at most", "chief, saving"}};
  const auto add = [&](const std::string& name, const process_memory& m) {
    std::vector<std::string>& row = rows.emplace_back();
    row.push_back(name);
    for (const long bytes :
         {m.parameters, m.slots, m.gradients, m.activations, m.messages, m.total(), m.peak(), m.peak_with_snapshots()})
      row.push_back(detail::in_binary_units(bytes));
  };
  if constexpr (detail::divides_among_processes<Of>) {
    using process = detail::process_of<Program, Of, core::default_backend>;
    for (int p = 0; p < process::places; ++p) {
      std::string name = "rank";
      if constexpr (!std::is_void_v<typename Of::division::split>) name = detail::text_of({Of::division::split::place, " ", p});
      add(name, process_memory_of<Program, Of>(how, p));
    }
  } else {
    training_sizes alone = how;
    alone.processes = 1;
    add("one process", process_memory_of<Program, zero<0>, Of>(alone));
    const auto add_stage = [&]<int Stage>(zero<Stage>) {
      using backend = typename zero<Stage>::template backend<Of>;
      if constexpr (std::is_same_v<typename detail::sharding_verdict<Program, backend, zero<Stage>>::type, detail::no_complaint>)
        add(detail::text_of({"zero<", Stage, ">"}), process_memory_of<Program, zero<Stage>, Of>(how));
    };
    add_stage(zero<0>{}), add_stage(zero<1>{}), add_stage(zero<2>{}), add_stage(zero<3>{});
  }
  return detail::aligned(rows);
}

}  // namespace strata
