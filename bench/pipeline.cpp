// The bubble of pipelines whose stages take equally long, one thread each: the share of the time in which a thread waits, beside
// (S - 1) / (M + S - 1) for gpipe and one_forward_one_backward, and (S / V - 1) / (V M + S / V - 1) for interleaved<V>.
// idle_*: by wall-clock time, where each stage needs a core of its own. idle_of_turns: by simulating the timetable with the
// processor time of each turn, the median of all steps, which other programs hardly affect. ratio_*: by the formula.
#include "machine.hpp"
#include "support/options.hpp"

#include <time.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <mutex>
#include <strata/distribute/pipeline.hpp>
#include <strata/strata.hpp>
#include <utility>
#include <vector>

using namespace strata;
using namespace strata::core;
using namespace strata::bench;

namespace {

/// Stages of equal cost: the first layer computes no gradient of its input, so its input is wider.
template <class... Layers>
using repeated = sequential<Layers..., Layers..., Layers..., Layers...>;
using layer = dense<256, relu>;
using network = sequential<input<384>, repeated<repeated<layer>>, repeated<repeated<layer>>, dense<1>>;

/// The processor time of this thread, in seconds.
double processor_time() {
  timespec spent{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
  return double(spent.tv_sec) + 1e-9 * double(spent.tv_nsec);
}

/// Measures the time that all threads spend in kernels during a step, and the processor time of each turn of the timetable.
template <class Program, class Backend>
class busy_time : public kernel_observer {
  static constexpr const auto& table = Backend::split::table;
  static constexpr const auto& stages = stage_plan_of<Program, Backend>;
  using table_type = std::remove_cvref_t<decltype(table)>;

 public:
  using turn_times = std::array<std::array<std::array<double, table_type::micro_batches>, table_type::stages>, 2>;

 private:
  std::mutex mutex_;
  int samples_;  // of a micro-batch
  double first_ = 1e300, last_ = 0, sum_ = 0;
  turn_times turns_{};
  struct begin {
    double clock = 0, processor = 0;
  };
  static begin& began() {
    thread_local begin at;
    return at;
  }

 public:
  explicit busy_time(int samples) : samples_(samples) {}

  bool reads_gradients() const override { return false; }
  void begins(const observed_call&) override { began() = {now(), processor_time()}; }
  void ended(const observed_call& call, const observed_numbers&) override {
    const double end = now(), spent = processor_time() - began().processor;
    const std::lock_guard lock(mutex_);
    first_ = std::min(first_, began().clock), last_ = std::max(last_, end), sum_ += end - began().clock;
    turns_[call.direction == pass_direction::backward][std::size_t(stages.stage_of[call.group])]
          [std::size_t(call.first_sample / samples_)] += spent;
  }

  /// The share of the time between the first kernel and the last one in which a thread did not compute; and the times of turns.
  std::pair<double, turn_times> take() {
    const double idle = 1 - sum_ / (table_type::places * (last_ - first_));
    first_ = 1e300, last_ = sum_ = 0;
    return {idle, std::exchange(turns_, {})};
  }
};

/// The share of time that a place waits if each turn takes the median of its times in all steps.
template <class Times>
double idle_of_turns(const auto& table, const std::vector<Times>& steps) {
  double work = 0;
  const double whole = table
                           .template simulate<double>([&](const turn& t) {
                             std::vector<double> all;
                             for (const Times& each : steps)
                               all.push_back(each[t.backward][std::size_t(t.stage)][std::size_t(t.micro_batch)]);
                             const double took = median(std::move(all));
                             work += took;
                             return took;
                           })
                           .whole;
  return 1 - work / (table.places * whole);
}

struct settings {
  int steps = 200, batch = 512;
};

template <class Strategy>
void measure(const char* schedule, int micro_batches, const settings& s, double one_thread) {
  using P = program<network, mean_squared_error, sgd, type_list<>>;
  using backend = typename Strategy::backend;
  synchronous_executor<P, backend> executor(sgd{.learning_rate = 1e-6}, 1, {.threads = 1, .leaves = 1});
  busy_time<P, backend> observer(s.batch / micro_batches);
  executor.observe(&observer);
  executor.prepare(s.batch, purpose::training);
  const std::vector<float> x(std::size_t(s.batch) * 384, 0.5f), y(std::size_t(s.batch));
  std::vector<double> idle, seconds;
  std::vector<typename busy_time<P, backend>::turn_times> turns;
  constexpr const auto& table = backend::split::table;
  for (int step = 0; step < s.steps; ++step) {
    const double start = now();
    executor.train_step({x.data(), y.data(), s.batch});
    seconds.push_back(now() - start);
    const auto& [on_the_clock, times] = observer.take();
    idle.push_back(on_the_clock), turns.push_back(times);
  }
  const double of_turns = idle_of_turns(table, turns);
  const double best = *std::ranges::min_element(idle), step = *std::ranges::min_element(seconds);
  std::printf(
      "{\"schedule\": \"%s\", \"places\": %d, \"micro_batches\": %d, \"bubble\": %.4f, \"idle_of_turns\": %.4f, "
      "\"ratio_of_turns\": %.3f, \"idle_best\": %.4f, \"idle_median\": %.4f, \"ratio_median\": %.3f, \"step_ms\": %.2f, "
      "\"times_one_thread\": %.3f}\n",
      schedule, table.places, micro_batches, table.bubble(), of_turns, of_turns / table.bubble(), best, median(idle),
      median(idle) / table.bubble(), 1e3 * step, one_thread / step);
  std::fflush(stdout);
}

template <int M>
void measure_all(const settings& s, double one_thread) {
  measure<pipeline<stages<16, 17>, micro_batches<M>, gpipe>>("gpipe", M, s, one_thread);
  measure<pipeline<stages<16, 17>, micro_batches<M>>>("one_forward_one_backward", M, s, one_thread);
  measure<pipeline<stages<8, 8, 8, 9>, micro_batches<M>, interleaved<2>>>("interleaved<2>", M, s, one_thread);
}

double step_of_one_thread(const settings& s) {
  using P = program<network, mean_squared_error, sgd, type_list<>>;
  synchronous_executor<P, cpu> executor(sgd{.learning_rate = 1e-6}, 1, {.threads = 1, .leaves = 1});
  executor.prepare(s.batch, purpose::training);
  const std::vector<float> x(std::size_t(s.batch) * 384, 0.5f), y(std::size_t(s.batch));
  return best_time(s.steps, 1, [&] { executor.train_step({x.data(), y.data(), s.batch}); });
}

}  // namespace

int main(int argc, char** argv) {
  settings s;
  strata::bench::options("Measures the bubble of pipelines of two and four places.")
      .add("--steps", s.steps, "number of steps of each pipeline")
      .add("--batch", s.batch, "samples of a step, a multiple of 16")
      .smoke("--steps 1 --batch 16")
      .parse(argc, argv);
  const double one_thread = step_of_one_thread(s);
  std::printf("{\"schedule\": \"one thread\", \"step_ms\": %.2f}\n", 1e3 * one_thread);
  measure_all<2>(s, one_thread);
  measure_all<4>(s, one_thread);
  measure_all<8>(s, one_thread);
  measure_all<16>(s, one_thread);
  measure<pipeline<stages<8, 8, 8, 9>, micro_batches<8>>>("one_forward_one_backward", 8, s, one_thread);
}
