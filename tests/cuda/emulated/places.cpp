// Layers of one network on several emulated GPUs: the bits of one GPU, for any order of the work of their queues.
// needs: emulated_cuda
// flags: -O2
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <strata/cuda/places.hpp>
#include <strata/strata.hpp>
#include <string>
#include <vector>

#include "unit/error_of.hpp"
#include "unit/two_by_two.hpp"

using namespace strata;
using namespace strata::core;
using namespace strata::test;

namespace {
void have_devices(int count, std::uint64_t order = 1) {
  machine::emulate_devices(count, std::size_t{256} << 20);
  machine::emulate_order(order);
}

/// The same items, inside `on_device` and as a plain branch.
template <int Index, class... Items>
using here = on_device<Index, Items...>;
template <int, class... Items>
using anywhere = branch<Items...>;

template <template <int, class...> class At>
using two_branches = sequential<input<6>, dense<8, relu>, add<At<0, dense<5, relu>>, At<1, dense<5, relu>>>, dense<3, softmax>>;
/// Images on three GPUs: a skip connection across two of them, an output that devices 1, 0 and 1 read in turn, dropout.
template <template <int, class...> class At>
using images = sequential<input<6, 6, 1>, At<0, conv2d<3, 3, relu>, max_pool2d<2>>,
                          concat<At<1, conv2d<2, 1, relu>>, At<0, conv2d<2, 1>>, At<1, conv2d<1, 1, relu>>>,
                          residual<At<2, conv2d<5, 3, same_padding>, dropout<0.3_r>>>, At<2, flatten>, At<1, dense<6, relu>>,
                          dense<3, softmax>>;
template <template <int, class...> class At>
using regularized =
    sequential<input<6>, At<1, dense<8, sigmoid, kernel_regularizer<l2<0.01_r>>>>, frozen<At<0, dense<5>>>,
               residual<At<1, dense<5, relu, bias_regularizer<l1<0.02_r>>>>, branch<>>, At<1, layer_norm<>>, dense<3, softmax>>;
using deep = sequential<input<6>, dense<8, relu>, dense<7, relu>, dropout<0.2_r>, residual<dense<7, relu>>, dense<5, sigmoid>,
                        dense<3, softmax>>;

template <class Network, class Optimizer = adam>
using program_of = program<Network, sparse_categorical_crossentropy<>, Optimizer, type_list<accuracy>>;

struct outcome {
  std::vector<float> weights, slots, gradient, predictions;
  std::vector<double> sums;
};
bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}
/// Empty if all bits are equal, else what differs.
std::string differing(const outcome& a, const outcome& b) {
  return std::string(same_bits(a.weights, b.weights) ? "" : "weights ") + (same_bits(a.slots, b.slots) ? "" : "slots ") +
         (same_bits(a.gradient, b.gradient) ? "" : "gradient ") +
         (same_bits(a.predictions, b.predictions) ? "" : "predictions ") + (a.sums == b.sums ? "" : "sums ");
}

struct training {
  bool keeps_gradient = false;  // then the host waits for each step
  int frozen_slot = -1;         // a slot of the layout that is frozen during some steps
  bool freezes_nothing = false;
};
/// Some steps with short batches, then evaluation and prediction.
template <class P>
outcome trained(const auto& strategy, const typename P::optimizer& optimizer, const training& how) {
  constexpr int most = 20;
  std::vector<float> x(most * 36), words(most * 3), targets(most * 2), predictions(most * 5);
  std::vector<std::int32_t> labels(most);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(philox{3}.uniform(i) - 0.5);
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = float(i * 5 % 7);
  for (std::size_t i = 0; i < targets.size(); ++i) targets[i] = float(philox{4}.uniform(i));
  for (int i = 0; i < most; ++i) labels[std::size_t(i)] = i % 3;
  samples<float> batch;
  batch.inputs[0] = x.data(), batch.inputs[1] = words.data();
  batch.truths[0].labels = labels.data(), batch.truths[1].targets = targets.data();

  auto executor = strategy.template make<P>(optimizer, 7);
  executor.prepare(most, purpose::training);
  executor.keep_gradient(how.keeps_gradient);
  outcome out;
  const auto keep = [&](const auto& sums) {
    for (const metric_sum& each : sums) out.sums.push_back(each.sum), out.sums.push_back(each.count);
  };
  bool frozen[layout_of_program<P>.count] = {};
  if (how.freezes_nothing) executor.freeze(frozen);
  for (const int size : {20, 20, 6, 20, 1, 20}) {
    if (how.frozen_slot >= 0) {
      frozen[how.frozen_slot] = size == 6 || size == 1;
      executor.freeze(frozen);
    }
    batch.count = size;
    keep(step_result<P>(executor.train_step(batch)).get());
  }
  executor.prepare(most, purpose::inference);
  keep(executor.evaluate_step(batch));
  output_rows<float> rows;
  rows.at[0] = predictions.data(), rows.at[1] = predictions.data() + most * 3;
  executor.predict(batch, rows);
  const auto w = executor.parameters(), s = executor.slots();
  const auto g = executor.gradient();
  out.predictions = predictions;
  out.gradient.assign(g.begin(), g.end());
  out.weights.assign(w.begin(), w.end()), out.slots.assign(s.begin(), s.end());
  return out;
}
const cuda_options four_leaves{.leaves = 4};

/// Checks that Plain on one GPU and Placed on several have the same results.
template <class Plain, class Placed = Plain>
void check(const auto& strategy, const typename Plain::optimizer& optimizer = {}, int frozen_slot = -1,
           std::uint64_t orders = 4) {
  for (const bool keeps_gradient : {false, true}) {
    const training how{keeps_gradient, frozen_slot};
    have_devices(1);
    const outcome expected = trained<Plain>(one_device<cuda>{four_leaves}, optimizer, how);
    for (std::uint64_t order = 1; order <= orders; ++order) {
      have_devices(3, order);
      CHECK(differing(trained<Placed>(strategy, optimizer, how), expected) == "");
    }
  }
}

/// The words of two_by_two and its second output, with the layer before it, on device 1.
struct words_apart : by_device<2> {
  template <class Items>
  static constexpr auto stage_of_node = [] {
    constexpr const auto& t = tape_of<Items>;
    std::array<int, std::size_t(t.size)> stage_of{};
    for (int i = 2; i < t.size; ++i) stage_of[std::size_t(i)] = i + 2 >= t.size || t.nodes[i].input[0] == 1;
    detail::keep_together(t, stage_of);
    return stage_of;
  }();
};
struct on_words_apart {
  template <class P>
  auto make(const typename P::optimizer& optimizer, std::uint64_t seed) const {
    cuda_options options = four_leaves;
    options.devices = {2, 1};
    return synchronous_executor<P, split_backend<cuda, words_apart>>(optimizer, seed, options);
  }
};
}  // namespace

TEST_CASE("layers on several GPUs: the bits of one") {
  check<program_of<two_branches<anywhere>>, program_of<two_branches<here>>>(placed{gpu(0), gpu(1), four_leaves}, {}, -1, 12);
  check<program_of<images<anywhere>>, program_of<images<here>>>(placed{gpu(2), gpu(0), gpu(1), four_leaves});
}

TEST_CASE("penalties, norms over the parameters of all GPUs, layers that are frozen for some steps") {
  check<program_of<regularized<anywhere>, sgd>, program_of<regularized<here>, sgd>>(
      placed{gpu(0), gpu(1), four_leaves}, sgd{.learning_rate = 0.1, .momentum = 0.9, .global_clipnorm = 0.05}, 4);
}

TEST_CASE("two inputs and outputs, whose losses are computed on two GPUs") {
  using P = program_of_two<false, adam, precision::f32>;
  check<P>(on_words_apart{});
  have_devices(1);
  const one_device<cuda> one{four_leaves};
  CHECK(differing(trained<P>(one, {}, {.freezes_nothing = true}), trained<P>(one, {}, {})) == "");
}

TEST_CASE("pipelines on several GPUs: the bits of one") {
  check<program_of<deep>>(gpu_pipeline<balanced<3>, micro_batches<4>>{.options = four_leaves});
  check<program_of<deep>>(gpu_pipeline<balanced<4>, micro_batches<4>, interleaved<2>>{gpus({1, 2}), four_leaves});
}

TEST_CASE("a GPU has the parameters of its layers only, and a step waits for nothing on the host") {
  have_devices(2);
  using net = sequential<input<6>, on_device<0, dense<64, relu>>, on_device<1, dense<64, relu>, dense<3, softmax>>>;
  using P = program<net, sparse_categorical_crossentropy<>, adam, type_list<accuracy>>;
  auto executor = placed{gpu(0), gpu(1), four_leaves}.make<P>(adam{}, 1);
  executor.prepare(20, purpose::training);
  const std::vector<float> x(20 * 6, 0.5f);
  const std::vector<std::int32_t> y(20);
  step_result<P> result;
  for (int step = 0; step < 3; ++step) {
    for (int i = 0; i < 2; ++i) machine::take_counts(i);
    result = executor.train_step({x.data(), y.data(), 20});
    const machine::work_counts first = machine::take_counts(0), second = machine::take_counts(1);
    CHECK(first.waits + second.waits == 0);
    CHECK(first.copies_between == 1);   // activations of all samples
    CHECK(second.copies_between == 1);  // their gradients
  }
  CHECK(result.get()[0].count == 20);
  // 4 leaves, parameters and two slots: of 4,611 parameters the second one has 4,355, which are 4 * 7 * 4,355 bytes.
  const auto used = [](int i) { return (std::size_t{256} << 20) - machine::free_memory(i); };
  CHECK(used(0) < 60'000);
  CHECK(used(1) > 120'000);
}

TEST_CASE("an execution may have more steps than sums that wait to be read") {
  using net = sequential<input<2>, on_device<0, dense<2, relu>>, on_device<1, dense<2, softmax>>>;
  const std::vector<float> x(2 * 1'500, 0.5f);
  const std::vector<std::int32_t> y(1'500);
  const auto loss_of = [&](long steps, const auto& strategy) {
    have_devices(2);
    trainer model{net{}, sgd{}, sparse_categorical_crossentropy{}, strategy};
    return model.fit(x, y, batch_size(1), epochs(1), verbosity::off, steps_per_execution(steps))["loss"].back();
  };
  const double expected = loss_of(1, placed{gpu(0), gpu(1)});
  CHECK(loss_of(300, placed{gpu(0), gpu(1)}) == expected);
  CHECK(loss_of(1'500, placed{gpu(0), gpu(1)}) == expected);
}

TEST_CASE("what cannot be placed is one error") {
  using two = gpu_pipeline<balanced<2>, micro_batches<8>>;
  using P = program<deep, sparse_categorical_crossentropy<>, adam, type_list<accuracy>>;
  have_devices(1);
  CHECK(error_of([] { two{}.make<P>(adam{}, 1); }) == "2 places need as many GPUs, but this machine has 1");
  CHECK(error_of([] { placed{gpu(0), gpu(5)}.make<P>(adam{}, 1); }) == "gpu(5): this machine has 1, from gpu(0) to gpu(0)");
  have_devices(3);
  CHECK(error_of([] { two{gpus(3)}.make<P>(adam{}, 1); }) == "2 places need as many GPUs, but 3 are named");
  auto executor = two{.options = four_leaves}.make<P>(adam{}, 1);
  struct reader : kernel_observer {
    void begins(const observed_call&) override {}
    void ended(const observed_call&, const observed_numbers&) override {}
    bool reads_gradients() const override { return true; }
  } own;
  CHECK(error_of([&] { executor.observe(&own); }) ==
        "an observer that reads numbers of layers, such as check_numerics, needs all layers on one GPU, or on the CPU");
  CHECK(error_of([&] { executor.prepare(20, purpose::training); }) ==
        "a batch of 20 samples has 4 leaves, which cannot be cut into 8 micro-batches: on GPUs each is one or several whole "
        "leaves. Write `gpu_pipeline<...>{gpus(2), {.leaves = 10}}`");
  CHECK(error_of([&] { executor.prepare(7, purpose::training); }) ==
        "a batch of 7 samples cannot be cut into 8 micro-batches: it needs at least 8 samples");
  CHECK(error_of([] { placed{gpu(1), gpu(2), gpu(1)}; }) == "placed: gpu(1) is listed twice");
  auto mended = two{gpus(2), {.leaves = 10}}.make<P>(adam{}, 1);  // as the error suggests
  CHECK(error_of([&] { mended.prepare(20, purpose::training); }) == "no error");
  const std::vector<float> x(20 * 6, 0.5f);
  const std::vector<std::int32_t> y(20);
  CHECK(error_of([&] { mended.train_step({x.data(), y.data(), 20}); }) == "no error");
  CHECK(error_of([&] { mended.train_step({x.data(), y.data(), 0}); }) == "a batch of 0 samples: a step needs at least one");
}

TEST_CASE("options that other strategies refuse are refused") {
  machine::emulate_devices(2);
  using P = program_of<two_branches<here>>;
  CHECK(error_of([] { placed{gpu(0), gpu(1), cuda_options{.kept_data_memory = 7}}.make<P>(adam{}, 1); }) ==
        "cuda_options::kept_data_memory is 7: it is a fraction of the free memory, from 0 to 1");
}

TEST_CASE("out of memory: what each GPU needs, and a smaller batch trains") {
  using P = program_of<two_branches<here>>;
  const placed strategy{gpu(0), gpu(1), four_leaves};
  machine::emulate_devices(2, 1 << 10);
  const std::string at_first = error_of([&] { strategy.make<P>(adam{}, 1); });
  CAPTURE(at_first);
  CHECK(at_first.find("are free. Without batches, gpu(0) needs ") != std::string::npos);
  machine::emulate_devices(2, 1 << 17);
  auto executor = strategy.make<P>(adam{}, 1);
  const std::string said = error_of([&] { executor.prepare(4096, purpose::training); });
  CAPTURE(said);
  CHECK(said.find("are free. To train with batches of 4096, gpu(0) needs ") != std::string::npos);
  CHECK(said.find(" for gradients of 4 leaves, ") != std::string::npos);
  CHECK(said.find(" for the batch, gpu(1) needs ") != std::string::npos);
  CHECK(said.find(" bytes: 256 for weights, 512 for slots of the optimizer, ") != std::string::npos);
  CHECK(said.ends_with("; smaller batches need less"));
  CHECK(error_of([&] { executor.prepare(20, purpose::training); }) == "no error");
  const std::vector<float> x(20 * 6, 0.5f);
  const std::vector<std::int32_t> y(20);
  CHECK(error_of([&] { executor.train_step({x.data(), y.data(), 20}); }) == "no error");
}

TEST_CASE("libraries measure in the memory of the batch where a place has no other") {
  using P = program_of<sequential<input<256>, dense<256, relu>, on_device<1, dense<256, relu>>, dense<3, softmax>>>;
  const std::vector<float> x(129 * 256, 0.5f);
  const std::vector<std::int32_t> y(129, 1);
  std::size_t taken = 0;
  const auto trained_in = [&](std::size_t memory) {
    machine::library_choices::the().use_file({});  // forgets what was chosen
    machine::emulate_devices(2, memory);
    auto executor = placed{gpu(0), gpu(1), cuda_options{.leaves = 2}}.make<P>(adam{}, 1);
    machine::take_counts(0), machine::take_counts(1);
    executor.train_step({x.data(), y.data(), 129});
    CHECK(machine::take_counts(0).library_calls > 0);
    CHECK(machine::take_counts(1).library_calls > 0);
    taken = memory - std::min(machine::free_memory(0), machine::free_memory(1));
    return std::vector<float>(executor.parameters().begin(), executor.parameters().end());
  };
  const std::vector<float> expected = trained_in(std::size_t{64} << 20);
  CHECK(same_bits(trained_in(taken), expected));
}
