// A network and its weights, for programs that only predict.
#include <doctest/doctest.h>

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <span>
#include <strata/strata.hpp>
#include <strata/train/predictor.hpp>
#include <strata/train/weights_file.hpp>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "error_of.hpp"
using namespace strata;
using namespace strata::core;
using test::error_of;

namespace {
struct net
    : sequential<input<28, 28, 1>, conv2d<4, 3, relu>, batch_norm<>, max_pool2d<2>, flatten, dropout<0.5_r>, dense<10, softmax>> {
};

// A predictor has no code that only trains, even if training and inference share a plan.
struct with_one_plan : sequential<input<4>, dense<3, relu>, dense<2, softmax>> {};
template <class Network, class Optimizer, purpose Why>
constexpr const auto& code =
    code_table<program<Network, mean_squared_error, Optimizer, type_list<>, precision::f32>, default_backend, Why>;
static_assert(code<with_one_plan, sgd, purpose::training>[0].backward != nullptr);
static_assert(code<with_one_plan, detail::no_training, purpose::training>[0].backward == nullptr);
static_assert(code<net, sgd, purpose::inference>[0].backward == nullptr);

TEST_CASE("a predictor has the kernels of inference") {
  for (const auto& kernel : code<with_one_plan, detail::no_training, purpose::training>) CHECK(bool(kernel.infer));
}

/// Some trained weights, images, and a trainer's predictions for these.
struct trained {
  std::vector<float> weights, images, expected;
  trained() {
    const auto digits = data::synthetic_digits(100, 3);
    trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
    model.fit(digits | data::batch<20>, verbosity::off);
    const auto kept = model.parameters();
    weights.assign(kept.begin(), kept.end());
    for (auto&& batch : digits | data::batch<100>) images.assign(batch.x(), batch.x() + 100 * 784);
    expected = model.predict(digits | data::batch<32>).values;
  }
};
const trained& known() {
  static const trained t;
  return t;
}

/// A backend that is the CPU, except that its engines may run out of memory.
struct brittle {
  [[maybe_unused]] static constexpr auto name = cpu::name;
  using whole = cpu;
  using device = device_of<cpu>;
  inline static bool fails = false;
  inline static int made = 0, largest = 0;
};
template <class Program>
struct brittle_engine : cpu_engine<Program, brittle> {
  brittle_engine(compute_options how, leaf_policy policy, int slots) : cpu_engine<Program, brittle>(how, policy, slots) {
    if (brittle::fails) throw strata_error("no memory");
    ++brittle::made;
  }
  int prepare(int samples, purpose why, int processes) {
    if (samples > 2000) throw strata_error("no memory");
    brittle::largest = std::max(brittle::largest, samples);
    return cpu_engine<Program, brittle>::prepare(samples, why, processes);
  }
};
}  // namespace

template <class Operation, class Precision, shape... In>
  requires(!std::is_void_v<typename find_kernel<cpu, Operation, Precision, In...>::type>)
struct strata::core::kernel<brittle, Operation, Precision, In...> : find_kernel<cpu, Operation, Precision, In...>::type {};
template <class Program>
struct strata::core::engine_for<Program, brittle> {
  using type = brittle_engine<Program>;
};

TEST_CASE("a predictor has the bits of the trainer, for one sample and for many") {
  const predictor model{net{}, known().weights};
  CHECK(model.predict(known().images).values == known().expected);
  std::vector<float> one(10);
  for (std::size_t i = 0; i < 3; ++i) {
    model.predict(std::span(known().images).subspan(784 * i, 784), one);
    CHECK(std::ranges::equal(one, std::span(known().expected).subspan(10 * i, 10)));
  }
  const predictor in_threads{net{}, known().weights, precision::f32{}, {.threads = 3}};
  CHECK(in_threads.predict(known().images).values == known().expected);
  CHECK(model.predict(std::span<const float>()).size() == 0);
}

TEST_CASE("many threads share a predictor and its copies") {
  const predictor model{net{}, known().weights};
  const predictor copy = model;
  std::vector<std::vector<float>> found(6);
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < found.size(); ++t)
      threads.emplace_back([&, t] {
        for (int repeat = 0; repeat < 5; ++repeat) found[t] = (t % 2 ? copy : model).predict(known().images).values;
      });
  }
  for (const auto& each : found) CHECK(each == known().expected);
}

TEST_CASE("weights come from a file, and other sizes are refused") {
  const auto path = std::filesystem::temp_directory_path() / ("predictor-" + std::to_string(::getpid()) + ".safetensors");
  save_weights<net, float>(path, known().weights);
  CHECK(predictor{net{}, path}.predict(known().images).values == known().expected);
  CHECK(predictor{net{}, path.string()}.predict(known().images).values == known().expected);
  struct wider : sequential<input<28, 28, 1>, flatten, dense<11, softmax>> {};
  CHECK(error_of([&] { predictor{wider{}, path}; }).find("does not fit the network") != std::string::npos);
  std::filesystem::remove(path);
  CHECK(error_of([&] { predictor{net{}, path}; }).find(path.string()) != std::string::npos);

  CHECK(error_of([] { predictor{net{}, std::vector<float>(5)}; }).starts_with("predictor: 5 weights, but the network has "));
  std::vector<float> out(10);
  CHECK(error_of([&] { predictor{net{}, known().weights}.predict(std::vector<float>(783), out); }) ==
        "predict: 783 inputs and room for 10 outputs, but a sample has 784 and 10");
}

TEST_CASE("in double, too") {
  struct small : sequential<input<3>, dense<2, tanh_activation>> {};
  trainer model{small{}, sgd{}, mean_squared_error{}, precision::f64{}, seed(4)};
  const predictor copy{small{}, model.parameters(), precision::f64{}};
  const std::vector<double> x{0.1, -0.2, 0.3, 4, 5, 6};
  std::vector<double> expected(4);
  model.predict(x, expected);
  CHECK(copy.predict(x).values == expected);
}

TEST_CASE("weights are replaced while threads predict: a call has the old ones or the new ones") {
  struct small : sequential<input<40>, dense<64, relu>, dense<3>> {};
  const std::vector<float> x(40, 0.5f);
  std::vector<std::vector<float>> weights, expected;
  for (const std::uint64_t start : {1u, 2u, 3u}) {
    trainer model{small{}, sgd{}, mean_squared_error{}, seed(start)};
    weights.emplace_back(model.parameters().begin(), model.parameters().end());
    expected.push_back(model.predict(x).values);
  }
  predictor model{small{}, weights[0]};
  const predictor copy = model;
  std::atomic<bool> ends = false;
  std::atomic<long> wrong = 0, calls = 0;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 3; ++t)
      threads.emplace_back([&] {
        std::vector<float> out(3);
        while (!ends) {
          copy.predict(x, out);
          wrong += std::ranges::find(expected, out) == expected.end();
          ++calls;
        }
      });
    for (std::size_t k = 1; k <= 200 || calls < 1000; ++k) {
      model.set_parameters(weights[k % 3]);
      CHECK(copy.predict(x).values == expected[k % 3]);
    }
    ends = true;
  }
  CHECK(wrong == 0);
  CHECK(error_of([&] { model.set_parameters(std::vector<float>(5)); }).starts_with("set_parameters: 5 weights, but the network"));
}

TEST_CASE("what prepare makes room for: as many samples as are predicted at once, and engines of calls that had memory") {
  struct small : sequential<input<4>, dense<2>> {};
  const std::vector<float> weights(std::size_t(layout_of<small::items>.size)), x(4);
  predictor<small, precision::f32, brittle> model{small{}, weights};
  CHECK(error_of([&] { model.prepare(0); }) == "prepare: 0 samples and 1 calls, but both numbers are at least 1");
  CHECK(error_of([&] { model.prepare(-1); }) == "prepare: -1 samples and 1 calls, but both numbers are at least 1");
  CHECK(error_of([&] { model.prepare(1, 0); }) == "prepare: 1 samples and 0 calls, but both numbers are at least 1");
  brittle::fails = true;
  for (int k = 0; k < 5; ++k) CHECK(error_of([&] { (void)model.predict(x); }) == "no memory");
  brittle::fails = false;
  brittle::made = 0;
  model.set_parameters(weights);
  CHECK(brittle::made == 1);
  (void)model.predict(x);
  CHECK(brittle::made == 1);
  model.prepare(5000);
  model.set_parameters(weights);
  CHECK(brittle::largest == 1024);
  CHECK(brittle::made == 2);
}
