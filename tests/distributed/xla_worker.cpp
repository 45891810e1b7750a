// needs: openssl protozero mock_pjrt
// One process of a training on two mocked devices per process, for test_xla_workers.py: xla_worker EPOCHS PAUSE. Prints the
// devices, the first sample that each step sends to the first of them, and a digest of the parameters. PAUSE: milliseconds before
// each step. ALONE: plugins do not find each other. EXECUTION: steps per execution, whose sums are read once. STEPS: begins that
// many steps and waits for none of them; then the first process ends with an error, and the others do nothing more.
// ERROR, of the first process: "thrown"; "announced", which fit does; "sending", in which the last step waits for its batch.
// THEN: what each process does after STEPS instead: "leaves", "agrees" or "evaluates".
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mock_pjrt.hpp>
#include <strata/resolvers/tf_config.hpp>
#include <strata/strata.hpp>
#include <strata/xla/multi_worker_xla.hpp>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "outcome.hpp"
using namespace strata;
using namespace strata::core;

namespace {
using net = sequential<input<3>, dense<2, softmax>>;

struct tell_steps {
  int pause;
  void on_batch_end(training_state& s) const {
    float first = -1;  // the first element of the input, which is the argument after kernel and bias
    if (const auto& sent = mock_pjrt::observed().last_arguments; sent.size() > 2)
      std::memcpy(&first, sent[2].data(), sizeof first);
    std::printf("step %ld first %g\n", s.step, double(first));
    std::fflush(stdout);
    std::this_thread::sleep_for(std::chrono::milliseconds(pause));
  }
};

/// Begins steps, and fails in the first process as ERROR specifies. Returns only if the error is announced, or THEN is set.
void begin_steps(auto& executor, const samples<float>& batch, int steps, bool is_first) {
  const char* const set = std::getenv("ERROR");
  const std::string error_is = set ? set : "thrown";
  for (int i = 1; i <= steps; ++i) {
    mock_pjrt::observed().uploads_hang = is_first && i == steps && error_is == "sending";
    executor.train_step(batch);
  }
  std::printf("begun %ld\n", executor.step());
  std::fflush(stdout);
  if (const char* const then = std::getenv("THEN")) {
    if (then == std::string_view("agrees")) executor.group().barrier();
    if (then == std::string_view("evaluates")) executor.evaluate_step(batch);
    return;
  }
  if (!is_first) std::this_thread::sleep_for(std::chrono::minutes(5));
  if (error_is != "announced") throw strata_error("the data have an error");
  executor.group().announce_error("the data have an error");
}
}  // namespace

int main(int argc, char** argv) try {
  if (argc < 3) throw strata_error("xla_worker EPOCHS PAUSE");
  const cluster members = tf_config()();
  multi_worker_xla_options options{.plugin = MOCK_PJRT, .start_timeout = std::chrono::seconds(20)};
  if (!std::getenv("ALONE") && members.size() > 1)
    options.options = {{"num_nodes", std::int64_t(members.size())}, {"node_id", std::int64_t(members.rank())}};
  options.control.heartbeat.interval = std::chrono::milliseconds(200);
  trainer model{net{}, sgd{}, sparse_categorical_crossentropy{}, accuracy{}, multi_worker_xla{tf_config(), options}, seed(5)};
  std::printf("replicas %d own %d\n", model.executor().replicas(), model.executor().client().devices());
  std::vector<float> x(3 * 30);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(i / 3);
  const std::vector<std::int32_t> y(30, 1);
  if (const char* const steps = std::getenv("STEPS"))
    return begin_steps(model.executor(), {x.data(), y.data(), 8}, std::atoi(steps), members.rank() == 0), 0;
  const char* const execution = std::getenv("EXECUTION");
  model.fit(x, y, batch_size(8), epochs(std::atoi(argv[1])), shuffle(false), tell_steps{std::atoi(argv[2])}, verbosity::off,
            steps_per_execution(execution ? std::atoi(execution) : 1));
  std::printf("predictions %zu\n", model.predict(x).values.size());
  std::printf("digest %s\n", test::digest_of(model.parameters()).c_str());
} catch (...) {
  return strata::test::report_error();
}
