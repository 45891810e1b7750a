// Steps as graphs: the bits of plain launches, what a capture refuses, and how seldom the host waits.
// needs: emulated_cuda
// flags: -O0
#include "compare.hpp"

#include <cmath>
#include <cstring>
#include <limits>
#include <strata/callbacks/lambda_callback.hpp>
#include <strata/cuda/cuda.hpp>
#include <strata/strata.hpp>
#include <string>

#include "unit/error_of.hpp"

using namespace strata;
using namespace strata::core;
using namespace strata::test;

namespace {
using mlp = sequential<input<6>, dense<8, relu, kernel_regularizer<l2<0.01_r>>>, dropout<0.25_r>, dense<3, softmax>>;
using normalized = sequential<input<4, 4, 1>, conv2d<2, 3>, batch_norm<>, activation<relu>, flatten, dense<3, softmax>>;

struct add_one {
  float* values;
  constexpr void operator()(long i) const { values[i] += 1; }
};

struct add_to {
  float* values;
  const float* more;
  constexpr void operator()(long i) const { values[i] += more[i]; }
};

template <class Network>
struct data_of {
  std::vector<float> x;
  std::vector<std::int32_t> labels;
  explicit data_of(std::size_t count) : x(count * std::size_t(Network::input_shape.size())), labels(count) {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(number(3, i));
    for (std::size_t i = 0; i < count; ++i) labels[i] = std::int32_t(i % 3);
  }
};

struct outcome {
  std::vector<float> weights;
  std::vector<double> loss, accuracy;
  bool operator==(const outcome& other) const {
    return std::memcmp(weights.data(), other.weights.data(), weights.size() * sizeof(float)) == 0 && loss == other.loss &&
           accuracy == other.accuracy;
  }
};

/// Three epochs of batches of 20, 20 and 6 samples, with a learning rate that falls.
template <class Network>
outcome trained(int devices, bool graphs, auto&&... options) {
  const data_of<Network> data(46);
  cuda_options how{.devices = {}, .leaves = 4, .graphs = graphs};
  for (int i = 0; i < devices; ++i) how.devices.push_back(i % machine::device_count());
  trainer model{Network{},
                adam{.learning_rate = exponential_decay{.initial_learning_rate = 0.01, .decay_steps = 2, .decay_rate = 0.9},
                     .weight_decay = 0.01},
                sparse_categorical_crossentropy{},
                accuracy{},
                one_device<cuda>{how},
                seed(7)};
  const training_history past = model.fit(data.x, data.labels, epochs(3), batch_size(20), verbosity::off, options...);
  const auto w = model.executor().parameters();
  return {{w.begin(), w.end()}, past["loss"], past["accuracy"]};
}

struct sees_batches {
  std::vector<long>& begins;
  std::vector<double>& losses;
  void on_batch_begin(training_state& s) { begins.push_back(s.step); }
  void on_batch_end(training_state& s) { losses.push_back(s.loss); }
};
}  // namespace

TEST_CASE("a graph does again what was recorded, with the numbers that are in memory then") {
  have_devices(1);
  const cuda_device on(0);
  const machine::queue q = on.make_queue();
  const auto memory = on.allocate<float>(3);
  const machine::graph twice = machine::capture(q, [&] {
    machine::for_each_index(q, 3, add_one{memory.data()});
    machine::for_each_index(q, 3, add_one{memory.data()});
  });
  std::vector<float> found(3);
  const auto read = [&] {
    on.copy_to_host(q, static_cast<const float*>(memory.data()), std::span(found));
    on.wait(q);
    return found[1];
  };
  CHECK(read() == 0);
  twice.launch(q);
  CHECK(read() == 2);
  const std::vector<float> ten(3, 10);
  on.copy_to_device(q, std::span<const float>(ten), memory.data());
  twice.launch(q);
  twice.launch(q);
  CHECK(read() == 14);
}

namespace {
/// b = 2 * (a + 1) by two devices in turn, in a graph that is launched twice: with a = 5, then with a = b.
float by_two_devices(std::uint64_t order, bool waits) {
  have_devices(2, order);
  const cuda_device on(0), other(machine::device_count() - 1);
  const machine::queue q = on.make_queue(), there = other.make_queue();
  const auto a = on.allocate<float>(1), b = other.allocate<float>(1);
  const float five = 5;
  on.copy_to_device(q, std::span(&five, 1), a.data());
  const machine::graph both = machine::capture(q, [&] {
    machine::order(q, there);
    machine::for_each_index(q, 1, add_one{a.data()});
    if (waits) machine::order(q, there);
    machine::copy_between(there, b.data(), a.data(), sizeof(float));
    machine::for_each_index(there, 1, add_to{b.data(), b.data()});
    machine::order(there, q);
    machine::copy_between(q, a.data(), b.data(), sizeof(float));
  });
  both.launch(q);
  both.launch(q);
  float result = 0;
  on.copy_to_host(q, static_cast<const float*>(a.data()), std::span(&result, 1));
  on.wait(q);
  return result;
}
}  // namespace

TEST_CASE("a graph of two queues: its events order it") {
  for (const std::uint64_t order : {1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u}) CHECK(by_two_devices(order, true) == 26);
#if !defined(__CUDACC__)
  bool too_early = false;
  for (const std::uint64_t order : {1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u}) too_early = too_early || by_two_devices(order, false) != 26;
  CHECK(too_early);
#endif
}

#if !defined(__CUDACC__)
TEST_CASE("what a capture refuses") {
  have_devices(1);
  const cuda_device on(0);
  const machine::queue q = on.make_queue(), other = on.make_queue();
  const auto memory = on.allocate<float>(1);
  float one = 1;
  const auto error_in_capture = [&](auto&& f) { return error_of([&] { machine::capture(q, f); }); };
  CHECK(error_in_capture([&] { (void)on.allocate<float>(1); }) == "memory is allocated while a queue is captured");
  CHECK(error_in_capture([&] { on.wait(q); }) == "a wait of the host cannot be part of a graph");
  CHECK(error_in_capture([&] { on.copy_to_device(q, std::span<const float>(&one, 1), memory.data()); }) ==
        "a copy of memory that is not pinned cannot be part of a graph");
  CHECK(error_in_capture([&] { on.copy_to_host(q, static_cast<const float*>(memory.data()), std::span(&one, 1)); }) ==
        "a copy to memory that is not pinned cannot be part of a graph");
  CHECK(error_in_capture([&] { machine::order(other, q); }) ==
        "a queue that is captured waits for an event that is not part of the graph");
  CHECK(error_in_capture([&] { machine::order(q, other); }) ==
        "a queue that is captured does not wait for another queue of the graph");
  CHECK(error_in_capture([&] {
          machine::order(q, other), machine::order(other, q);
          machine::for_each_index(other, 1, add_one{memory.data()});
        }) == "a queue that is captured does not wait for another queue of the graph");
  CHECK(error_in_capture([&] {
          machine::order(q, other);
          on.wait(other);
        }) == "a wait of the host cannot be part of a graph");
  machine::event inside;
  machine::capture(q, [&] { inside.record(q); });
  CHECK(error_of([&] { inside.hold(other); }) == "a queue waits for an event of a graph");
  CHECK(error_of([&] { inside.wait(); }) == "the host waits for an event of a graph");
  CHECK(error_in_capture([&] { machine::capture(other, [] {}); }) == "a capture while a queue is captured");
  machine::for_each_index(q, 1, add_one{memory.data()});  // the queue works again
  on.copy_to_host(q, static_cast<const float*>(memory.data()), std::span(&one, 1));
  on.wait(q);
  CHECK(one == 1);
}

TEST_CASE("pinned memory that is written too early gives a wrong result") {
  have_devices(1);
  const cuda_device on(0);
  const machine::queue q = on.make_queue();
  const auto memory = on.allocate<float>(1);
  machine::pinned_memory host(sizeof(float));
  const auto copied = [&](bool waits) {
    float value = 5, found = 0;
    std::memcpy(host.data(), &value, sizeof value);
    machine::copy_pinned_to_device(q, memory.data(), host.data(), sizeof value);
    machine::event done;
    done.record(q);
    if (waits) done.wait();
    value = 6;
    std::memcpy(host.data(), &value, sizeof value);
    on.copy_to_host(q, static_cast<const float*>(memory.data()), std::span(&found, 1));
    on.wait(q);
    return found;
  };
  CHECK(copied(true) == 5);
  CHECK(copied(false) == 6);
}
#endif

TEST_CASE("a copy has read its bytes when it returns, also those of pinned memory") {
  have_devices(1);
  constexpr std::size_t count = std::size_t{1} << 20;
  const cuda_device on(0);
  const machine::queue q = on.make_queue();
  const auto memory = on.allocate<float>(count);
  machine::pinned_memory host(count * sizeof(float));
  const std::vector<float> before(count, 5), after(count, 6);
  std::memcpy(host.data(), before.data(), host.size());
  machine::copy_to_device(q, memory.data(), host.data(), host.size());
  std::memcpy(host.data(), after.data(), host.size());
  std::vector<float> found(count);
  on.copy_to_host(q, static_cast<const float*>(memory.data()), std::span(found));
  on.wait(q);
  CHECK(found == before);
}

TEST_CASE_TEMPLATE("graphs, plain launches, and any number of devices in any order: the same bits", Network, mlp, normalized) {
  have_devices(1);
  const outcome plain = trained<Network>(1, false);
  for (const int devices : {1, 2, 4})
    for (const std::uint64_t order : {1u, 2u, 3u}) {
      have_devices(devices, order);
      CHECK(trained<Network>(devices, true) == plain);
    }
}

TEST_CASE("callbacks of batches, steps_per_execution: the same bits, fewer looks") {
  have_devices(1);
  const outcome expected = trained<normalized>(1, true);
  std::vector<long> begins;
  std::vector<double> losses;
  CHECK(trained<normalized>(1, true, sees_batches{begins, losses}) == expected);
  CHECK(begins == std::vector<long>{0, 1, 2, 3, 4, 5, 6, 7, 8});
  const std::vector<double> each = losses;
  begins.clear(), losses.clear();
  CHECK(trained<normalized>(1, true, sees_batches{begins, losses}, steps_per_execution(2)) == expected);
  CHECK(begins == std::vector<long>{0, 2, 3, 5, 6, 8});
  CHECK(losses == std::vector<double>{each[1], each[2], each[4], each[5], each[7], each[8]});
  for (const int devices : {2, 4}) {
    have_devices(devices, std::uint64_t(devices));
    CHECK(trained<normalized>(devices, true, steps_per_execution(2)) == expected);
  }
}

TEST_CASE("a step of a callback returns its sums, which do not belong to those of the epoch") {
  have_devices(1);
  data_of<mlp> data(46);
  const auto fit = [&](const auto& strategy) {
    trainer model{mlp{}, adam{}, sparse_categorical_crossentropy{}, accuracy{}, strategy, seed(7)};
    metric_sum own{};
    const lambda_callback once{.on_batch_end = [&](training_state& s) {
      if (s.step == 2) own = model.train_step({data.x.data(), data.labels.data(), 7})[0];
    }};
    const training_history past =
        model.fit(data.x, data.labels, epochs(2), batch_size(10), shuffle(false), steps_per_execution(2), once, verbosity::off);
    return std::vector{float(own.sum), float(own.count), float(past["loss"][0]), float(past["loss"][1])};
  };
  const std::vector<float> expected = fit(one_device{});
  CHECK(expected[1] == 7);
  CHECK(difference(fit(one_device{gpu(0)}), {expected.begin(), expected.end()}) < 1e-5);
  data.x[6 * 33] = std::numeric_limits<float>::quiet_NaN();
  CHECK(error_of([&] { fit(one_device{gpu(0)}); }).starts_with("epoch 1, step 4: the loss is nan or infinite"));
}

#if !defined(__CUDACC__)
TEST_CASE("a step is one copy and one graph; within an epoch the host does not wait") {
  have_devices(1);
  const data_of<normalized> data(400);
  trainer model{normalized{}, adam{}, sparse_categorical_crossentropy{}, accuracy{}, one_device{gpu(0)}};
  machine::take_counts(0);
  model.fit(data.x, data.labels, epochs(2), batch_size(20), verbosity::off);
  const machine::work_counts counts = machine::take_counts(0);
  CHECK(counts.graphs == 40);
  CHECK(counts.captures == 2);  // one for each slot
  CHECK(counts.waits <= 6);     // at the end of an epoch, to prepare, and for the data set
  CHECK(counts.copies_to_host <= 2);
  CHECK(counts.copies_to_device <= 40 + 8);
}
#endif

#if !defined(__CUDACC__)
TEST_CASE("batches of 16 sizes are captured once each; of more sizes, the one that was not seen for longest is dropped") {
  have_devices(1);
  const data_of<mlp> data(32);
  trainer model{mlp{}, adam{}, sparse_categorical_crossentropy{}, one_device{gpu(0)}};
  const auto captures = [&](int size) {  // the captures of two steps, which use both slots
    machine::take_counts(0);
    for (int step = 0; step < 2; ++step) model.train_step({data.x.data(), data.labels.data(), size});
    return machine::take_counts(0).captures;
  };
  for (int size = 32; size > 16; --size) CHECK(captures(size) == 2);
  for (int size = 32; size > 16; --size) CHECK(captures(size) == 0);
  CHECK(captures(16) == 2);
  for (int size = 31; size >= 16; --size) CHECK(captures(size) == 0);
  CHECK(captures(32) == 2);
}

TEST_CASE("a step of several devices is one launch, and so are the steps of an execution") {
  have_devices(4);
  const data_of<normalized> data(400);
  const auto counts_of = [&](bool graphs, long steps) {
    trainer model{normalized{}, adam{}, sparse_categorical_crossentropy{}, accuracy{},
                  mirrored{gpus(), {.leaves = 4, .graphs = graphs}}};
    for (int d = 0; d < 4; ++d) machine::take_counts(d);
    model.fit(data.x, data.labels, epochs(2), batch_size(20), verbosity::off, steps_per_execution(steps));
    std::vector<machine::work_counts> all;
    for (int d = 0; d < 4; ++d) all.push_back(machine::take_counts(d));
    return all;
  };
  const auto plain = counts_of(false, 1), each = counts_of(true, 1), five = counts_of(true, 5);
  CHECK(each[0].graphs == 40);
  CHECK(five[0].graphs == 8);
  for (const auto& counts : {each, five}) {
    CHECK(counts[0].captures == 2);
    CHECK(counts[0].waits <= 8);  // at the end of an epoch, to prepare, and for the data set
    for (std::size_t d = 0; d < 4; ++d) {
      CHECK(counts[d].graphs == (d == 0 ? counts[0].graphs : 0));
      CHECK(counts[d].kernels == plain[d].kernels);
      CHECK(counts[d].copies_between == plain[d].copies_between);
    }
  }
}
#endif

TEST_CASE("a loss that is not finite is an error with its step, although it is noticed later") {
  have_devices(1);
  data_of<mlp> data(100);
  data.x[6 * 33] = std::numeric_limits<float>::quiet_NaN();
  trainer model{mlp{}, adam{}, sparse_categorical_crossentropy{}, one_device{gpu(0)}};
  CHECK(error_of([&] {
          model.fit(data.x, data.labels, epochs(1), batch_size(10), shuffle(false), verbosity::off);
        }).starts_with("epoch 1, step 4: the loss is nan or infinite"));
}
