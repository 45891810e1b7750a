// Processes are threads here, which talk through in_process: every sum has the bits of one process.
#include <doctest/doctest.h>

#include <atomic>
#include <cstring>
#include <exception>
#include <strata/data.hpp>
#include <strata/distribute/in_process.hpp>
#include <strata/distribute/mirrored.hpp>
#include <strata/distribute/synchronous_among.hpp>
#include <strata/strata.hpp>
#include <string>
#include <thread>
#include <vector>
using namespace strata;

namespace {
using mlp = sequential<input<28, 28, 1>, flatten, dense<32, relu>, dropout<0.2_r>, dense<10, softmax>>;
using normalized = sequential<input<28, 28, 1>, conv2d<6, 3, stride<2>>, batch_norm<>, activation<relu>, flatten, dense<10, softmax>>;

const data::digits& digits() {
  static const data::digits d = data::synthetic_digits(150, 3);
  return d;
}

struct outcome {
  std::vector<float> weights;
  double loss = 0, val_accuracy = 0;

  bool operator==(const outcome& o) const {
    return weights.size() == o.weights.size() && std::memcmp(weights.data(), o.weights.data(), weights.size() * sizeof(float)) == 0 &&
           loss == o.loss && val_accuracy == o.val_accuracy;
  }
};

/// Two epochs with a short last batch, 150 = 2 x 64 + 22, and an optimizer that looks at norms. `prepared` are stages before batch.
template <class Network>
outcome trained(const auto& strategy, const auto& prepared) {
  trainer model{Network{}, adam{.global_clipnorm = 0.5}, sparse_categorical_crossentropy{}, accuracy{}, strategy, seed(7)};
  const history past = model.fit(digits() | data::shuffle(150) | prepared | data::batch<64>, epochs(2),
                                 validation(digits() | prepared | data::batch<40> | data::prefetch()), verbose::off);
  const auto w = model.executor().parameters();
  return {{w.begin(), w.end()}, past["loss"].back(), past["val_accuracy"].back()};
}
const auto as_they_are = data::take(150);
template <class Network>
outcome trained(const auto& strategy) {
  return trained<Network>(strategy, as_they_are);
}

template <class Network>
std::vector<outcome> among(int processes, compute_options options, const auto& prepared) {
  std::vector<outcome> outcomes(std::size_t(processes), outcome{});
  std::vector<std::string> failures(std::size_t(processes), "");
  std::vector<std::thread> threads;
  for (in_process& member : in_process::group(processes))
    threads.emplace_back([&, member] {
      const std::size_t rank(std::size_t(member.rank()));
      try {
        outcomes[rank] = trained<Network>(synchronous_among{member, options}, prepared);
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
    if (x.data[300] > 0.5f) ++left_out, throw error("damaged");
    for (int i = 0; i < 784; ++i) to.data[i] = x.data[i] / 2;
  }) | data::ignore_errors;
  const outcome expected = trained<mlp>(one_device{{.threads = 1, .leaves = 8}}, undamaged);
  REQUIRE(left_out > 0);
  for (const outcome& o : among<mlp>(3, {.threads = 1, .leaves = 8}, undamaged)) CHECK(o == expected);
}

TEST_CASE("mirrored needs a device") { CHECK_THROWS_WITH_AS(cpus(0), "cpus(0): at least one device is needed", error); }
