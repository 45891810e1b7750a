// Pipelines and placement over processes, which are threads here: the bits of one device.
#include <doctest/doctest.h>

#include <cstring>
#include <exception>
#include <sstream>
#include <strata/callbacks/profiler.hpp>
#include <strata/communicators/in_process.hpp>
#include <strata/distribute/among.hpp>
#include <strata/strata.hpp>
#include <string>
#include <thread>
#include <vector>

#include "error_of.hpp"

using namespace strata;
using namespace strata::test;

namespace {
using net = sequential<input<28, 28, 1>, flatten, dense<32, relu, kernel_regularizer<l2<0.001_r>>>, dropout<0.2_r>,
                       residual<dense<32, relu>>, dense<16, sigmoid>, dense<10, softmax>>;
template <int Index, class... Items>
using here = on_device<Index, Items...>;
using branches = sequential<input<28, 28, 1>, flatten, dense<24, relu>,
                            add<here<1, dense<16, relu>>, here<0, frozen<dense<16, relu>>>>, dense<10, softmax>>;
using plain_branches =
    sequential<input<28, 28, 1>, flatten, dense<24, relu>, add<dense<16, relu>, frozen<dense<16, relu>>>, dense<10, softmax>>;

const data::digits& digits() {
  static const data::digits d = data::synthetic_digits(100, 3);
  return d;
}

struct outcome {
  std::vector<float> numbers;  // weights, predictions
  std::vector<double> reported{};
  bool operator==(const outcome& o) const {
    return numbers.size() == o.numbers.size() && reported == o.reported &&
           std::memcmp(numbers.data(), o.numbers.data(), numbers.size() * sizeof(float)) == 0;
  }
};

template <class Network, class Optimizer>
outcome trained(const auto& strategy, Optimizer optimizer) {
  trainer model{Network{}, optimizer, sparse_categorical_crossentropy{}, accuracy{}, strategy, seed(7)};
  const training_history past = model.fit(digits() | data::shuffle(100) | data::batch<32>, epochs(2),
                                          validation(digits() | data::batch<24>), verbosity::off);
  model.set_trainable("dense_1", false);
  model.fit(digits() | data::batch<24>, epochs(1), verbosity::off);
  outcome out{{model.parameters().begin(), model.parameters().end()}};
  const auto predicted = model.predict(digits() | data::batch<20>).values;
  out.numbers.insert(out.numbers.end(), predicted.begin(), predicted.end());
  for (const auto& [name, value] : past.all().back()) out.reported.push_back(value);
  return out;
}

/// The text that f(member) returns in each process, which is a thread here.
template <class F>
std::vector<std::string> in_processes(int count, F&& f) {
  std::vector<std::string> failures(std::size_t(count), "");
  std::vector<std::thread> processes;
  for (in_process& member : in_process::group(count))
    processes.emplace_back([&, member] {
      try {
        f(member);
      } catch (const std::exception& e) {
        failures[std::size_t(member.rank())] = e.what();
      }
    });
  for (std::thread& each : processes) each.join();
  return failures;
}

template <class Network, class Strategy, class Plain, class Optimizer>
void check(int processes, Optimizer optimizer, compute_options options) {
  const outcome expected = trained<Plain>(one_device{{.threads = 1, .leaves = options.leaves}}, optimizer);
  std::vector<outcome> all(std::size_t(processes), outcome{});
  const auto failures = in_processes(processes, [&](const in_process& member) {
    all[std::size_t(member.rank())] = trained<Network>(Strategy{member, options}, optimizer);
  });
  for (const std::string& each : failures) CHECK(each == "");
  for (const outcome& each : all) CHECK(each == expected);
}
}  // namespace

TEST_CASE("processes that divide the layers: the bits of one device") {
  const adam clipped{.global_clipnorm = 0.5};
  check<net, pipeline_among<in_process, balanced<3>, micro_batches<4>>, net>(3, clipped, {.threads = 1, .leaves = 0});
  check<net, pipeline_among<in_process, balanced<2>, micro_batches<8>, gpipe>, net>(2, lamb{}, {.threads = 2, .leaves = 16});
  check<net, pipeline_among<in_process, balanced<4>, micro_batches<4>, interleaved<2>>, net>(2, adam{}, {.threads = 1});
  check<branches, placed_among<in_process, 2>, plain_branches>(2, adafactor{}, {.threads = 2});
}

TEST_CASE("a mesh of pipelines, in processes and in threads: the bits of one device") {
  using halves = pipeline<balanced<2>, micro_batches<4>>;
  using folded = pipeline<balanced<4>, micro_batches<2>, interleaved<2>>;
  const adam clipped{.global_clipnorm = 0.5};
  check<net, device_mesh_among<in_process, data_parallel<2>, halves>, net>(4, clipped, {.threads = 1, .leaves = 4});
  check<net, device_mesh_among<in_process, data_parallel<2>, folded>, net>(4, lamb{}, {.threads = 1, .leaves = 6});
  const outcome expected = trained<net>(one_device{{.threads = 1, .leaves = 4}}, clipped);
  CHECK(trained<net>(device_mesh<data_parallel<2>, halves>{{.leaves = 4}}, clipped) == expected);
  const trainer model{net{},  clipped, sparse_categorical_crossentropy{}, accuracy{}, device_mesh<data_parallel<2>, halves>{},
                      seed(7)};
  std::ostringstream plan;
  print_plan(model, plan);
  CHECK(plan.str().find("\n2 groups of 2 places, one_forward_one_backward of 4 micro-batches, ") != std::string::npos);
}

TEST_CASE("processes that disagree are told before the first step") {
  const auto make = [](auto&& strategy) { trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, strategy}; };
  auto failures = in_processes(3, [&](const in_process& member) { make(pipeline_among<in_process, balanced<2>>{member}); });
  for (const std::string& each : failures) CHECK(each == "the network is cut for 2 processes, but there are 3");
  failures = in_processes(2, [&](const in_process& member) {
    member.rank() == 0 ? make(pipeline_among<in_process, stages<3, 3>>{member})
                       : make(pipeline_among<in_process, stages<2, 4>>{member});
  });
  CHECK(failures[1].starts_with(
      "the processes do not have the same stages of the kernels: process 1 differs from process 0; here: "));
  failures = in_processes(2, [&](const in_process& member) {
    member.rank() == 0 ? make(pipeline_among<in_process, balanced<2>>{member})
                       : make(pipeline_among<in_process, balanced<2>, micro_batches<8>, gpipe>{member});
  });
  CHECK(failures[0] == "the processes do not have the same timetable: process 1 differs from process 0");
  failures = in_processes(2, [&](const in_process& member) {
    make(pipeline_among<in_process, balanced<2>>{member, {.micro_batch = 3 * member.rank()}});
  });
  CHECK(failures[1] == "the processes do not have the same micro_batch: process 1 differs from process 0; here: 3");
  failures = in_processes(2, [&](const in_process& member) {
    member.rank() == 0 ? make(device_mesh_among<in_process, data_parallel<2>, pipeline<balanced<2>>>{member})
                       : make(pipeline_among<in_process, balanced<2>>{member});
  });
  CHECK(failures[1] ==
        "the processes do not have the same number of groups that divide batches: process 1 differs from process 0; here: 1");
  failures = in_processes(
      3, [&](const in_process& member) { make(device_mesh_among<in_process, data_parallel<2>, pipeline<balanced<2>>>{member}); });
  for (const std::string& each : failures)
    CHECK(each == "the network is cut for 2 processes in each of 2 groups, which are 4, but there are 3");
}
