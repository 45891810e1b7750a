// Processes are threads here, which communicate through in_process: every sum has the bits of one process.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <exception>
#include <functional>
#include <optional>
#include <strata/communicators/in_process.hpp>
#include <strata/data.hpp>
#include <strata/distribute/mirrored.hpp>
#include <strata/distribute/synchronous_among.hpp>
#include <strata/strata.hpp>
#include <string>
#include <thread>
#include <vector>

#include "error_of.hpp"
#include "repetitions.hpp"

using namespace strata;
using namespace strata::core;
using namespace strata::test;

namespace {
using mlp = sequential<input<28, 28, 1>, flatten, dense<32, relu>, dropout<0.2_r>, dense<10, softmax>>;
using normalized =
    sequential<input<28, 28, 1>, conv2d<6, 3, stride<2>>, batch_norm<>, activation<relu>, flatten, dense<10, softmax>>;

const data::digits& digits() {
  static const data::digits d = data::synthetic_digits(150, 3);
  return d;
}

struct outcome {
  std::vector<float> weights;
  std::vector<double> reported{};  // of the last epoch, then a confusion matrix

  bool operator==(const outcome& o) const {
    return weights.size() == o.weights.size() &&
           std::memcmp(weights.data(), o.weights.data(), weights.size() * sizeof(float)) == 0 && reported == o.reported;
  }
};

struct keep_matrix {
  std::vector<double> last{};
  void on_epoch_end(training_state& s) { last = s.values.array("val_confusion_matrix"); }
};

/// Trains two epochs with a short last batch, 150 = 2 x 64 + 22, and an optimizer that uses norms. `prepared`: the stages before
/// batch.
template <class Network, class Optimizer = adam>
outcome trained(const auto& strategy, const auto& prepared) {
  trainer model{Network{},
                Optimizer{.global_clipnorm = 0.5},
                sparse_categorical_crossentropy{},
                accuracy{},
                precision_score<class_id<3>>{},
                auc{},
                f1_score<macro_average>{},
                confusion_matrix<>{},
                strategy,
                seed(7)};
  keep_matrix matrix;
  const training_history past =
      model.fit(digits() | data::shuffle(150) | prepared | data::batch<64>, epochs(2),
                validation(digits() | prepared | data::batch<40> | data::prefetch()), verbose::off, matrix);
  const auto w = model.executor().parameters();
  outcome out{{w.begin(), w.end()}};
  for (const auto& [name, value] : past.all().back()) out.reported.push_back(value);
  CHECK(out.reported.size() == 10);
  CHECK(matrix.last.size() == 100);
  out.reported.insert(out.reported.end(), matrix.last.begin(), matrix.last.end());
  return out;
}
const auto as_they_are = data::take(150);
template <class Network, class Optimizer = adam>
outcome trained(const auto& strategy) {
  return trained<Network, Optimizer>(strategy, as_they_are);
}

template <class Network, class Optimizer = adam>
std::vector<outcome> among(int processes, compute_options options, const auto& prepared) {
  std::vector<outcome> outcomes(std::size_t(processes), outcome{});
  std::vector<std::string> failures(std::size_t(processes), "");
  std::vector<std::thread> threads;
  for (in_process& member : in_process::group(processes))
    threads.emplace_back([&, member] {
      const std::size_t rank(std::size_t(member.rank()));
      try {
        outcomes[rank] = trained<Network, Optimizer>(synchronous_among{member, options}, prepared);
      } catch (const std::exception& e) {
        failures[rank] = e.what();
      }
    });
  for (auto& t : threads) t.join();
  for (const auto& f : failures) CHECK(f == "");
  return outcomes;
}
template <class Network>
std::vector<outcome> among(int processes, compute_options options) {
  return among<Network>(processes, options, as_they_are);
}

template <class Network>
void check_all_alike() {
  for (const int leaves : {2, 8}) {
    const outcome expected = trained<Network>(one_device{{.threads = 1, .leaves = leaves}});
    CHECK(trained<Network>(mirrored{cpus(3), {.leaves = leaves}}) == expected);
    CHECK(trained<Network>(central_storage{cpus(2), {.leaves = leaves}}) == expected);
    for (const int processes : {1, 2, 3, 4, 5})
      for (const int threads : {1, 2}) {
        if (threads == 2 && processes > 2) continue;
        if (is_sanitized && (leaves == 2 || processes > 3)) continue;
        CAPTURE(leaves);
        CAPTURE(processes);
        CAPTURE(threads);
        for (const outcome& o : among<Network>(processes, {.threads = threads, .leaves = leaves})) CHECK(o == expected);
      }
  }
}
}  // namespace

TEST_CASE("any number of processes and threads: the parameters of one device, bit for bit") { check_all_alike<mlp>(); }

TEST_CASE("so do statistics of the whole batch") { check_all_alike<normalized>(); }

TEST_CASE("so do norms of whole parameters") {
  const outcome expected = trained<mlp, lamb>(one_device{{.threads = 1, .leaves = 8}});
  CHECK(trained<mlp, lamb>(mirrored{cpus(3), {.leaves = 8}}) == expected);
  for (const int processes : {2, 3})
    for (const outcome& o : among<mlp, lamb>(processes, {.threads = 1, .leaves = 8}, as_they_are)) CHECK(o == expected);
}

TEST_CASE("so do sums of squared gradients with an initial value, and steps that depend on their number") {
  const auto check = [&]<class Optimizer>(Optimizer) {
    const outcome expected = trained<mlp, Optimizer>(one_device{{.threads = 1, .leaves = 8}});
    for (const outcome& o : among<mlp, Optimizer>(3, {.threads = 1, .leaves = 8}, as_they_are)) CHECK(o == expected);
  };
  check(ftrl{});
  check(nadam{});
}

TEST_CASE("without a number of leaves each process gets one") {
  const outcome one = trained<mlp>(one_device{{.threads = 1, .leaves = 4}});
  for (const outcome& o : among<mlp>(4, {.threads = 1})) CHECK(o == one);
}

TEST_CASE("each sample is made by the process that computes it, and by no other") {
  std::atomic<int> made = 0;
  const auto counted = data::map_to<shape{28, 28, 1}>([&made](auto x, tensor<float, shape{28, 28, 1}> to) {
    ++made;
    for (int i = 0; i < 784; ++i) to.data[i] = x.data[i] / 2;
  });
  constexpr int two_epochs = 2 * (150 + 150);
  const outcome expected = trained<mlp>(one_device{{.threads = 1, .leaves = 8}}, counted);
  CHECK(made == two_epochs);
  for (const int processes : {2, 3, 5}) {
    CAPTURE(processes);
    made = 0;
    for (const outcome& o : among<mlp>(processes, {.threads = 1, .leaves = 8}, counted)) CHECK(o == expected);
    CHECK(made == two_epochs);
  }
}

TEST_CASE("where a sample may turn out to be damaged, all processes look at all of them") {
  std::atomic<int> left_out = 0;
  const auto undamaged = data::map_to<shape{28, 28, 1}>([&left_out](auto x, tensor<float, shape{28, 28, 1}> to) {
                           if (x.data[300] > 0.5f) ++left_out, throw strata_error("damaged");
                           for (int i = 0; i < 784; ++i) to.data[i] = x.data[i] / 2;
                         }) |
                         data::ignore_errors;
  const outcome expected = trained<mlp>(one_device{{.threads = 1, .leaves = 8}}, undamaged);
  REQUIRE(left_out > 0);
  for (const outcome& o : among<mlp>(3, {.threads = 1, .leaves = 8}, undamaged)) CHECK(o == expected);
}

TEST_CASE("all processes know where the time of each went: who makes its samples slowly, and who waits") {
  std::vector<time_split> times[2];
  std::vector<std::thread> threads;
  for (in_process& member : in_process::group(2))
    threads.emplace_back([&, member] {
      const int rank = member.rank();
      const auto slow_in_1 = data::map_to<shape{28, 28, 1}>([rank](auto x, tensor<float, shape{28, 28, 1}> to) {
        if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(2));
        for (int i = 0; i < 784; ++i) to.data[i] = x.data[i];
      });
      trainer model{mlp{}, adam{}, sparse_categorical_crossentropy{}, synchronous_among{member, {.threads = 1}}};
      model.evaluate(digits() | data::batch<50>);  // so that both begin together
      times[rank] = model.fit(digits() | slow_in_1 | data::batch<50>, verbose::off).times();
    });
  for (auto& t : threads) t.join();
  REQUIRE(times[0].size() == 2);
  CHECK(times[0] == times[1]);
  for (const time_split& t : times[0]) {
    CHECK(std::min({t.input, t.compute, t.communication, t.waiting}) >= 0);
    CHECK(t.input + t.compute + t.communication + t.waiting <= t.total * 1.001);
  }
  const double slept = 0.15;  // 75 samples
  CHECK(times[0][1].input >= slept);
  CHECK(times[0][0].waiting > times[0][1].waiting);

  trainer alone_one{mlp{}, adam{}, sparse_categorical_crossentropy{}};
  const training_history past = alone_one.fit(digits() | data::batch<50>, verbose::off);
  REQUIRE(past.times().size() == 1);
  CHECK(past.times()[0].compute > 0);
  CHECK(past.times()[0].waiting == 0);
}

namespace {
/// The errors of two processes that call fit in different ways.
template <class Fit>
std::vector<std::string> thrown_by_two(const Fit& fit) {
  std::vector<std::string> thrown(2, "nothing");
  std::vector<std::thread> threads;
  for (in_process& member : in_process::group(2, std::chrono::seconds(20)))
    threads.emplace_back([&, member] {
      trainer model{mlp{}, adam{}, sparse_categorical_crossentropy{}, synchronous_among{member, {.threads = 1, .leaves = 2}}};
      try {
        fit(model, member.rank());
      } catch (const strata_error& e) {
        thrown[std::size_t(member.rank())] = e.what();
      }
    });
  for (auto& t : threads) t.join();
  return thrown;
}
auto first(int count) { return digits() | data::take(std::size_t(count)); }
/// Images that differ only in their first element.
auto counted_from(int first) {
  std::vector<float> x(100 * 784);
  x[0] = float(first);
  return data::from_tensor_slices(data::array<float, shape{28, 28, 1}>(std::move(x)), std::vector<int>(100));
}
}  // namespace

TEST_CASE("processes that do not train alike are told so before the first step") {
  for (const std::string& why :
       thrown_by_two([](auto& model, int rank) { model.fit(first(rank == 0 ? 100 : 60) | data::batch<32>, verbose::off); }))
    CHECK(contains(why, "process 1 does not train as process 0 does: batches in a pass 2 there and 4 in process 0"));
  for (const std::string& why :
       thrown_by_two([](auto& model, int rank) { model.fit(digits() | data::batch<32>, epochs(2 + rank), verbose::off); }))
    CHECK(contains(why, "epochs 3 there and 2 in process 0"));
  for (const std::string& why : thrown_by_two([](auto& model, int rank) {
         model.fit(digits() | data::shuffle(150, {.seed = std::uint64_t(rank)}) | data::batch<32>, verbose::off);
       }))
    CHECK(contains(why, "other samples, another order or other frozen layers, here '"));
  for (const std::string& why :
       thrown_by_two([](auto& model, int rank) { model.fit(counted_from(rank) | data::batch<32>, verbose::off); }))
    CHECK(contains(why, "other samples, another order or other frozen layers, here 'from_tensor_slices(100 samples, checksum "));
}

TEST_CASE("processes with other learning rates or weights, or other validation data") {
  for (const std::string& why : thrown_by_two([](auto& model, int rank) {
         std::vector<float> weights(model.parameters().begin(), model.parameters().end());
         if (rank == 0) weights[1] += 1;
         model.set_parameters(weights);
         model.fit(digits() | data::batch<32>, verbose::off);
       }))
    CHECK(contains(why,
                   "process 1 does not train as process 0 does: other weights, which all processes have to load or set alike"));
  for (const std::string& why : thrown_by_two([](auto& model, int rank) {
         model.set_learning_rate(rank == 0 ? 0.1 : 0.25);
         model.fit(digits() | data::batch<32>, verbose::off);
       }))
    CHECK(contains(why, "process 1 does not train as process 0 does: learning_rate 0.25 there and 0.1 in process 0"));
  for (const std::string& why :
       thrown_by_two([](auto& model, int rank) { model.evaluate(first(rank == 0 ? 100 : 60) | data::batch<32>); }))
    CHECK(contains(why, "evaluate: process 1 has 2 batches, but process 0 has 4"));
  for (const std::string& why :
       thrown_by_two([](auto& model, int rank) { model.evaluate(counted_from(rank) | data::batch<32>); }))
    CHECK(contains(why, "evaluate: process 1 has other samples than process 0, or another order, here 'from_tensor_slices(100"));
}

TEST_CASE("processes of builds with other arithmetic") {
  const detail::plan_of_fit one{.arithmetic = 1}, other{.arithmetic = 2};
  CHECK(error_of([&] { detail::refuse_other_plan(one, other, 1, ""); }) ==
        "fit: process 1 does not train as process 0 does: a build of strata that computes differently, here '" +
            detail::text_of_arithmetic() + "'");
}

TEST_CASE("who predicts while fit is under way gets all rows, from the source that fit reads, too") {
  struct predict_all {
    std::function<std::vector<float>()> predict;
    std::vector<float> seen{};
    void on_epoch_end(training_state&) { seen = predict(); }
  };
  const auto predicted = [](const auto& strategy) {
    trainer model{mlp{}, adam{}, sparse_categorical_crossentropy{}, strategy, seed(3)};
    auto source = digits() | data::batch<64>;
    predict_all callback{[&] { return model.predict(source).values; }};
    model.fit(source, callback, verbose::off);
    return callback.seen;
  };
  const std::vector<float> expected = predicted(one_device{{.threads = 1, .leaves = 4}});
  REQUIRE(expected.size() == 1500);
  std::vector<float> seen[2];
  std::vector<std::thread> threads;
  for (in_process& member : in_process::group(2))
    threads.emplace_back(
        [&, member] { seen[member.rank()] = predicted(synchronous_among{member, {.threads = 1, .leaves = 4}}); });
  for (auto& t : threads) t.join();
  CHECK(seen[0] == expected);
  CHECK(seen[1] == expected);
}

TEST_CASE("batches of different sizes are noticed where no process could know before") {
  const auto same_number = [](auto& model, int rank) {
    const auto zeros = [rank] {
      return [left = rank == 0 ? 64 : 60]() mutable {
        return left-- > 0 ? std::optional(std::pair(std::array<float, 784>{}, 1)) : std::nullopt;
      };
    };
    const auto as_image =
        data::map_to<shape{28, 28, 1}>([](const auto& x, tensor<float, shape{28, 28, 1}> to) { std::ranges::copy(x, to.data); });
    model.fit(data::from_generator(zeros) | as_image | data::batch<32>, verbose::off);
  };
  for (const std::string& why : thrown_by_two(same_number))
    CHECK(contains(why, "the processes do not read the same batches: one of "));
}

TEST_CASE("mirrored needs a device") { CHECK_THROWS_WITH_AS(cpus(0), "cpus(0): at least one device is needed", strata_error); }

TEST_CASE("in_process: a receiver that comes after the sender has given up and ended gets what was sent") {
  std::vector<in_process> members = in_process::group(2, std::chrono::milliseconds(10));
  const auto send = [&] {
    in_process::memory from = in_process::allocate(64);
    from.data()[5] = std::byte(7);
    members[0].send(from, 0, 64, 1);
    members[0].wait("a message that is not received");
  };
  CHECK(error_of<communication_error>(send) == "a message that is not received: process 0 has waited 10 ms for process 1");
  in_process::memory to = in_process::allocate(64);
  members[1].receive(to, 0, 64, 0);
  members[1].wait("a late message");
  CHECK(to.data()[5] == std::byte(7));
}
