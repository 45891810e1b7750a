// Layers divided among ranks: by columns the bits of one device, by rows bits that do not depend on threads or processes.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <sstream>
#include <strata/callbacks/check_numerics.hpp>
#include <strata/distribute/among.hpp>
#include <strata/distribute/device_mesh.hpp>
#include <strata/strata.hpp>
#include <strata/train/backup_and_restore.hpp>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "error_of.hpp"
#include "gradient_check.hpp"
#include "larger.hpp"
#include "scratch_folder.hpp"

using namespace strata;
using namespace strata::core;
using namespace strata::test;

namespace {
/// 30 inputs are no multiple of 4; a skip connection, so that gradients are added to others; dropout; a layer that is not
/// divided.
using dense_layers =
    sequential<input<40>, dense<32, relu>, dense<30, sigmoid>, residual<dense<16, relu, no_bias>, dropout<0.3_r>, dense<30>>,
               layer_norm<>, frozen<dense<8>>, dense<5, softmax>>;
using dense_columns = layout_map<rule<"dense", by_columns>, rule<"dense_2", by_columns>, rule_for<dense<8>, by_columns>>;
/// Winograd's algorithm, the algorithms for few channels, and strides, with sizes for which a rank would choose other algorithms
/// or tiles if it considered only its own filters and channels; statistics of the whole batch.
using images =
    sequential<input<8, 8, 3>, conv2d<16, 3, same_padding, relu>, batch_norm<>, conv2d<32, 3, same_padding>, max_pool2d<2>,
               residual<conv2d<32, 3, same_padding, relu>>, conv2d<4, 3, stride<2>, relu>, flatten, dense<5, softmax>>;
using all_columns = layout_map<rule<"conv2d*", by_columns>>;
/// Gradients of kernels of large images are added up in parts of them. A rank takes the same parts.
constexpr conv_settings settings_of(int filters) { return {.filters = filters, .kernel_height = 3, .kernel_width = 3}; }
constexpr shape large{36, 36, 128};
template <class Kernel>
inline constexpr int tiles_of_part = Kernel::weights_by_tiles.part();
using whole_kernel = find_kernel<cpu, convolution<settings_of(128)>, precision::f32, large>::type;
using smaller_kernel = find_kernel<cpu, convolution<settings_of(64)>, precision::f32, large>::type;
using kernel_of_half =
    detail::kernel_of_part<cpu, convolution<settings_of(64)>, precision::f32, large, convolution<settings_of(128)>, large>::type;
static_assert(tiles_of_part<kernel_of_half> == tiles_of_part<whole_kernel>);
static_assert(tiles_of_part<smaller_kernel> != tiles_of_part<whole_kernel>);
using words = sequential<input<6>, embedding<50, 8>, flatten, dense<5, softmax>>;
using pair =
    sequential<input<40>, dense<32, relu, kernel_regularizer<l2<0.01_r>>>, dense<24, sigmoid>, dense<12>, dense<5, softmax>>;
using pairs = layout_map<rule<"dense_1", by_columns>, rule<"dense_2", by_rows>, rule<"dense", by_rows>>;

struct outcome {
  std::vector<float> weights, predictions{};
  std::vector<double> sums{};
  bool operator==(const outcome& o) const {
    return weights.size() == o.weights.size() && sums == o.sums && predictions == o.predictions &&
           std::memcmp(weights.data(), o.weights.data(), weights.size() * sizeof(float)) == 0;
  }
};
double distance(const outcome& a, const outcome& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.weights.size(); ++i) most = larger(most, std::abs(double(a.weights[i]) - double(b.weights[i])));
  for (std::size_t i = 0; i < a.sums.size(); ++i) most = larger(most, std::abs(a.sums[i] - b.sums[i]) / (1 + a.sums[i]));
  for (std::size_t i = 0; i < a.predictions.size(); ++i)
    most = larger(most, std::abs(double(a.predictions[i]) - double(b.predictions[i])));
  return most;
}

template <class Network>
using program_with = program<Network, sparse_categorical_crossentropy<>, adam, type_list<accuracy>>;

/// Trains some steps. scale: a factor of the initial weights.
template <class P, class Strategy>
outcome trained(const Strategy& strategy, float scale = 1, std::initializer_list<int> sizes = {24, 7, 24, 1},
                typename P::optimizer optimizer = {.learning_rate = 0.01}) {
  typename Strategy::template executor<P> executor = strategy.template make<P>(optimizer, 5);
  executor.prepare(24, purpose::training);
  for (float& w : executor.parameters()) w *= scale;
  executor.parameters_changed();
  outcome out;
  std::uint64_t key = 0;
  const std::vector<float> importance = random_numbers<float>(24, 11);
  for (const int size : sizes) {
    const random_batch<P> batch(size, ++key);
    samples<float> weighted = batch.view();
    weighted.truths[0].weights = importance.data();
    for (const metric_sum& each : executor.train_step(weighted)) out.sums.push_back(each.sum);
  }
  executor.prepare(24, purpose::inference);
  const random_batch<P> batch(24, 99);
  for (const metric_sum& each : executor.evaluate_step(batch.view())) out.sums.push_back(each.sum);
  out.predictions.resize(24 * std::size_t(P::network::output_shape.size()));
  executor.predict(batch.view(), {{out.predictions.data()}});
  executor.finish();
  const std::span<const float> w = executor.parameters();
  out.weights.assign(w.begin(), w.end());
  return out;
}

/// The types of a trainer that print_plan uses.
template <class P, class Strategy>
struct planned {
  using program_type = P;
  using executor_type = typename Strategy::template executor<P>;
  using strategy_type = Strategy;
};

/// The errors of several processes, which are threads here.
template <class F>
std::vector<std::string> in_processes(int count, F&& f) {
  std::vector<std::string> failures(std::size_t(count), "");
  std::vector<std::thread> processes;
  for (in_process& member : in_process::group(count))
    processes.emplace_back([&, member] { failures[std::size_t(member.rank())] = error_of([&] { f(member); }); });
  for (std::thread& each : processes) each.join();
  return failures;
}
}  // namespace

TEST_CASE("layers divided by columns: the bits of one device") {
  const auto check = []<class Network, class Map, int Ranks>(std::type_identity<Network>, std::type_identity<Map>,
                                                             std::integral_constant<int, Ranks>) {
    using P = program_with<Network>;
    const outcome expected = trained<P>(one_device{{.threads = 1, .leaves = 4}});
    CHECK(trained<P>(tensor_parallel<Ranks, Map>{{.leaves = 4}}) == expected);
    CHECK(trained<P>(tensor_parallel<Ranks, Map>{{.leaves = 4, .micro_batch = 2}}) == expected);
  };
  check(std::type_identity<dense_layers>{}, std::type_identity<dense_columns>{}, std::integral_constant<int, 4>{});
  check(std::type_identity<images>{}, std::type_identity<all_columns>{}, std::integral_constant<int, 2>{});
  check(std::type_identity<words>{}, std::type_identity<layout_map<rule<"embedding", by_columns>>>{},
        std::integral_constant<int, 2>{});
}

TEST_CASE("an embedding divided by the rows of its table: the bits of one device") {
  using P = program_with<words>;
  using by_vocabulary = layout_map<rule<"embedding", by_rows>>;
  const outcome expected = trained<P>(one_device{{.threads = 1, .leaves = 4}});
  CHECK(trained<P>(tensor_parallel<4, by_vocabulary>{{.leaves = 4}}) == expected);  // 13, 13, 13 and 11 rows
  CHECK(trained<P>(tensor_parallel<2, by_vocabulary>{{.leaves = 4, .micro_batch = 2}}) == expected);
  std::vector<outcome> all(3, outcome{});
  const auto failures = in_processes(3, [&](const in_process& member) {
    all[std::size_t(member.rank())] = trained<P>(tensor_parallel_among<in_process, 3, by_vocabulary>{member, {.leaves = 4}});
  });
  for (const std::string& each : failures) CHECK(each == "no error");
  for (const outcome& each : all) CHECK(each == expected);
}

TEST_CASE("a mesh of groups and ranks: the bits of one device") {
  using P = program_with<dense_layers>;
  using inner = tensor_parallel<2, dense_columns>;
  const outcome expected = trained<P>(one_device{{.threads = 1, .leaves = 4}});
  using threads = device_mesh<data_parallel<3>, inner>;
  CHECK(trained<P>(threads{{.leaves = 4}}) == expected);
  std::ostringstream text;
  print_plan(planned<P, threads>{}, text);
  CHECK(contains(text.str(), "\n3 groups of 2 ranks\nlayer "));
  std::vector<outcome> all(4, outcome{});
  const auto failures = in_processes(4, [&](const in_process& member) {
    all[std::size_t(member.rank())] = trained<P>(device_mesh_among<in_process, data_parallel<2>, inner>{member, {.leaves = 4}});
  });
  for (const std::string& each : failures) CHECK(each == "no error");
  for (const outcome& each : all) CHECK(each == expected);
}

TEST_CASE("a mesh of groups of pipelines whose ranks divide layers: the bits of one device, or of these ranks") {
  const std::initializer_list<int> sizes{24, 8, 24, 7};  // the last one has micro-batches of unequal size
  using P = program_with<dense_layers>;
  using inner = tensor_parallel<2, dense_columns>;
  const outcome expected = trained<P>(one_device{{.threads = 1, .leaves = 4}}, 1, sizes);
  CHECK(trained<P>(device_mesh<data_parallel<1>, pipeline<balanced<2>, micro_batches<8>, gpipe>, inner>{{.leaves = 4}}, 1,
                   sizes) == expected);
  CHECK(trained<P>(device_mesh<data_parallel<2>, pipeline<balanced<4>, micro_batches<4>, interleaved<2>>, inner>{{.leaves = 4}},
                   1, sizes) == expected);

  // The output of dense_1 goes to the next stage without being gathered; penalties.
  using Q = program_with<pair>;
  using two_by_two = device_mesh<data_parallel<2>, pipeline<stages<2, 2>, micro_batches<2>>, tensor_parallel<2, pairs>>;
  CHECK(trained<Q>(two_by_two{{.leaves = 4}}, 1, sizes) == trained<Q>(tensor_parallel<2, pairs>{{.leaves = 4}}, 1, sizes));
  auto refusing = two_by_two{{.leaves = 4}}.make<Q>(adam{}, 5);
  CHECK(error_of([&] { refusing.prepare(22, purpose::training); }) ==
        "a batch of 22 samples cannot be cut into 2 groups of 2 micro-batches of equal size");
  using R = program<sequential<input<40>, dense<32, relu>, dense<44, softmax>>, sparse_categorical_crossentropy<>, adam,
                    type_list<accuracy, sparse_top_k_categorical_accuracy<3>>>;
  using ends = tensor_parallel<2, layout_map<rule<"dense_1", by_classes>>>;
  using halves = pipeline<balanced<2>, micro_batches<4>>;
  const outcome by_ranks = trained<R>(ends{{.leaves = 4}}, 1, sizes);
  CHECK(trained<R>(device_mesh<data_parallel<1>, halves, ends>{{.leaves = 4}}, 1, sizes) == by_ranks);
  for (const std::string& each : in_processes(4, [&](const in_process& member) {
         CHECK(trained<R>(device_mesh_among<in_process, data_parallel<1>, halves, ends>{member, {.leaves = 4}}, 1, sizes) ==
               by_ranks);
       }))
    CHECK(each == "no error");
}

TEST_CASE("the same mesh where each place of each rank is a process") {
  using P = program_with<pair>;
  using pipes = pipeline<stages<2, 2>, micro_batches<2>>;
  using inner = tensor_parallel<2, pairs>;
  using among = device_mesh_among<in_process, data_parallel<2>, pipes, inner>;
  const device_mesh<data_parallel<2>, pipes, inner> threads{{.leaves = 4}};
  for (const float norm : {0.f, 0.02f}) {
    const adam optimizer{.learning_rate = 0.01, .clipnorm = norm};
    const outcome expected = trained<P>(threads, 1, {24, 8, 24}, optimizer);
    std::vector<outcome> all(8, outcome{});
    for (const std::string& each : in_processes(8, [&](const in_process& member) {
           all[std::size_t(member.rank())] = trained<P>(among{member, {.leaves = 4}}, 1, {24, 8, 24}, optimizer);
         }))
      CHECK(each == "no error");
    for (const outcome& each : all) CHECK(each == expected);
  }

  // Slots that are collected and changed are used by the next steps.
  const auto run = [&](auto& executor, bool in_all) {
    executor.prepare(24, purpose::training);
    const auto step = [&](std::uint64_t key) { executor.train_step(random_batch<P>(24, key).view()); };
    step(1);
    executor.collect_slots(true);
    for (float& slot : executor.whole_slots()) slot *= 2;
    executor.parameters_changed();
    step(2);
    executor.collect_slots(in_all);
    std::vector<float> slots(executor.whole_slots().begin(), executor.whole_slots().end());
    slots.insert(slots.end(), executor.parameters().begin(), executor.parameters().end());
    detail::reset_optimizer(executor);
    executor.collect_slots(true);
    CHECK(std::ranges::count(executor.whole_slots(), 0.f) == std::ssize(executor.whole_slots()));
    step(3);
    executor.finish();
    slots.insert(slots.end(), executor.parameters().begin(), executor.parameters().end());
    return slots;
  };
  auto one = threads.make<P>(adam{}, 5);
  const std::vector<float> expected = run(one, true);
  for (const bool in_all : {false, true})
    for (const std::string& each : in_processes(8, [&](const in_process& member) {
           auto executor = among{member, {.leaves = 4}}.make<P>(adam{}, 5);
           const std::vector<float> slots = run(executor, in_all);
           if (in_all || member.rank() == 0) CHECK(slots == expected);
         }))
      CHECK(each == "no error");

  for (const std::string& each : in_processes(6, [](const in_process& member) { among{member}.make<P>(adam{}, 5); }))
    CHECK(each == "layers are divided among 2 processes at each of 2 places in each of 2 groups, which are 8, but there are 6");
  for (const std::string& each : in_processes(
           8, [](const in_process& member) { among{member}.make<P>(adam{.learning_rate = member.rank() == 3 ? 0.1 : 0.2}, 5); }))
    CHECK(contains(each, "the processes do not have the same optimizer: process 3 differs from process 0"));
}

TEST_CASE("norms of divided parameters: those of whole ones, bit for bit") {
  const auto check = []<class P>(std::type_identity<P>, const auto& divided, typename P::optimizer optimizer) {
    const auto with = [&](const auto& strategy) { return trained<P>(strategy, 1, {24, 8, 24}, optimizer); };
    const outcome expected = with(one_device{{.threads = 1, .leaves = 4}});
    CHECK(with(divided) == expected);
    optimizer.clipnorm = optimizer.global_clipnorm = 0;  // norms matter
    if (!takes_norms(optimizer)) CHECK(!(with(one_device{{.threads = 1, .leaves = 4}}) == expected));
  };
  const adam clipped{.learning_rate = 0.01, .global_clipnorm = 0.1}, each_clipped{.learning_rate = 0.01, .clipnorm = 0.02};
  using all = program_with<dense_layers>;
  check(std::type_identity<all>{}, tensor_parallel<4, dense_columns>{{.leaves = 4}}, clipped);
  check(std::type_identity<all>{},
        device_mesh<data_parallel<1>, pipeline<balanced<2>, micro_batches<8>, gpipe>, tensor_parallel<2, dense_columns>>{
            {.leaves = 4}},
        each_clipped);
  check(std::type_identity<program_with<words>>{}, tensor_parallel<4, layout_map<rule<"embedding", by_rows>>>{{.leaves = 4}},
        clipped);
  // There are 38,400 elements in 38 pieces; ranks add up 8 pieces each at a time.
  using wide = sequential<input<300>, dense<128, relu>, dense<5, softmax>>;
  check(std::type_identity<program<wide, sparse_categorical_crossentropy<>, lamb, type_list<accuracy>>>{},
        tensor_parallel<2, layout_map<rule<"dense", by_columns>>>{{.leaves = 4}}, lamb{.learning_rate = 0.01, .clipnorm = 0.02});
}

TEST_CASE("layers divided by rows: sums of another order, which is the same for threads and processes") {
  using P = program_with<pair>;
  const outcome expected = trained<P>(one_device{{.threads = 1, .leaves = 4}}),
                threads = trained<P>(tensor_parallel<2, pairs>{{.leaves = 4}});
  CHECK(distance(threads, expected) < 2e-5);
  CHECK(threads == trained<P>(tensor_parallel<2, pairs>{{.leaves = 4, .micro_batch = 2}}));
  std::vector<outcome> all(2, outcome{});
  const auto failures = in_processes(2, [&](const in_process& member) {
    all[std::size_t(member.rank())] = trained<P>(tensor_parallel_among<in_process, 2, pairs>{member, {.leaves = 4}});
  });
  for (const std::string& each : failures) CHECK(each == "no error");
  for (const outcome& each : all) CHECK(each == threads);
}

TEST_CASE("a loss divided by classes: that of one device but for rounding, and the same for threads and processes") {
  const auto check = []<class P>(std::type_identity<P>, float scale, double tolerance) {
    using last = layout_map<rule<"dense_1", by_classes>>;
    const outcome expected = trained<P>(one_device{{.threads = 1, .leaves = 4}}, scale),
                  threads = trained<P>(tensor_parallel<4, last>{{.leaves = 4}}, scale);
    CHECK(distance(threads, expected) < tolerance);
    CHECK(threads == trained<P>(tensor_parallel<4, last>{{.leaves = 4, .micro_batch = 2}}, scale));
    CHECK(threads == trained<P>(device_mesh<data_parallel<2>, tensor_parallel<4, last>>{{.leaves = 4}}, scale));
    std::vector<outcome> all(4, outcome{});
    const auto failures = in_processes(4, [&](const in_process& member) {
      all[std::size_t(member.rank())] = trained<P>(tensor_parallel_among<in_process, 4, last>{member, {.leaves = 4}}, scale);
    });
    for (const std::string& each : failures) CHECK(each == "no error");
    for (const outcome& each : all) CHECK(each == threads);
  };
  using probabilities = sequential<input<40>, dense<32, relu>, dense<44, softmax>>;
  using logits = sequential<input<40>, dense<32, relu>, dense<44>>;
  check(std::type_identity<program<probabilities, sparse_categorical_crossentropy<>, adam,
                                   type_list<accuracy, sparse_top_k_categorical_accuracy<3>>>>{},
        1, 2e-5);
  check(std::type_identity<program<logits, categorical_crossentropy<from_logits, label_smoothing<0.1_r>>, adam,
                                   type_list<top_k_categorical_accuracy<3>, categorical_accuracy>>>{},
        1, 2e-5);
  // Logits of several hundreds: exponentials of them would overflow.
  check(std::type_identity<program<logits, sparse_categorical_crossentropy<from_logits>, sgd, type_list<accuracy>>>{}, 30, 1e-3);
  check(std::type_identity<program<probabilities, categorical_crossentropy<>, sgd, type_list<>>>{}, 30, 1e-3);
}

TEST_CASE("metrics of divided classes: a prediction that is nan or infinite counts as on one device") {
  const auto measured = [](auto strategy, std::size_t at, float value) {
    trainer model{sequential<input<2>, dense<8>>{},
                  sgd{},
                  sparse_categorical_crossentropy<from_logits>{},
                  accuracy{},
                  sparse_top_k_categorical_accuracy<3>{},
                  sparse_top_k_categorical_accuracy<9>{},
                  strategy};
    std::vector<float> weights(model.parameters().size());
    float* const bias = weights.data() + weights.size() - 16;
    for (int k = 0; k < 8; ++k) bias[k] = float(k * 3 % 8);
    bias[at] = value;
    model.set_parameters(weights);
    std::vector<double> all;
    for (int label = 0; label < 8; ++label) {
      const logs values = model.evaluate(std::vector<float>{1, 1}, std::vector<int>{label});
      for (const char* name : {"accuracy", "sparse_top_k_categorical_accuracy", "sparse_top_k_categorical_accuracy_1"})
        all.push_back(values[name]);
    }
    return all;
  };
  using last = layout_map<rule<"dense", by_classes>>;
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (const float value : {std::nanf(""), infinity, -infinity, 0.5f})
    for (const std::size_t at : {0u, 3u, 7u}) {
      CAPTURE(value);
      CAPTURE(at);
      const std::vector<double> expected = measured(one_device{}, at, value);
      CHECK(measured(tensor_parallel<4, last>{}, at, value) == expected);
      CHECK((std::ranges::count(expected, 0) == std::ssize(expected)) == std::isnan(value));
    }
}

namespace {
using net = sequential<input<28, 28, 1>, flatten, dense<16, relu>, dense<10, softmax>>;
using map = layout_map<rule<"dense", by_columns>, rule<"dense_1", by_columns>>;
}  // namespace

TEST_CASE("callbacks, snapshots, freezing and printing work with divided layers") {
  const auto digits = data::synthetic_digits(200, 3);
  const scratch_folder folder("tensor-parallel");
  const auto run = [&](auto&& strategy, const std::string& name, int last) {
    trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, accuracy{}, strategy, seed(3)};
    model.set_trainable("dense", false);
    model.fit(digits | data::shuffle(50) | data::batch<32>, epochs(last), verbosity::off, validation(digits | data::batch<32>),
              backup_and_restore{folder / name});
    std::ostringstream text;
    print_plan(model, text);
    return std::pair(std::vector<float>(model.parameters().begin(), model.parameters().end()), text.str());
  };
  const tensor_parallel<2, map> divided;
  const auto whole = run(one_device{}, "whole", 3).first;
  run(divided, "first", 2);
  CHECK(run(one_device{}, "first", 3).first == whole);
  run(one_device{}, "second", 2);
  const auto [weights, plan] = run(divided, "second", 3);
  CHECK(weights == whole);
  using both = device_mesh<data_parallel<2>, pipeline<balanced<2>, micro_batches<4>>, tensor_parallel<2, map>>;
  run(both{}, "third", 2);
  CHECK(run(divided, "third", 3).first == whole);
  const std::string of_stages = run(both{}, "first", 4).second;
  CHECK(contains(of_stages, "\n2 places, one_forward_one_backward of 4 micro-batches, "));
  CHECK(contains(of_stages, "\n2 groups of 2 ranks\nlayer "));
  CHECK(contains(plan, "\n2 ranks\nlayer    divided     parameters of a rank "));
  CHECK(contains(plan, "\ndense_1  by columns  kernel (16, 5), bias (5,), input_kernel (8, 10)  all-gather of 20.00 B"));
}

TEST_CASE("check_numerics sees all ranks and groups of threads") {
  std::vector<float> x(64 * 784, 0.5F);
  const std::vector<int> labels(64, 3);
  const auto said = [&](auto&& strategy, float weight) {
    trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, strategy, seed(3)};
    std::vector<float> weights(model.parameters().begin(), model.parameters().end());
    weights[12] = weight;  // of unit 12, which the second rank has
    model.set_parameters(weights);
    return error_of([&] { model.fit(x, labels, batch_size(64), verbosity::off, shuffle(false), check_numerics{}); });
  };
  CHECK(
      contains(said(tensor_parallel<2, map>{}, std::numeric_limits<float>::infinity()),
               "the output of dense (affine) is inf at sample 0 of the batch, element 12 of (16,); not finite before this step: "
               "dense/kernel"));
  x[50 * 784 + 5] = std::numeric_limits<float>::quiet_NaN();
  CHECK(contains(said(device_mesh<data_parallel<2>, tensor_parallel<2, map>>{}, 1),
                 "the data is nan at sample 50 of the batch, number 5"));
}

TEST_CASE("errors of divided layers name what is wrong") {
  using P = program_with<net>;
  CHECK(error_of([] { tensor_parallel<2, map>{{.threads = -1}}.make<P>(adam{}, 5); }) ==
        "compute_options: threads is -1: it must be at least 1, or 0 for all cores");
  const auto make = []<class Map>(const in_process& member, std::type_identity<Map>) {
    tensor_parallel_among<in_process, 2, Map>{member}.template make<P>(adam{}, 5);
  };
  for (const std::string& each : in_processes(3, [&](const in_process& m) { make(m, std::type_identity<map>{}); }))
    CHECK(each == "layers are divided among 2 processes, but there are 3");
  auto failures = in_processes(2, [&](const in_process& m) {
    m.rank() == 0 ? make(m, std::type_identity<map>{}) : make(m, std::type_identity<layout_map<rule<"dense", by_columns>>>{});
  });
  CHECK(failures[1] ==
        "the processes do not have the same divided layers: process 1 differs from process 0; here: dense by columns");
  failures = in_processes(2, [&](const in_process& m) {
    tensor_parallel_among<in_process, 2, map>{m, {.micro_batch = 8 * m.rank()}}.make<P>(adam{}, 5);
  });
  CHECK(failures[1] == "the processes do not have the same micro_batch: process 1 differs from process 0; here: 8");
  failures = in_processes(2, [&](const in_process& m) {
    using other = device_mesh_among<in_process, data_parallel<2>, tensor_parallel<1, map>>;
    m.rank() == 0 ? make(m, std::type_identity<map>{}) : void(other{m}.make<P>(adam{}, 5));
  });
  CHECK(failures[1] ==
        "the processes do not have the same number of ranks that divide layers: process 1 differs from process 0; here: 1");
  failures = in_processes(2, [&](const in_process& m) {
    auto executor = tensor_parallel_among<in_process, 2, map>{m}.make<P>(adam{}, 5);
    executor.prepare(8, purpose::training);
    const random_batch<P> batch(8);
    executor.train_step(batch.view());
    CHECK(error_of([&] { executor.parameters(); }).starts_with("divided layers: a process has a part of the parameters"));
    executor.finish();
    CHECK(executor.parameters().size() == std::size_t(layout_of_program<P>.size));
    const random_batch<P> other(4 + m.rank());
    executor.train_step(other.view());
  });
  CHECK(failures[1] == "the processes do not read the same batches: one of 5 samples here, one of 4 in process 0");
}
