// The most frequent complaints about other tools, a test each; docs/design.md has the whole list. Processes are threads here.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <strata/communicators/in_process.hpp>
#include <strata/data.hpp>
#include <strata/distribute/mirrored.hpp>
#include <strata/distribute/synchronous_among.hpp>
#include <strata/network/parameter_views.hpp>
#include <strata/resolvers/tf_config.hpp>
#include <strata/strata.hpp>
#include <strata/train/backup_and_restore.hpp>
#include <strata/train/weights_file.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "error_of.hpp"
#include "scratch_folder.hpp"

using namespace strata;
using namespace strata::core;
using namespace strata::test;
namespace hana = boost::hana;

namespace {

using net = sequential<input<6>, dense<9, tanh_activation>, batch_norm<>, dropout<0.2_r>, dense<3, softmax>>;
using plain = sequential<input<6>, dense<3, softmax>>;
constexpr int leaves = 6;

/// Classes that depend on the inputs; the data depend only on `count`.
auto some_data(int count) {
  std::vector<float> x(std::size_t(count) * 6);
  std::vector<int> y;
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(philox{3}.uniform(i)) - 0.5f;
  for (std::size_t i = 0; i < x.size(); i += 6) y.push_back(x[i] + x[i + 1] > 0.3f ? 2 : x[i + 2] > 0);
  return data::from_tensor_slices(data::array<float, shape{6}>(std::move(x)), std::move(y));
}

/// Runs f(member) in a thread for each member of a group; returns the error of each, or "".
std::vector<std::string> among(int processes, auto&& f, std::chrono::milliseconds timeout = std::chrono::seconds(30)) {
  std::vector<std::string> thrown(std::size_t(processes), "");
  std::vector<std::thread> threads;
  for (in_process& member : in_process::group(processes, timeout))
    threads.emplace_back([&thrown, &f, member] {
      try {
        f(member);
      } catch (const std::exception& e) {
        thrown[std::size_t(member.rank())] = e.what();
      }
    });
  for (std::thread& t : threads) t.join();
  return thrown;
}
const std::vector<std::string> no_errors(3, "");

struct outcome {
  std::vector<float> parameters{};
  std::vector<logs> past{};
  bool operator==(const outcome& o) const {
    return parameters.size() == o.parameters.size() &&
           std::memcmp(parameters.data(), o.parameters.data(), parameters.size() * sizeof(float)) == 0 &&
           std::ranges::equal(past, o.past, [](const logs& a, const logs& b) { return std::ranges::equal(a, b); });
  }
};

template <class Network>
auto make(const auto& strategy, int with = 7) {
  return trainer{Network{},
                 adam{.learning_rate = 0.01, .global_clipnorm = 0.5},
                 sparse_categorical_crossentropy{},
                 accuracy{},
                 strategy,
                 seed(std::uint64_t(with))};
}
auto result_of(const auto& model, const training_history& past) {
  return outcome{{model.parameters().begin(), model.parameters().end()}, past.all()};
}

/// 100 samples in batches of 32, 32, 32 and 4, which leaves some of the leaves without a sample.
outcome trained(const auto& strategy, int with = 7, int count = 100) {
  auto model = make<net>(strategy, with);
  const auto set = some_data(count);
  return result_of(
      model, model.fit(set | data::shuffle(100) | data::batch<32>, epochs(3), validation(set | data::batch<20>), verbose::off));
}
outcome on_one_device(int with = 7, int count = 100) {
  return trained(one_device{{.threads = 1, .leaves = leaves}}, with, count);
}
/// The outcome of each of `processes` replicas.
std::vector<outcome> on_replicas(int processes, int count = 100) {
  std::vector<outcome> got(std::size_t(processes), outcome{});
  const auto thrown = among(processes, [&](const in_process& m) {
    got[std::size_t(m.rank())] = trained(synchronous_among{m, {.threads = 1, .leaves = leaves}}, 7, count);
  });
  for (const std::string& why : thrown) CHECK(why == "");
  return got;
}

/// A communicator that counts the messages that are sent through it.
class counting {
  in_process members_;
  std::shared_ptr<long> sent_ = std::make_shared<long>(0);

 public:
  using memory = in_process::memory;
  explicit counting(in_process members) : members_(std::move(members)) {}
  int rank() const { return members_.rank(); }
  int size() const { return members_.size(); }
  static memory allocate(std::size_t bytes) { return in_process::allocate(bytes); }
  void send(memory& from, std::size_t offset, std::size_t bytes, int to) { ++*sent_, members_.send(from, offset, bytes, to); }
  void receive(memory& to, std::size_t offset, std::size_t bytes, int from) { members_.receive(to, offset, bytes, from); }
  auto begun() const { return members_.begun(); }
  void wait_received(const char* what, auto mark) { members_.wait_received(what, mark); }
  void wait(const char* what) { members_.wait(what); }
  long sent() const { return *sent_; }
};

}  // namespace

TEST_CASE("P1: replicas share their gradients: parameters and metrics are those of one device") {
  const outcome expected = on_one_device();
  CHECK(trained(mirrored{cpus(3), {.leaves = leaves}}) == expected);
  CHECK(trained(central_storage{cpus(2), {.leaves = leaves}}) == expected);
  for (const outcome& o : on_replicas(3)) CHECK(o == expected);
  CHECK_FALSE(on_one_device(7, 34) == expected);  // the result of a replica by itself
}

TEST_CASE("P3: a last batch with fewer samples than replicas, or with one") {
  for (const int count : {33, 34, 65}) {
    const outcome expected = on_one_device(7, count);
    for (const outcome& o : on_replicas(5, count)) CHECK(o == expected);
  }
}

TEST_CASE("P4: a replica that would end after epoch 1 while the others go on: all are told before the first step") {
  const auto thrown = among(3, [](const in_process& m) {
    auto model = make<net>(synchronous_among{m, {.threads = 1, .leaves = leaves}});
    model.fit(some_data(100) | data::batch<32>, epochs(m.rank() == 1 ? 1 : 3), verbose::off);
  });
  for (const std::string& why : thrown)
    CHECK(contains(why, "process 1 does not train as process 0 does: epochs 1 there and 3 in process 0"));
}

/// A callback that ends a training in the middle of an epoch.
struct leave_at_once {
  bool leaves;
  void on_batch_end(training_state&) {
    if (leaves) throw strata_error("enough");
  }
};

TEST_CASE("P5: an error says what was waited for, and for whom; there is a deadline by default") {
  CHECK(communication_options{}.timeout > std::chrono::seconds(0));
  CHECK(communication_options{}.timeout <= std::chrono::minutes(1));
  const auto thrown = among(
      2,
      [](const in_process& m) {
        auto model = make<plain>(synchronous_among{m, {.threads = 1, .leaves = leaves}});
        model.fit(some_data(100) | data::batch<32>, leave_at_once{m.rank() == 1}, verbose::off);
      },
      std::chrono::seconds(3));  // which the agreement on the start has, too
  CHECK(thrown[1] == "enough");
  CAPTURE(thrown[0]);
  CHECK(contains(thrown[0], "process 0 has waited 3000 ms for process 1"));
  CHECK(contains(thrown[0], "gradients"));
}

TEST_CASE("P6: the loss is the mean over all samples, whatever their share and the size of the batches") {
  const auto set = some_data(100);
  std::vector<double> losses(3);
  double expected = 0;
  CHECK(among(3, [&](const in_process& m) {
          trainer model{plain{}, sgd{.learning_rate = 0.0}, sparse_categorical_crossentropy{},
                        synchronous_among{m, {.threads = 1, .leaves = leaves}}};
          losses[std::size_t(m.rank())] = model.fit(set | data::batch<32>, verbose::off)["loss"].back();
          if (m.rank() != 0) return;
          const auto p = model.predict(set | data::batch<50>);
          for (std::size_t i = 0; i < 100; ++i)
            expected -= std::log(double(p.values[3 * i + std::size_t(set.rows().label({std::uint32_t(i)}))])) / 100;
        }) == no_errors);
  for (const double loss : losses) CHECK(loss == doctest::Approx(expected).epsilon(1e-6));
}

TEST_CASE("P7: gradients are clipped when they have been added up, not before") {
  // Gradients of -200 and 196, in two replicas: their mean, -2, is within the norm of 10, and neither of them is.
  using one_weight = sequential<input<1>, dense<1, no_bias>>;
  const auto set = data::from_tensor_slices(data::array<float, shape{1}>(std::vector<float>{1, 1}),
                                            data::array<float, shape{1}>(std::vector<float>{100, -98}));
  std::vector<float> weights(2);
  CHECK(among(2, [&](const in_process& m) {
          trainer model{one_weight{}, sgd{.learning_rate = 1.0, .global_clipnorm = 10.0}, mean_squared_error{},
                        synchronous_among{m, {.threads = 1, .leaves = 2}}};
          model.set_parameters(std::vector<float>(model.parameters().size()));
          model.fit(set | data::batch<2>, verbose::off);
          weights[std::size_t(m.rank())] = model.parameters()[0];
        }) == std::vector<std::string>{"", ""});
  for (const float w : weights) CHECK(w == doctest::Approx(2));
}

TEST_CASE("P8: fewer elements than workers is an error before the first step") {
  CHECK(error_of([] { some_data(2) | data::shard(3, 0); }) == "shard: 2 elements are too few for 3 shards");
}

TEST_CASE("P9: shards of a shuffled data set never overlap, and each epoch has an order of its own") {
  constexpr int count = 50, workers = 3;
  std::vector<float> x;
  for (int i = 0; i < count; ++i) x.push_back(float(i));
  std::vector<std::vector<float>> orders;
  std::vector<decltype(data::from_tensor_slices(x) | data::shuffle(count, data::shared_seed{4}) | data::shard(workers, 0) |
                       data::batch<8>)>
      shards;
  for (std::size_t w = 0; w < workers; ++w)
    shards.push_back(data::from_tensor_slices(x) | data::shuffle(count, data::shared_seed{4}) | data::shard(workers, w) |
                     data::batch<8>);
  for (int epoch = 0; epoch < 3; ++epoch) {
    std::vector<float> all;
    for (auto& shard : shards)
      for (const auto& batch : shard) all.insert(all.end(), batch.x(), batch.x() + batch.count);
    orders.push_back(all);
    std::ranges::sort(all);
    CHECK(all == x);
  }
  CHECK(orders[0] != orders[1]);
  CHECK(orders[1] != orders[2]);
}

TEST_CASE("P10: two that save to the same file at once, and one who reads: always one of the two, whole") {
  const scratch_folder folder("race");
  const auto file = folder / "weights.safetensors";
  const auto fill = [](auto& model, float value) { model.set_parameters(std::vector<float>(model.parameters().size(), value)); };
  auto first = make<net>(one_device{{.threads = 1}}), second = make<net>(one_device{{.threads = 1}}),
       reader = make<net>(one_device{{.threads = 1}});
  fill(first, 1), fill(second, 2);
  first.save_weights(file);
  std::atomic<bool> done = false;
  const auto saves = [&](auto& model) {
    while (!done) model.save_weights(file);
  };
  std::thread one([&] { saves(first); }), two([&] { saves(second); });
  int seen[3] = {}, torn = 0;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  for (int i = 0; (i < 200 || !seen[1] || !seen[2]) && std::chrono::steady_clock::now() < deadline; ++i) {
    reader.load_weights(file);
    const auto p = reader.parameters();
    torn += std::ranges::count(p, 1.f) > 0 && std::ranges::count(p, 2.f) > 0;
    ++seen[int(p[0])];
  }
  done = true;
  one.join(), two.join();
  CHECK(torn == 0);
  CHECK(seen[1] > 0);
  CHECK(seen[2] > 0);
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path), {}) == 1);  // nothing unfinished is left
}

namespace {
/// Stops when the loss is low enough. In the chief, also counts how often the loss was the best so far.
struct stop_early {
  double enough;
  bool saves;
  std::vector<double> seen{};
  int saved = 0;
  void on_epoch_end(training_state& s) {
    if (saves && (seen.empty() || s.values["val_loss"] < *std::ranges::min_element(seen))) ++saved;
    seen.push_back(s.values["val_loss"]);
    if (s.values["val_loss"] < enough) s.stop_training = true;
  }
};
}  // namespace

TEST_CASE("P11: early stopping and saving the best: all replicas see the same numbers and stop together, one saves") {
  std::vector<std::optional<stop_early>> seen(3);
  CHECK(among(3, [&](const in_process& m) {
          auto model = make<net>(synchronous_among{m, {.threads = 1, .leaves = leaves}});
          stop_early callback{0.7, model.is_chief()};
          const auto set = some_data(100);
          model.fit(set | data::shuffle(100) | data::batch<32>, epochs(100), validation(set | data::batch<20>), callback,
                    verbose::off);
          seen[std::size_t(m.rank())] = callback;
        }) == no_errors);
  CHECK(seen[0]->seen.size() > 1);
  CHECK(seen[0]->seen.size() < 100);
  CHECK(seen[0]->saved > 0);
  for (const int r : {1, 2}) {
    CHECK(seen[std::size_t(r)]->seen == seen[0]->seen);
    CHECK(seen[std::size_t(r)]->saved == 0);
  }
}

/// A callback in which one replica decides by itself, for example by its clock.
struct decide_alone {
  bool stops;
  double rate;
  int epochs = 0;
  void on_epoch_end(training_state& s) {
    ++epochs;
    s.new_learning_rate = rate;
    if (epochs == 2) s.stop_training = stops;
  }
};

TEST_CASE("P11: what one replica decides is decided for all; the learning rate is the chief's") {
  std::vector<int> epochs_of(3);
  std::vector<double> rate_of(3);
  CHECK(among(3, [&](const in_process& m) {
          auto model = make<net>(synchronous_among{m, {.threads = 1, .leaves = leaves}});
          decide_alone callback{m.rank() == 1, 0.25 + m.rank()};
          model.fit(some_data(100) | data::batch<32>, epochs(9), callback, verbose::off);
          epochs_of[std::size_t(m.rank())] = callback.epochs;
          rate_of[std::size_t(m.rank())] = model.learning_rate();
        }) == no_errors);
  CHECK(epochs_of == std::vector{2, 2, 2});
  CHECK(rate_of == std::vector{0.25, 0.25, 0.25});
}

TEST_CASE("P12: a training that is started again repeats no sample and loses no state of the optimizer") {
  struct crash {};
  struct crash_at {
    long step;
    void on_batch_end(training_state& s) {
      if (s.step == step) throw crash{};
    }
  };
  const outcome expected = on_one_device();
  const scratch_folder folder("resume");
  const auto attempt = [&](long step) {
    auto model = make<net>(one_device{{.threads = 1, .leaves = leaves}});
    const auto set = some_data(100);
    backup_and_restore backup{folder.path, {.save_every_batches = 1, .delete_checkpoint = false}};
    const training_history past = model.fit(set | data::shuffle(100) | data::batch<32>, epochs(3),
                                            validation(set | data::batch<20>), backup, crash_at{step}, verbose::off);
    return result_of(model, past);
  };
  for (const long step : {2, 6, 11}) CHECK_THROWS_AS(attempt(step), crash);
  CHECK(attempt(-1) == expected);
}

TEST_CASE("P13: a cluster is a value: no program startup to miss, two in one process, each mistake is one error") {
  const auto resolved = [](const std::string& text) {
    return tf_config{[=](const std::string& name) { return name == "TF_CONFIG" ? std::optional(text) : std::nullopt; }}();
  };
  auto model = make<net>(one_device{});  // a training has run before any cluster is resolved
  model.fit(some_data(10) | data::batch<5>, verbose::off);
  const cluster one = resolved(R"({"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 1}})");
  const cluster other = resolved(R"({"cluster": {"chief": ["c:1"], "worker": ["d:1"]}, "task": {"type": "chief", "index": 0}})");
  CHECK(one.rank() == 1);
  CHECK(other.is_chief());
  CHECK(to_string(*one.address(one.task())) == "b:1");
  for (const char* wrong :
       {R"({"cluster": {"worker": ["a:1"]}})", R"({"cluster": {"worker": "a:1"}, "task": {"type": "worker", "index": 0}})",
        R"({"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 1}})"}) {
    const std::string why = error_of([&] { resolved(wrong); });
    CAPTURE(why);
    CHECK(why.starts_with("TF_CONFIG: "));
    CHECK(std::ranges::count(why, '\n') == 0);
  }
}

TEST_CASE("P14: there is no scope: data sets and optimizers made before, trainings that take turns") {
  const auto set = some_data(100) | data::batch<32>;
  const adam optimizer{.learning_rate = 0.01, .global_clipnorm = 0.5};  // used by both
  const auto make_one = [&](const auto& strategy) {
    return trainer{net{}, optimizer, sparse_categorical_crossentropy{}, strategy, seed(7)};
  };
  auto first = make_one(one_device{{.threads = 1, .leaves = leaves}});
  auto second = make_one(mirrored{cpus(2), {.leaves = leaves}});
  auto batches = set;
  for (const samples<float>& batch : batches) first.train_step(batch), second.train_step(batch);
  auto alone = make_one(one_device{{.threads = 1, .leaves = leaves}});
  for (const samples<float>& batch : batches) alone.train_step(batch);
  CHECK(result_of(first, {}) == result_of(alone, {}));
  CHECK(result_of(second, {}) == result_of(alone, {}));
}

TEST_CASE("P15: a step of a small network costs the same number of messages, however many layers it has") {
  const auto messages_of = []<class Network>(std::type_identity<Network>) {
    std::atomic<long> most = 0;
    CHECK(among(3, [&](const in_process& m) {
            const counting members(m);
            auto model = make<Network>(synchronous_among{members, {.threads = 1, .leaves = leaves}});
            auto batches = some_data(64) | data::batch<32>;
            std::vector<long> counts;
            for (int epoch = 0; epoch < 2; ++epoch)
              for (const samples<float>& batch : batches) {
                const long before = members.sent();
                model.train_step(batch);
                counts.push_back(members.sent() - before);
              }
            CHECK(std::ranges::count(counts, counts[0]) == 4);
            for (long seen = most; seen < counts[0] && !most.compare_exchange_weak(seen, counts[0]);) {
            }
          }) == no_errors);
    return most.load();
  };
  const long shallow = messages_of(std::type_identity<plain>{});
  using small = dense<8, tanh_activation>;
  const long deep =
      messages_of(std::type_identity<sequential<input<6>, small, small, small, small, small, small, dense<3, softmax>>>{});
  CHECK(deep == shallow);
  CHECK(deep <= 2 * 2 * 2);  // to each of two others: its slices, and its own slice when that is complete, with their metric sums
}

TEST_CASE("P16: the same seed, the same bits: in every run, for any number of threads and replicas") {
  const outcome expected = on_one_device();
  CHECK(on_one_device() == expected);
  for (const int threads : {2, 3, 4}) CHECK(trained(one_device{{.threads = threads, .leaves = leaves}}) == expected);
  for (const int processes : {2, 4})
    for (const outcome& o : on_replicas(processes)) CHECK(o == expected);
  CHECK_FALSE(on_one_device(8) == expected);
}

TEST_CASE("P17: statistics of batch_norm are those of the global batch, in every replica") {
  using normalized = sequential<input<6>, batch_norm<>, dense<3, softmax>>;
  constexpr int count = 30;
  const auto set = some_data(count);
  std::vector<std::vector<float>> means(3), variances(3);
  std::vector<double> mean(6), square(6);
  auto whole = set | data::batch<count>;
  for (const samples<float>& batch : whole)
    for (std::size_t i = 0; i < count * 6; ++i)
      mean[i % 6] += double(batch.x()[i]) / count, square[i % 6] += double(batch.x()[i]) * double(batch.x()[i]) / count;
  CHECK(among(3, [&](const in_process& m) {
          auto model = make<normalized>(synchronous_among{m, {.threads = 1, .leaves = leaves}});
          model.fit(set | data::batch<count>, verbose::off);
          const auto parameters = parameters_of_layer<normalized, 1>(model.parameters());
          for (int c = 0; c < 6; ++c) {
            means[std::size_t(m.rank())].push_back(parameters[hana::size_c<2>](c));
            variances[std::size_t(m.rank())].push_back(parameters[hana::size_c<3>](c));
          }
        }) == no_errors);
  for (std::size_t r = 0; r < 3; ++r)
    for (std::size_t c = 0; c < 6; ++c) {  // from 0 and 1, with a momentum of 0.99
      CHECK(means[r][c] == doctest::Approx(0.01 * mean[c]).epsilon(1e-4));
      CHECK(variances[r][c] == doctest::Approx(0.99 + 0.01 * (square[c] - mean[c] * mean[c])).epsilon(1e-5));
    }
}

TEST_CASE("P18: no parameter is unused: a step changes all of them") {
  using branched =
      sequential<input<6>, dense<6, tanh_activation>, residual<dense<6, tanh_activation>, dense<6, tanh_activation>>,
                 concat<branch<dense<4, tanh_activation>>, branch<dense<5, tanh_activation>>>, layer_norm<>, dense<3, softmax>>;
  auto model = make<branched>(one_device{});
  const std::vector<float> before(model.parameters().begin(), model.parameters().end());
  model.fit(some_data(100) | data::batch<100>, verbose::off);
  constexpr const auto& layout = layout_of<branched::items>;
  CHECK(layout.count == 2 * 6 + 2);
  for (int s = 0; s < layout.count; ++s) {
    CAPTURE(s);
    int same = 0;
    for (int i = 0; i < layout.slots[s].what.extents.size(); ++i) {
      const std::size_t at = std::size_t(layout.slots[s].offset + i);
      same += before[at] == model.parameters()[at];
    }
    CHECK(same == 0);
  }
}
