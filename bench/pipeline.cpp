// The bubble of a pipeline of two stages that take equally long, one thread each: the share of the time in which a thread waits,
// beside (S - 1) / (M + S - 1) for gpipe and one_forward_one_backward, and (S / V - 1) / (V M + S / V - 1) for interleaved<V>.
#include "machine.hpp"
#include "support/options.hpp"

#include <atomic>
#include <cstdio>
#include <mutex>
#include <strata/distribute/pipeline.hpp>
#include <strata/strata.hpp>
#include <string>
#include <vector>

using namespace strata;
using namespace strata::bench;

namespace {

/// Stages of equal length: the gradient of the first layer's input is not computed, which takes 1 % of a stage.
template <class... Layers>
using repeated = sequential<Layers..., Layers..., Layers..., Layers...>;
using layer = dense<256, relu>;
using network = sequential<input<256>, repeated<repeated<layer>>, repeated<repeated<layer>>, dense<1>>;

/// When kernels computed in one step, all threads together.
class busy_time : public kernel_observer {
  std::mutex mutex_;
  double first_ = 1e300, last_ = 0, sum_ = 0;
  static double& began() {
    thread_local double at = 0;
    return at;
  }

 public:
  bool reads_gradients() const override { return false; }
  void begins(const observed_call&) override { began() = now(); }
  void ended(const observed_call&, const observed_numbers&) override {
    const double end = now();
    const std::lock_guard lock(mutex_);
    first_ = std::min(first_, began()), last_ = std::max(last_, end), sum_ += end - began();
  }
  /// The share of the time between the first kernel and the last one in which a thread did not compute.
  double take_idle(int threads) {
    const double idle = 1 - sum_ / (threads * (last_ - first_));
    first_ = 1e300, last_ = sum_ = 0;
    return idle;
  }
};

struct settings {
  int steps = 200, batch = 256;
};

template <class Strategy>
void measure(const char* schedule, int micro_batches, const settings& s, double one_thread) {
  using P = program<network, mean_squared_error, sgd, type_list<>>;
  synchronous_executor<P, typename Strategy::backend> executor(sgd{.learning_rate = 1e-6}, 1, {.threads = 1, .leaves = 1});
  busy_time observer;
  executor.observe(&observer);
  executor.prepare(s.batch, purpose::training);
  const std::vector<float> x(std::size_t(s.batch) * 256, 0.5f), y(std::size_t(s.batch));
  std::vector<double> idle, seconds;
  constexpr const auto& table = Strategy::backend::split::table;
  for (int step = 0; step < s.steps; ++step) {
    const double start = now();
    executor.train_step({x.data(), y.data(), s.batch});
    seconds.push_back(now() - start);
    idle.push_back(observer.take_idle(table.places));
  }
  std::ranges::sort(idle);
  std::ranges::sort(seconds);
  std::printf(
      "{\"schedule\": \"%s\", \"micro_batches\": %d, \"idle_best\": %.4f, \"idle_median\": %.4f, \"bubble\": %.4f, \"step_ms\": "
      "%.2f, "
      "\"times_one_thread\": %.3f}\n",
      schedule, micro_batches, idle.front(), median(idle), table.bubble(), 1e3 * seconds.front(), one_thread / seconds.front());
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
  const std::vector<float> x(std::size_t(s.batch) * 256, 0.5f), y(std::size_t(s.batch));
  return best_time(s.steps, 1, [&] { executor.train_step({x.data(), y.data(), s.batch}); });
}

}  // namespace

int main(int argc, char** argv) {
  settings s;
  strata::bench::options("Measures the bubble of pipelines of two stages.")
      .add("--steps", s.steps, "of each pipeline")
      .add("--batch", s.batch, "samples of a step, a multiple of 16")
      .parse(argc, argv);
  const double one_thread = step_of_one_thread(s);
  std::printf("{\"schedule\": \"one thread\", \"step_ms\": %.2f}\n", 1e3 * one_thread);
  measure_all<2>(s, one_thread);
  measure_all<4>(s, one_thread);
  measure_all<8>(s, one_thread);
  measure_all<16>(s, one_thread);
}
