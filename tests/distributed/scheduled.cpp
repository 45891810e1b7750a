// needs: grpc protozero
// One process of a cluster whose chief schedules tasks, for test_cluster_coordinator.py: scheduled SCENE
// In the chief SCENE is squares, failure, unknown, endless or train. TF_CONFIG says who is who; ps serve. A worker says when it
// begins its first task. START: for how many seconds a worker waits for the chief. HOLD: a file that a square waits for.
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <strata/data/views/shard.hpp>
#include <strata/distribute/parameter_server.hpp>
#include <strata/distribute/resolvers/tf_config.hpp>
#include <strata/distribute/tasks/cluster_coordinator.hpp>
#include <strata/distribute/tasks/run_tasks.hpp>
#include <strata/strata.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "outcome.hpp"
using namespace strata;
using namespace std::chrono_literals;

namespace {
using mlp = sequential<input<28, 28, 1>, flatten, dense<32, relu>, dense<10, softmax>>;

struct square {
  static constexpr auto name = "square";
  struct argument {
    int number = 0, milliseconds = 0;
  };
  struct result {
    int square = 0, by = 0;
  };
  int worker = 0;
  bool begun = false;
  const char* awaited = std::getenv("HOLD");
  result operator()(argument a) {
    if (!std::exchange(begun, true)) std::cout << "begun" << std::endl;
    while (awaited && !std::filesystem::exists(awaited)) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::this_thread::sleep_for(std::chrono::milliseconds(a.milliseconds));
    return {a.number * a.number, worker};
  }
};

struct fail_at {
  static constexpr auto name = "fail_at";
  using argument = int;
  using result = std::string;
  std::string operator()(int number) const {
    if (number == 3) throw error("three is too many");
    return std::string(std::size_t(number), 'x');
  }
};

struct not_registered {
  static constexpr auto name = "not_registered";
  using argument = int;
  using result = int;
  int operator()(int) const { return 0; }
};

/// Some steps of a training whose parameters are on servers.
template <class Model, class Data>
struct train {
  static constexpr auto name = "train";
  using argument = int;
  using result = double;
  Model* model = nullptr;
  const Data* samples = nullptr;
  double operator()(int part) const {
    return model
        ->fit(*samples | data::shard(4, std::size_t(part) % 4) | data::shuffle(150) | data::batch<25>, epochs(1),
              verbose::off)["loss"]
        .back();
  }
};

void schedule_squares(cluster_coordinator& coordinator, int count, int milliseconds) {
  std::vector<remote_value<square>> values;
  for (int i = 0; i < count; ++i) values.push_back(coordinator.schedule<square>({i, milliseconds}));
  std::cout << "under way" << std::endl;
  coordinator.join();
  bool right = coordinator.done();
  std::vector<int> by(10, 0);
  for (int i = 0; i < count; ++i) {
    right = right && values[std::size_t(i)].is_ready() && values[std::size_t(i)].fetch().square == i * i;
    ++by[std::size_t(values[std::size_t(i)].fetch().by)];
  }
  std::cout << (right ? "all right" : "wrong") << ", by";
  for (int b : by) std::cout << ' ' << b;
  std::cout << std::endl;
}

int run(const std::string& scene) {
  const cluster members = tf_config()();
  const auto digits = data::synthetic_digits(600, 3);
  parameter_server_options options{.compute = {.threads = 1, .leaves = 1}, .start_timeout = 10s};
  auto model = [&] {
    return trainer{mlp{}, adam{}, sparse_categorical_crossentropy{}, accuracy{}, parameter_server{tf_config(), options}, seed(5)};
  };
  using trains = train<decltype(model()), decltype(digits)>;

  if (scene == "train") {
    auto shared = model();
    if (shared.serve()) return 0;
    if (members.rank() > 0) {
      run_tasks(members, {.start_timeout = 10s}, trains{&shared, &digits});
      return 0;
    }
    cluster_coordinator coordinator(members);
    shared.executor().refresh();
    const double before = shared.evaluate(digits | data::batch<100>)["loss"];
    for (int i = 0; i < 40; ++i) coordinator.schedule<trains>(i);
    std::cout << "under way" << std::endl;
    coordinator.join();
    shared.executor().refresh();
    const double after = shared.evaluate(digits | data::batch<100>)["loss"];
    std::cout << (after < 0.5 * before ? "learned" : "has not learned") << ": " << before << " to " << after << std::endl;
    return 0;
  }
  if (members.rank() > 0) {
    const char* patience = std::getenv("START");
    run_tasks(members, {.start_timeout = std::chrono::seconds(patience ? std::atoi(patience) : 10)}, square{members.rank()},
              fail_at{});
    std::cout << "over" << std::endl;
    return 0;
  }
  cluster_coordinator coordinator(members, {.worker_timeout = 3s, .attempts = 3});
  if (scene == "squares") schedule_squares(coordinator, 120, 30);
  if (scene == "endless") schedule_squares(coordinator, 1, 1'000'000);
  if (scene == "failure") {
    std::vector<remote_value<fail_at>> values;
    for (int i = 0; i < 4; ++i) values.push_back(coordinator.schedule<fail_at>(i));
    try {
      coordinator.join();
    } catch (const error& e) {
      std::cout << "join: " << e.what() << std::endl;
    }
    try {
      values[3].fetch();
    } catch (const error& e) {
      std::cout << "fetch: " << e.what() << std::endl;
    }
    std::cout << values[2].fetch() << std::endl;
    schedule_squares(coordinator, 10, 1);
  }
  if (scene == "unknown") {
    coordinator.schedule<not_registered>(1);
    coordinator.join();
  }
  return 0;
}
}  // namespace

int main(int, char** argv) try { return run(argv[1]); } catch (...) {
  return test::report_error();
}
