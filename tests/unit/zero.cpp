// Slots in slices: each process updates its slice of the parameters, and the parameters have the bits of one process.
#include <doctest/doctest.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <latch>
#include <strata/callbacks/average_weights.hpp>
#include <strata/communicators/in_process.hpp>
#include <strata/distribute/synchronous_among.hpp>
#include <strata/optimizers/ema.hpp>
#include <strata/strata.hpp>
#include <strata/train/backup_and_restore.hpp>
#include <string>
#include <vector>

#include "error_of.hpp"
#include "fake_machines.hpp"
#include "gradient_check.hpp"
#include "scratch_folder.hpp"

using namespace strata;
using namespace strata::core;
using namespace strata::test;

namespace {
// Slices end within parameters and between them, and there are more pieces of 1,024 elements than processes.
using mlp = sequential<input<96>, dense<40, relu, kernel_regularizer<l2<0.01_r>>>, layer_norm<>, dense<33, tanh_activation>,
                       dense<10, softmax>>;

constexpr int samples_of_batch = 24;
constexpr compute_options two_threads{.threads = 2, .leaves = 8};

template <class Optimizer>
using program_with = program<mlp, sparse_categorical_crossentropy<>, Optimizer, type_list<accuracy>>;

/// Parameters and metrics after some steps.
struct outcome {
  std::vector<float> weights;
  std::vector<double> sums;
  bool operator==(const outcome& o) const {
    return weights.size() == o.weights.size() &&
           std::memcmp(weights.data(), o.weights.data(), weights.size() * sizeof(float)) == 0 && sums == o.sums;
  }
};
template <class P>
outcome outcome_of(auto& executor) {
  executor.prepare(samples_of_batch, purpose::training);
  outcome out;
  for (unsigned step = 0; step < 4; ++step)
    for (const metric_sum& sum : executor.train_step(random_batch<P>(samples_of_batch - int(step), step).view()))
      out.sums.insert(out.sums.end(), {sum.sum, sum.count});
  executor.finish();
  const auto w = executor.parameters();
  out.weights.assign(w.begin(), w.end());
  return out;
}

template <class P, class Stage>
using sharded = synchronous_executor<P, std::conditional_t<(Stage::stage > 1), segmented<cpu, 1024>, cpu>, fake_machines, Stage>;

template <class Stage = zero<1>, class Optimizer>
void check_bits(const Optimizer& optimizer, const std::vector<std::vector<int>>& machines, communication_options how = {}) {
  using P = program_with<Optimizer>;
  how.bytes_per_pack = 4096;
  synchronous_executor<P, cpu> alone(optimizer, 3, two_threads);
  const outcome expected = outcome_of<P>(alone);
  for (const std::vector<int>& of_ranks : machines) {
    CAPTURE(Optimizer::name);
    CAPTURE(of_ranks.size());
    traffic sent;
    std::atomic<int> wrong{0};
    for (const std::string& failure : among_machines(of_ranks, sent, [&](auto c) {
           sharded<P, Stage> executor(optimizer, 3, two_threads, c, how);
           wrong += outcome_of<P>(executor) != expected;
         }))
      CHECK(failure == "");
    CHECK(wrong == 0);
  }
}
}  // namespace

TEST_CASE("any number of processes and machines, and every kind of rule: the parameters of one process, bit for bit") {
  check_bits(adam{.learning_rate = 0.01}, {{0}, {0, 1}, {0, 0, 0}, {0, 0, 1, 1}, {0, 1, 2, 3, 4}, {1, 1, 2, 2, 3, 3}});
  check_bits(adam{.learning_rate = 0.01, .weight_decay = 0.1, .global_clipnorm = 0.1}, {{0, 0, 0}, {0, 0, 1, 1}});
  check_bits(sgd{.learning_rate = 0.01, .momentum = 0.9, .clipnorm = 0.05}, {{0, 0, 0}});
  check_bits(lamb{.learning_rate = 0.01, .clipnorm = 0.05}, {{0, 1}, {0, 0, 0}, {0, 0, 1, 1}});
  check_bits(ema{lamb{.learning_rate = 0.01}}, {{0, 0, 0}});
}

TEST_CASE("gradients in slices, and parameters, too: the same bits") {
  using P = program_with<adam>;
  static_assert(plan_of<P, segmented<cpu, 1024>>.segment_count == 3);
  check_bits<zero<2>>(adam{.learning_rate = 0.01, .global_clipnorm = 0.1},
                      {{0}, {0, 1}, {0, 0, 0}, {0, 0, 1, 1}, {0, 1, 2, 3, 4}});
  check_bits<zero<3>>(adam{.learning_rate = 0.01, .global_clipnorm = 0.1},
                      {{0}, {0, 1}, {0, 0, 0}, {0, 0, 1, 1}, {0, 1, 2, 3, 4}});
  check_bits<zero<3>>(lamb{.learning_rate = 0.01}, {{0, 0, 0}});
}

TEST_CASE("an optimizer begins anew wherever its state lies") {
  const auto check = [&]<class Stage>(Stage, const auto& optimizer, const std::vector<int>& of_ranks) {
    using P = program_with<std::remove_cvref_t<decltype(optimizer)>>;
    traffic sent;
    for (const std::string& failure : among_machines(of_ranks, sent, [&](auto c) {
           sharded<P, Stage> executor(optimizer, 3, two_threads, c, {.bf16_gradients = true});
           const std::vector<float> start(executor.parameters().begin(), executor.parameters().end());
           const outcome first = outcome_of<P>(executor);
           std::ranges::copy(start, executor.parameters().begin());
           executor.parameters_changed();
           detail::reset_optimizer(executor);
           if (executor.step() != 0 || outcome_of<P>(executor) != first) throw strata_error("other bits");
         }))
      CHECK(failure == "");
  };
  check(zero<0>{}, adam{}, {0, 0, 0});
  check(zero<1>{}, lamb{}, {0, 0, 0});
  check(zero<3>{}, adam{}, {0, 0, 1, 1});

  const auto bytes_of_reset = [](bool resets) {  // slots are not sent, so no process needs memory for those of others
    using P = program_with<adam>;
    traffic sent;
    for (const std::string& failure : among_machines({0, 0, 0}, sent, [&](auto c) {
           sharded<P, zero<1>> executor(adam{}, 3, two_threads, c);
           (void)outcome_of<P>(executor);
           if (resets) detail::reset_optimizer(executor);
         }))
      CHECK(failure == "");
    return sent.bytes.load();
  };
  CHECK(bytes_of_reset(true) == bytes_of_reset(false));
}

TEST_CASE("layouts of weights that kernels derive from parameters in slices: the same bits") {
  using images =
      sequential<input<12, 12, 3>, conv2d<16, 3, relu>, conv2d<16, 3, relu>, max_pool2d<2>, flatten, dense<10, softmax>>;
  using P = program<images, sparse_categorical_crossentropy<>, adam, type_list<accuracy>>;
  static_assert(plan_of<P, segmented<cpu, 256>>.is_cut && plan_of<P, segmented<cpu, 256>>.derived > 0);
  synchronous_executor<P, cpu> alone(adam{}, 3, two_threads);
  const outcome expected = outcome_of<P>(alone);
  traffic sent;
  std::atomic<int> wrong{0};
  for (const std::string& failure : among_machines({0, 0, 0}, sent, [&](auto c) {
         synchronous_executor<P, segmented<cpu, 256>, fake_machines, zero<3>> executor(adam{}, 3, two_threads, c);
         wrong += outcome_of<P>(executor) != expected;
       }))
    CHECK(failure == "");
  CHECK(wrong == 0);
}

TEST_CASE("layers that do not train, and gradients in bfloat16: the bits of processes without it") {
  using P = program_with<adam>;
  const communication_options rounded{.bytes_per_pack = 4096, .bf16_gradients = true};
  const auto train_with = [&]<int Stage>(zero<Stage>) {
    std::vector<outcome> all(3);
    traffic sent;
    for (const std::string& failure : among_machines({0, 0, 0}, sent, [&](auto c) {
           sharded<P, zero<Stage>> executor(adam{}, 3, two_threads, c, rounded);
           executor.freeze(std::array{true, false, false, false, false, true, false, false});
           all[std::size_t(c.rank())] = outcome_of<P>(executor);
         }))
      CHECK(failure == "");
    for (const outcome& o : all) CHECK(o == all.front());
    return all.front();
  };
  CHECK(train_with(zero<1>{}) == train_with(zero<0>{}));
}

TEST_CASE("slices of a process: together they are the arena, and each has about as many elements") {
  const std::vector<gradient_bucket> buckets{{40'000, 90'000, 2}, {16, 40'000, 1}, {0, 16, 0}};
  for (const auto& [processes, per_machine] : {std::pair{1, 1}, {3, 1}, {4, 4}, {6, 2}}) {
    std::vector<int> owners(90'000, 0);
    for (int r = 0; r < processes; ++r) {
      const std::vector<arena_slice> own = slices_of_process(buckets, r, processes, per_machine);
      long at = 0;
      for (const arena_slice& s : own) {
        CHECK(s.at == at);
        at += s.size();
        for (long i = s.begin; i < s.end; ++i) ++owners[std::size_t(i)];
        CHECK((s.end % norm_piece == 0 || s.end == 90'000 || s.end == 40'000 || s.end == 16));
      }
      CHECK(elements_of(own) == at);
      CHECK(std::abs(at - 90'000 / processes) <= 3 * norm_piece);
    }
    CHECK(std::ranges::count(owners, 1) == 90'000);
  }
}

namespace {
using averaging = ema<adam>;
const data::digits& digits() {
  static const data::digits d = data::synthetic_digits(80, 3);
  return d;
}
using of_digits = sequential<input<28, 28, 1>, flatten, dense<16, relu>, dropout<0.2_r>, dense<10, softmax>>;

/// Trains two epochs, or trains the first one and leaves a snapshot.
std::vector<float> trained(const auto& strategy, const std::filesystem::path& folder, int epochs_of_it) {
  trainer model{of_digits{}, averaging{adam{.learning_rate = 0.01}}, sparse_categorical_crossentropy{}, strategy, seed(7)};
  const auto batches = digits() | data::shuffle(80) | data::batch<32>;
  backup_and_restore backup{folder, {.delete_checkpoint = epochs_of_it == 2}};
  if (epochs_of_it == 2)
    model.fit(batches, epochs(2), verbose::off, backup, average_weights{}, validation(digits() | data::batch<30>));
  else
    model.fit(batches, epochs(1), verbose::off, backup);
  return {model.parameters().begin(), model.parameters().end()};
}

/// The segments have few elements, because this network is small.
struct parameters_in_slices : zero<3> {
  template <class Backend>
  using backend = segmented<Backend, 1024>;
};

template <class Stage>
std::vector<float> among(int processes, const std::filesystem::path& folder, int epochs_of_it) {
  std::vector<std::vector<float>> all(static_cast<std::size_t>(processes));
  traffic sent;
  const std::vector<int> one_machine(std::size_t(processes), 0);
  for (const std::string& failure : among_machines(one_machine, sent, [&](auto c) {
         all[std::size_t(c.rank())] =
             trained(synchronous_among<fake_machines, cpu, Stage>{c, {.threads = 1, .leaves = 8}}, folder, epochs_of_it);
       }))
    CHECK(failure == "");
  for (const auto& each : all) CHECK(each == all.front());
  return all.front();
}
}  // namespace

TEST_CASE("a snapshot does not depend on who kept which slice") {
  const scratch_folder folder("zero");
  const one_device alone{{.threads = 1, .leaves = 8}};
  const std::vector<float> expected = trained(alone, folder / "undisturbed", 2);
  const auto check = [&](const char* name, auto&& first, auto&& second) {
    CAPTURE(name);
    first(folder / name);
    CHECK(second(folder / name) == expected);
  };
  using one = zero<1>;
  using three = parameters_in_slices;
  const auto begin_with = []<class Stage>(int processes, Stage) {
    return [processes](const auto& to) { among<Stage>(processes, to, 1); };
  };
  const auto end_with = []<class Stage>(int processes, Stage) {
    return [processes](const auto& from) { return among<Stage>(processes, from, 2); };
  };
  const auto end_alone = [&](const auto& from) { return trained(alone, from, 2); };
  check("4 to 3", begin_with(4, one{}), end_with(3, one{}));
  check("4 to one device", begin_with(4, one{}), end_alone);
  check("one device to 2", [&](const auto& to) { trained(alone, to, 1); }, end_with(2, one{}));
  check("3 with all in slices to 2 with slots in slices", begin_with(3, three{}), end_with(2, one{}));
  check("2 with slots in slices to 4 with all in slices", begin_with(2, one{}), end_with(4, three{}));
}

namespace {
/// A communicator that loses the others while they exchange parameters.
struct lonely : in_process {
  explicit lonely(in_process c) : in_process(std::move(c)) {}
  void wait(const char* what) {
    if (what == std::string("parameters")) throw communication_error("parameters: process 1 is lost");
    in_process::wait(what);
  }
};
}  // namespace

TEST_CASE("parameters in slices: all of them are there before the first step and after finish only") {
  using P = program_with<adam>;
  traffic sent;
  for (const std::string& failure : among_machines({0, 0}, sent, [&](auto c) {
         sharded<P, zero<3>> executor(adam{}, 3, two_threads, c);
         const std::vector<float> before(executor.parameters().begin(), executor.parameters().end());
         executor.prepare(8, purpose::training);
         executor.train_step(random_batch<P>(8, 1).view());
         if (!contains(error_of([&] { (void)executor.parameters(); }), "call finish() of the executor in all processes"))
           throw strata_error("not refused");
         executor.finish();
         if (std::ranges::equal(before, executor.parameters())) throw strata_error("not trained");
         std::ranges::copy(before, executor.parameters().begin());  // as set_parameters does
         executor.parameters_changed();
         executor.finish();
         if (!std::ranges::equal(before, executor.parameters())) throw strata_error("not changed");
         executor.set_step(0);
         executor.train_step(random_batch<P>(8, 1).view());
         executor.finish();
       }))
    CHECK(failure == "");
}

TEST_CASE("parameters of which the others lack a part are refused") {
  using P = program_with<adam>;
  std::vector<std::string> failures(2, "");
  std::vector<std::thread> threads;
  std::latch both(2);  // each reads the memory of the other
  for (in_process& member : in_process::group(2))
    threads.emplace_back([&, member] {
      synchronous_executor<P, cpu, lonely, zero<1>> executor(adam{}, 3, {.threads = 1, .leaves = 2}, lonely(member));
      executor.prepare(8, purpose::training);
      const std::string lost = error_of<communication_error>([&] { executor.train_step(random_batch<P>(8, 1).view()); });
      failures[std::size_t(member.rank())] = lost + "; " + error_of([&] { (void)executor.parameters(); });
      both.arrive_and_wait();
    });
  for (std::thread& t : threads) t.join();
  for (const std::string& f : failures)
    CHECK(f ==
          "parameters: process 1 is lost; zero: a process was lost while the others sent each other the parameters of a step, so "
          "this process has those of two steps: continue from a snapshot, with backup_and_restore");
}
