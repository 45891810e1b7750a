// needs: openssl protozero
// One process of a training for test_stages.py: stages STRATEGY [FOLDER]. Prints a digest of the parameters and the results.
// CRASH: the step at which a callback throws. PAUSE: milliseconds to sleep after each step, which is printed. ELASTIC: the
// least number of workers of an elastic training. EPOCHS: 3 by default. HEARTBEAT: its interval, TIMEOUT: of a wait, both in
// milliseconds. START: how many seconds a worker may be missing at the start.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <strata/distribute/multi_worker_mesh.hpp>
#include <strata/distribute/pipeline.hpp>
#include <strata/resolvers/slurm.hpp>
#include <strata/resolvers/tf_config.hpp>
#include <strata/strata.hpp>
#include <strata/train/backup_and_restore.hpp>
#include <string>
#include <thread>

#include "outcome.hpp"
using namespace strata;

namespace {
using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dropout<0.2_r>, residual<dense<64, relu>>, dense<10, softmax>>;
using cut = balanced<2>;
using all_columns = layout_map<rule<"dense*", by_columns>>;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

int number(const char* name, int otherwise) {
  const std::string value = environment(name);
  return value.empty() ? otherwise : std::atoi(value.c_str());
}

cluster members() { return environment("SLURM_JOB_ID").empty() ? tf_config()() : slurm()(); }

struct crash_or_pause {
  long crash = std::atol(environment("CRASH").c_str());
  int pause = std::atoi(environment("PAUSE").c_str());

  void on_train_begin(training_state& s) {
    if (pause > 0) say("under way at step ", s.step);
  }
  void on_batch_end(training_state& s) {
    if (s.step == crash) throw strata_error("the callback has had enough");
    if (pause == 0) return;
    say("step ", s.step);
    std::this_thread::sleep_for(std::chrono::milliseconds(pause));
  }
  static void say(const char* what, long step) {
    const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
    std::printf("%s%ld at %.6f\n", what, step, now.count());
    std::fflush(stdout);
  }
};

void train(const auto& strategy, const std::string& folder) {
  const auto digits = data::synthetic_digits(300, 3);
  trainer model{net{}, adam{.global_clipnorm = 1}, sparse_categorical_crossentropy{}, accuracy{}, strategy, seed(5)};
  const auto fit = [&](auto&&... options) {
    return model.fit(digits | data::shuffle(300) | data::batch<64>, epochs(number("EPOCHS", 3)),
                     validation(digits | data::batch<50>), verbose::off, crash_or_pause{}, options...);
  };
  const training_history past = folder.empty() ? fit() : fit(backup_and_restore{folder, {.save_every_batches = 2}});
  std::printf("digest %s loss %a accuracy %a\n", test::digest_of(model.parameters()).c_str(), past["loss"].back(),
              past["val_accuracy"].back());
}
}  // namespace

int main(int argc, char** argv) try {
  std::string strategy = argc > 1 ? argv[1] : "";
  const std::string folder = argc > 2 ? argv[2] : "";
  const compute_options compute{.threads = 1, .leaves = 4};
  multi_worker_options options{.compute = compute, .start_timeout = std::chrono::seconds(number("START", 10))};
  options.communication.timeout = std::chrono::milliseconds(number("TIMEOUT", 10'000));
  options.control.heartbeat.interval = std::chrono::milliseconds(number("HEARTBEAT", 2000));
  options.elastic.least_workers = number("ELASTIC", 0);
  const auto is_through = [&](const std::string& engine) {
    if (!strategy.ends_with(engine)) return false;
    strategy.resize(strategy.size() - engine.size());
    return true;
  };
  if (is_through("_tcp")) options.communication.implementation = communication_implementation::tcp;
  if (strategy == "one_device") train(one_device{compute}, folder);
  if (strategy == "threads") train(pipeline<cut>{compute}, folder);
  if (strategy == "workers") train(multi_worker_pipeline<cut>{&members, options}, folder);
  if (strategy == "tensor_workers")
    train(multi_worker_tensor_parallel<2, all_columns>{.resolver = &members, .options = options}, folder);
  if (strategy == "pipelines_workers")
    train(multi_worker_mesh<data_parallel<2>, pipeline<cut, micro_batches<4>>>{&members, options}, folder);
  if (strategy == "mesh_workers")
    train(multi_worker_mesh<data_parallel<2>, tensor_parallel<2, all_columns>>{&members, options}, folder);
  if (strategy == "cube_workers")
    train(
        multi_worker_mesh<data_parallel<2>, pipeline<cut, micro_batches<2>>, tensor_parallel<2, all_columns>>{&members, options},
        folder);
} catch (...) {
  return test::report_error();
}
