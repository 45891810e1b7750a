// The memory that a process needs for a training is a constant: it is compared with the actual allocations.
#include <doctest/doctest.h>

#include <numeric>
#include <strata/distribute/among.hpp>
#include <strata/distribute/process_memory.hpp>
#include <strata/distribute/synchronous_among.hpp>
#include <strata/strata.hpp>
#include <string>
#include <vector>

#include "count_allocations.hpp"
#include "error_of.hpp"
#include "fake_machines.hpp"
#include "gradient_check.hpp"
#ifndef STRATA_TEST_NEW_IS_TAKEN

using namespace strata;
using namespace strata::core;
using namespace strata::test;

namespace {
using mlp = sequential<input<200>, dense<160, relu>, dense<160, relu>, dense<160, relu>, dense<10, softmax>>;
using normalized = sequential<input<8, 8, 3>, conv2d<16, 3, same_padding>, batch_norm<>, activation<relu>, conv2d<16, 3>, flatten,
                              dense<64, relu>, dense<10, softmax>>;
template <class Network>
using program_of = program<Network, sparse_categorical_crossentropy<>, adam, type_list<>>;
using P = program_of<mlp>;

/// The segments are small, in proportion to this small network.
template <int Stage>
struct in_small_segments : zero<Stage> {
  template <class Backend>
  using backend = std::conditional_t<(Stage > 1), segmented<Backend, 1024>, Backend>;
};

/// Initializers fill one parameter at a time in double, before any of the rest is allocated.
template <class Network>
constexpr double bytes_of_initializer = [] {
  long most = 0;
  const auto ranges = trained_ranges(layout_of<typename Network::items>);
  for (const parameter_range& p : ranges.span()) most = std::max(most, p.elements);
  return double(most) * sizeof(double);
}();

constexpr training_sizes four{.batch = 64, .processes = 4, .leaves = 8};

/// Checks the allocations of the chief for the slots of a snapshot.
void saved_by(auto& executor, long planned) {
  const long before = bytes_of_thread;
  executor.collect_slots();
  if (executor.group().is_chief()) CHECK(double(planned) == doctest::Approx(double(bytes_of_thread - before)).epsilon(0.05));
}

template <int Stage>
void check_stage() {
  CAPTURE(Stage);
  using stage = in_small_segments<Stage>;
  constexpr process_memory planned = process_memory_of<P, stage>(four);
  static_assert(planned.total() > 0);
  const auto batch = random_batch<P>(four.batch, 1);
  traffic sent;
  std::vector<long> used(std::size_t{four.processes});
  for (const std::string& failure : among_machines({0, 0, 0, 0}, sent, [&](auto c) {
         const long before = bytes_of_thread;
         synchronous_executor<P, typename stage::template backend<cpu>, fake_machines, stage> executor(
             adam{}, 3, {.threads = 1, .leaves = 8}, c);
         executor.prepare(four.batch, purpose::training);
         executor.train_step(batch.view());
         used[std::size_t(c.rank())] = bytes_of_thread - before;
         executor.finish();
         if constexpr (Stage > 0) saved_by(executor, planned.whole_slots);
       }))
    CHECK(failure == "");
  const double each = double(std::accumulate(used.begin(), used.end(), 0L)) / four.processes - bytes_of_initializer<mlp>;
  CHECK(double(planned.peak()) == doctest::Approx(each).epsilon(0.05));
}

template <class Network>
void check_alone(training_sizes sizes) {
  const auto batch = random_batch<program_of<Network>>(sizes.batch, 1);
  const long before = bytes_allocated;
  synchronous_executor<program_of<Network>, cpu> executor(
      adam{}, 3, {.threads = sizes.threads, .leaves = sizes.leaves, .micro_batch = sizes.micro_batch});
  executor.prepare(sizes.batch, purpose::training);
  executor.train_step(batch.view());
  const double used = double(bytes_allocated - before) - bytes_of_initializer<Network>;
  CHECK(double(process_memory_of<program_of<Network>>(sizes).peak()) == doctest::Approx(used).epsilon(0.05));
}
}  // namespace

TEST_CASE("sizes that are none are refused") {
  for (const training_sizes sizes :
       {training_sizes{}, {.batch = 64, .processes = 0}, {.batch = 64, .threads = 0}, {.batch = 64, .slots = -1}, {.batch = -1}})
    CHECK(error_of([&] { (void)process_memory_of<P>(sizes); }) ==
          "process_memory_of: batch, processes and threads are at least 1, slots and micro_batch at least 0");
  CHECK(error_of([] { (void)process_memory_of<P>({.batch = 64, .leaves = -1}); }).starts_with("the option leaves is -1"));
}

TEST_CASE("one process: within 5 % of what it allocates") {
  check_alone<mlp>({.batch = 64, .threads = 2, .leaves = 4});
  check_alone<mlp>({.batch = 100, .threads = 1});
  check_alone<mlp>({.batch = 64, .threads = 2, .leaves = 4, .micro_batch = 8});
  check_alone<normalized>({.batch = 64, .threads = 1, .leaves = 4});
  check_alone<normalized>({.batch = 64, .threads = 1, .leaves = 4, .micro_batch = 8});  // which it ignores
}

TEST_CASE("each of four processes, with each stage of zero: the same") {
  check_stage<0>();
  check_stage<1>();
  check_stage<2>();
  check_stage<3>();
}

TEST_CASE("each place of a pipeline over processes: the same") {
  using strategy = pipeline_among<fake_machines, stages<1, 1, 1, 1>, micro_batches<4>, interleaved<2>>;
  constexpr training_sizes sizes{.batch = 64, .leaves = 2};
  static_assert(process_memory_of<P, strategy>(sizes, 0).parameters > process_memory_of<P, strategy>(sizes, 1).parameters);
  const auto batch = random_batch<P>(sizes.batch, 1);
  traffic sent;
  std::vector<double> used(2);
  for (const std::string& failure : among_machines({0, 0}, sent, [&](auto c) {
         const auto place = std::size_t(c.rank());
         const long before = bytes_of_thread;
         auto executor = strategy{c, {.threads = 1, .leaves = 2}}.template make<P>(adam{}, 3);
         executor.prepare(sizes.batch, purpose::training);
         executor.train_step(batch.view());
         used[place] = double(bytes_of_thread - before) - bytes_of_initializer<mlp>;
         CHECK(
             error_of([&] { executor.parameters(); }).starts_with("stages in processes: a process has a part of the parameters"));
         executor.finish();
         CHECK(executor.parameters().size() == layout_of_program<P>.size);
         saved_by(executor, process_memory_of<P, strategy>(sizes, 0).whole_slots);
       }))
    CHECK(failure == "");
  for (int place = 0; place < 2; ++place)
    CHECK(double(process_memory_of<P, strategy>(sizes, place).peak()) == doctest::Approx(used[std::size_t(place)]).epsilon(0.05));
  CHECK(process_memory_table<P, strategy>(sizes).find("place 1") != std::string::npos);
  CHECK(error_of([&] { (void)process_memory_of<P, strategy>(sizes, 2); }) ==
        "process_memory_of: the second argument is a place of the network, 0 to 1");
  CHECK(error_of([&] { (void)process_memory_of<P, strategy>(sizes); }) ==
        "process_memory_of: the second argument is a place of the network, 0 to 1");
}

namespace {
/// Checks the allocations of each training process, without those of the initializers.
template <class Strategy>
void check_process_of(std::size_t processes, training_sizes sizes, double of_initializers, auto&& planned) {
  const auto batch = random_batch<P>(sizes.batch, 1);
  traffic sent;
  std::vector<double> used(processes);
  for (const std::string& failure : among_machines(std::vector<int>(processes), sent, [&](auto c) {
         const auto process = std::size_t(c.rank());
         const long before = bytes_of_thread;
         auto executor =
             Strategy{c, {.threads = 1, .leaves = sizes.leaves, .micro_batch = sizes.micro_batch}}.template make<P>(adam{}, 3);
         executor.prepare(sizes.batch, purpose::training);
         executor.train_step(batch.view());
         used[process] = double(bytes_of_thread - before) - of_initializers;
         executor.finish();
         saved_by(executor, planned(0).whole_slots);
       }))
    CHECK(failure == "");
  for (std::size_t p = 0; p < processes; ++p) CHECK(double(planned(int(p)).peak()) == doctest::Approx(used[p]).epsilon(0.05));
}
}  // namespace

TEST_CASE("each process of a mesh: the same") {
  using map = layout_map<rule<"dense", by_columns>, rule<"dense_1", by_columns>, rule<"dense_2", by_rows>>;
  using in_parts = device_mesh_among<fake_machines, data_parallel<2>, tensor_parallel<2, map>>;
  constexpr training_sizes sizes{.batch = 64, .leaves = 4};
  constexpr process_memory planned = process_memory_of<P, in_parts>(sizes);
  static_assert(planned.slots < process_memory_of<P>(sizes).slots * 2 / 3);
  check_process_of<in_parts>(4, sizes, bytes_of_initializer<mlp>, [&](int) { return planned; });
  constexpr training_sizes fewer_at_a_time{.batch = 64, .leaves = 4, .micro_batch = 2};
  static_assert(process_memory_of<P, in_parts>(fewer_at_a_time).activations < planned.activations);
  check_process_of<in_parts>(4, fewer_at_a_time, bytes_of_initializer<mlp>,
                             [&](int) { return process_memory_of<P, in_parts>(fewer_at_a_time); });
  CHECK(process_memory_table<P, in_parts>(sizes).find("rank ") != std::string::npos);
  using in_stages = device_mesh_among<fake_machines, data_parallel<2>, pipeline<balanced<2>, micro_batches<4>>>;
  check_process_of<in_stages>(4, sizes, bytes_of_initializer<mlp>,
                              [&](int p) { return process_memory_of<P, in_stages>(sizes, p % 2); });
  using in_both =
      device_mesh_among<fake_machines, data_parallel<1>, pipeline<balanced<2>, micro_batches<4>>, tensor_parallel<2, map>>;
  check_process_of<in_both>(4, sizes, bytes_of_initializer<mlp>,
                            [&](int p) { return process_memory_of<P, in_both>(sizes, p / 2); });
  // Six micro-batches of four leaves are four.
  using in_six =
      device_mesh_among<fake_machines, data_parallel<1>, pipeline<balanced<2>, micro_batches<6>>, tensor_parallel<2, map>>;
  static_assert(process_memory_of<P, in_six>({.batch = 96, .leaves = 4}, 0).messages ==
                process_memory_of<P, in_both>({.batch = 96, .leaves = 4}, 0).messages);
}

TEST_CASE("as a table") {
  const std::string table = process_memory_table<P>(four);
  CHECK(table.starts_with("             parameters  slots"));
  CHECK(std::ranges::count(table, '\n') == 6);
}
#endif
