// Data sets that stay on the device: the bits of batches that are streamed, and what a step copies.
// needs: emulated_cuda
#include "compare.hpp"

#include <limits>
#include <strata/callbacks/lambda_callback.hpp>
#include <strata/cuda/cuda.hpp>
#include <strata/data/image/random_flip.hpp>
#include <strata/data/views/cache.hpp>
#include <strata/data/views/map.hpp>
#include <strata/data/views/one_hot.hpp>
#include <strata/data/views/prefetch.hpp>
#include <strata/strata.hpp>
#include <string>

#include "unit/error_of.hpp"

using namespace strata;
using namespace strata::core;
using namespace strata::test;

namespace {
constexpr shape image{4, 3, 2};
using net = sequential<input<4, 3, 2>, flatten, dense<5, relu>, dense<3, softmax>>;

std::vector<std::uint8_t> pixels(int samples, int of_sample = image.size()) {
  std::vector<std::uint8_t> all(std::size_t(samples * of_sample));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = std::uint8_t(i * i * 7 + i / 24);
  return all;
}
std::vector<int> classes(int samples) {
  std::vector<int> all(static_cast<std::size_t>(samples));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = int(i * i % 3);
  return all;
}
/// Images of 25 bytes, so that labels that follow them are not at a multiple of 4.
auto odd_images() {
  std::vector<std::uint8_t> all = pixels(45);
  all.resize(45 * 25, 3);
  return data::from_tensor_slices(data::array<std::uint8_t, shape{5, 5, 1}>(all), classes(45));
}
auto images(int samples) { return data::from_tensor_slices(data::array<std::uint8_t, image>(pixels(samples)), classes(samples)); }

#if defined(__CUDACC__)
struct counts_of_fit {};  // a device does not count
counts_of_fit take_counts() { return {}; }
#else
using counts_of_fit = machine::work_counts;
counts_of_fit take_counts() { return machine::take_counts(0); }
#endif

struct outcome {
  std::vector<float> weights;
  std::vector<double> loss;
  counts_of_fit counts;
};

/// Options with `count` replicas of the network, each on a device of its own if there are enough.
cuda_options replicas(int count, double share) {
  cuda_options how{.devices = {}, .leaves = 4, .kept_data_memory = share};
  for (int i = 0; i < count; ++i) how.devices.push_back(i % machine::device_count());
  return how;
}

template <class Loss, class Net = net, class Precision = precision::f32>
outcome trained(int devices, double share, auto source, auto&&... options) {
  have_devices(devices);
  trainer model{Net{}, adam{}, Loss{}, one_device<cuda>{replicas(devices, share)}, Precision{}, seed(7)};
  take_counts();
  const training_history past = model.fit(source, verbosity::off, options...);
  const counts_of_fit counts = take_counts();
  const auto w = model.executor().parameters();
  return {{w.begin(), w.end()}, past["loss"], counts};
}

#if !defined(__CUDACC__)
/// The bytes copied to the device in each of the last epochs of a training on one device.
template <class Loss, class Net>
long bytes_of_epoch(double share, const auto& make) {
  const auto bytes = [&](int count) { return trained<Loss, Net>(1, share, make(), epochs(count)).counts.bytes_to_device; };
  return (bytes(6) - bytes(2)) / 4;
}

#endif

/// Trains on 45 samples in batches of 8, kept on the device and streamed, and compares.
template <class Loss, class Net = net>
void compare_with_streamed(const auto& make) {
  const outcome streamed = trained<Loss, Net>(1, 0, make(), epochs(3));
  for (const int devices : {1, 2}) {
    const outcome kept = trained<Loss, Net>(devices, 0.5, make(), epochs(3));
    CHECK(kept.weights == streamed.weights);
    CHECK(kept.loss == streamed.loss);
  }
#if !defined(__CUDACC__)
  constexpr long indices = 256, numbers = 256;  // each padded to 256 bytes
  CHECK(bytes_of_epoch<Loss, Net>(0.5, make) <= 6 * (numbers + indices) + 256);
  CHECK(bytes_of_epoch<Loss, Net>(0, make) > 45 * image.size() * long(sizeof(float)));
#endif
}

using labelled = sparse_categorical_crossentropy<>;

/// A callback without a hook for batches.
template <class F>
struct at_epoch_end {
  F look;
  void on_epoch_end(training_state& s) { look(s); }
};
template <class F>
at_epoch_end(F) -> at_epoch_end<F>;
}  // namespace

TEST_CASE("bytes of images, scaled and mirrored, in shuffled batches") {
  compare_with_streamed<labelled>([] {
    return images(45) | data::scale(1.0 / 255) | data::random_flip(data::flip_mode::horizontal_and_vertical, {.seed = 3}) |
           data::scale(0.3) | data::shuffle(20) | data::batch<8>;
  });
}

TEST_CASE("samples that a function has made, from the second epoch on, made ahead") {
  compare_with_streamed<labelled>([] {
    return images(45) | data::map([](auto x, int y) {
             data::stored_tensor<float, image> out;
             for (int k = 0; k < image.size(); ++k) out.values[std::size_t(k)] = float(x.data[k]) / 77;
             return data::sample{out, y};
           }) |
           data::cache | data::random_flip(data::flip_mode::horizontal, {.seed = 5}) | data::batch<8> | data::prefetch(2);
  });
}

TEST_CASE("images of 25 bytes, from a cache") {
  using net = sequential<input<5, 5, 1>, flatten, dense<3, softmax>>;
  compare_with_streamed<labelled, net>([] { return odd_images() | data::cache | data::scale(0.01) | data::batch<8>; });
  compare_with_streamed<mean_squared_error, net>(
      [] { return odd_images() | data::cache | data::scale(0.01) | data::one_hot<3> | data::batch<8>; });
}

TEST_CASE_TEMPLATE("products on tensor cores have the same bits on 1, 2 and 4 devices, and if the device makes the batch", P,
                   precision::tf32, precision::mixed_bf16) {
  static constexpr shape image{6, 6, 2};
  static constexpr int samples = 300;
  const auto make = [] {
    return data::from_tensor_slices(data::array<std::uint8_t, image>(pixels(samples, image.size())), classes(samples)) |
           data::scale(1.0 / 255) | data::batch<256>;
  };
  const auto check = [&]<class Net>(std::type_identity<Net>) {
    const outcome streamed = trained<labelled, Net, P>(1, 0, make(), epochs(2));
    const outcome exact = trained<labelled, Net>(1, 0, make(), epochs(2));
    CHECK(streamed.loss.back() < streamed.loss.front());
    CHECK(streamed.loss.back() == doctest::Approx(exact.loss.back()).epsilon(0.01));
    CHECK(streamed.weights != exact.weights);
    for (const int devices : {1, 2, 4}) {
      const outcome kept = trained<labelled, Net, P>(devices, 0.5, make(), epochs(2));
      CHECK(kept.weights == streamed.weights);
      CHECK(kept.loss == streamed.loss);
    }
  };
  check(std::type_identity<sequential<input<6, 6, 2>, flatten, dense<32, relu>, dense<3, softmax>>>{});
  check(std::type_identity<sequential<input<6, 6, 2>, flatten, dense<64, softmax>>>{});
  check(std::type_identity<sequential<input<6, 6, 2>, conv2d<16, 3, relu, same_padding>, conv2d<16, 3, relu>, max_pool2d<>,
                                      flatten, dense<3, softmax>>>{});
}

TEST_CASE("targets: rows of numbers, and classes as rows") {
  using wide = sequential<input<4, 3, 2>, flatten, dense<65, relu>, dense<3, softmax>>;
  compare_with_streamed<mean_squared_error, wide>(
      [] { return images(45) | data::scale(0.01) | data::one_hot<3> | data::batch(8); });
  compare_with_streamed<mean_squared_error>([] { return images(45) | data::scale(0.01) | data::one_hot<3> | data::batch(8); });
  compare_with_streamed<mean_squared_error>([] {
    std::vector<double> x(45 * 24), y(45 * 3);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = number(1, i) + 1e-9;
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = number(2, i) / 3;
    return data::from_tensor_slices(data::array<double, image>(x), data::array<double, shape{3}>(y)) | data::batch<8>;
  });
}

#if !defined(__CUDACC__)
TEST_CASE("a step is one copy of indices and one graph, the last short batch too") {
  const auto make = [] { return images(45) | data::scale(1.0 / 255) | data::batch<8>; };
  const auto flipped = [] { return images(45) | data::random_flip(data::flip_mode::horizontal, {.seed = 3}) | data::batch<8>; };
  using wide = sequential<input<4, 3, 2>, flatten, dense<65, relu>, dense<3, softmax>>;
  const machine::work_counts kept = trained<labelled>(1, 0.5, make(), epochs(8)).counts,
                             gathered = trained<labelled>(1, 0.5, flipped(), epochs(8)).counts,
                             streamed = trained<labelled>(1, 0, make(), epochs(8)).counts;
  CHECK(kept.graphs == 8 * 6);
  CHECK(kept.captures == streamed.captures);
  CHECK(kept.copies_to_device == streamed.copies_to_device + 2);  // images and labels
  CHECK(kept.kernels == streamed.kernels);                        // the first product gathers
  CHECK(gathered.kernels == streamed.kernels + 8 * 6);            // one gathers
  CHECK(trained<labelled, wide>(1, 0.5, make(), epochs(8)).counts.kernels ==
        trained<labelled, wide>(1, 0, make(), epochs(8)).counts.kernels + 8 * 6);
  CHECK(kept.waits <= streamed.waits + 2);  // for the data set, and when it is released
}
#endif

#if !defined(__CUDACC__)
TEST_CASE("784-64-64-10 is 6 kernels in fit, too") {
  using mlp = sequential<input<784>, dense<64, relu>, dense<64, relu>, dense<10, softmax>>;
  const auto counts_of = [](int count) {
    return trained<labelled, mlp>(
               1, 0.5,
               data::from_tensor_slices(data::array<std::uint8_t, shape{784}>(std::vector<std::uint8_t>(64 * 784, 1)),
                                        classes(64)) |
                   data::batch<32>,
               epochs(count))
        .counts;
  };
  const machine::work_counts one = counts_of(1), two = counts_of(2);
  CHECK(two.graphs - one.graphs == 2);
  CHECK(two.kernels - one.kernels == 2 * 6);
}
#endif

TEST_CASE("a data set that does not fit is streamed") {
  const auto make = [] { return images(45) | data::batch<8>; };
  const outcome streamed = trained<labelled>(1, 0, make(), epochs(2)), large = trained<labelled>(1, 1e-9, make(), epochs(2));
  CHECK(large.weights == streamed.weights);
#if !defined(__CUDACC__)
  CHECK(large.counts.bytes_to_device == streamed.counts.bytes_to_device);
#endif
}

#if !defined(__CUDACC__)
TEST_CASE("the copies of all replicas on a device have to fit") {
  have_devices(1);
  const double room_for_three = 3.5 * double(images(45).rows().stored()->bytes()) / double(machine::free_memory(0));
  const auto bytes_with = [&](int count, double share) {
    trainer model{net{}, adam{}, labelled{}, one_device<cuda>{replicas(count, share)}, seed(7)};
    take_counts();
    model.fit(images(45) | data::batch<8>, epochs(20), verbosity::off);
    return take_counts().bytes_to_device;
  };
  for (const int count : {2, 3}) CHECK(bytes_with(count, room_for_three) < bytes_with(count, 0));
  CHECK(bytes_with(4, room_for_three) == bytes_with(4, 0));
}
#endif

TEST_CASE("the part of the memory for data sets is a number from 0 to 1") {
  have_devices(1);
  const auto error_with = [](double share) {
    return error_of([&] { trainer model{net{}, adam{}, labelled{}, one_device<cuda>{replicas(1, share)}}; });
  };
  CHECK(error_with(3) == "cuda_options::kept_data_memory is 3: it is a fraction of the free memory, from 0 to 1");
  CHECK(error_with(-1) == "cuda_options::kept_data_memory is -1: it is a fraction of the free memory, from 0 to 1");
  CHECK(error_with(std::numeric_limits<double>::quiet_NaN()).starts_with("cuda_options::kept_data_memory is "));
  CHECK(error_with(0) == "no error");
  CHECK(error_with(1) == "no error");
}

TEST_CASE("what changes in memory between two trainings is seen") {
  have_devices(1);
  const auto weights_with = [](double share, bool changes) {
    std::vector<float> x(45 * 24);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(number(1, i));
    auto source = data::from_tensor_slices(data::array<float, image>(std::span<const float>(x)), classes(45)) | data::batch<8>;
    trainer model{net{}, adam{}, labelled{}, one_device<cuda>{replicas(1, share)}, seed(7)};
    model.fit(source, epochs(2), verbosity::off);
    if (changes)
      for (float& each : x) each = 1 - each;
    model.fit(source, epochs(2), verbosity::off);
    const auto w = model.executor().parameters();
    return std::vector<float>(w.begin(), w.end());
  };
  CHECK(weights_with(0.5, true) == weights_with(0, true));
  CHECK(weights_with(0.5, true) != weights_with(0.5, false));
}

TEST_CASE("weights of classes, passes over epochs, and a callback that reads the same batches") {
  const auto make = [] { return images(45) | data::scale(0.01) | data::batch<8>; };
  const auto both = [&](auto&&... options) {
    CHECK(trained<labelled>(1, 0.5, make(), options...).weights == trained<labelled>(1, 0, make(), options...).weights);
  };
  both(epochs(2), class_weight{{0, 2.0}, {1, 0.5}});
  both(epochs(3), steps_per_epoch(4));

  auto source = make();
  int seen = 0;
  struct reader {
    decltype(source)& from;
    int& seen;
    void on_epoch_end(training_state&) {
      for (const samples<float>& batch : from) {
        REQUIRE(batch.x() != nullptr);
        seen += batch.labels()[0] >= 0 ? batch.count : 0;
      }
    }
  };
  have_devices(1);
  trainer model{net{}, adam{}, labelled{}, one_device{gpu(0)}};
  model.fit(source, epochs(2), verbosity::off, reader{source, seen}, validation(source));
  CHECK(seen == 90);
  for (const samples<float>& batch : source) REQUIRE(batch.x() != nullptr);
}

TEST_CASE("a callback that reads the data set while a pass is under way reads samples") {
  have_devices(1);
  const auto weights = [](double share) {
    auto source = images(45) | data::scale(0.01) | data::batch<8> | data::prefetch(2);
    int batches = 0;
    const auto read_one = [&](training_state&) {
      if (++batches % 3 != 0) return;
      const samples<float> batch = *source.begin();
      REQUIRE(batch.x() != nullptr);
    };
    trainer model{net{}, adam{}, labelled{}, one_device<cuda>{replicas(1, share)}, seed(7)};
    model.fit(source, epochs(3), steps_per_epoch(4), verbosity::off,
              lambda_callback{.on_epoch_end = [&](training_state& s) { read_one(s); }, .on_batch_end = read_one});
    const auto w = model.parameters();
    return std::vector<float>(w.begin(), w.end());
  };
  CHECK(weights(0.5) == weights(0));
}

TEST_CASE("the steps of an execution are one launch, with the bits of one launch each") {
  using net = sequential<input<4, 3, 2>, flatten, dense<5, relu>, dropout<0.25_r>, dense<3, softmax>>;
  const auto make = [] { return images(45) | data::scale(1.0 / 255) | data::shuffle(20) | data::batch<8>; };
  struct looks {
    std::vector<double> losses;
    std::vector<float> weights;
  };
  /// The outcome with a callback that reads the weights and changes the learning rate.
  const auto outcome_of = [&](long steps, std::uint64_t order, counts_of_fit& counts) {
    have_devices(1, order);
    trainer model{net{}, adam{}, labelled{}, accuracy{}, one_device<cuda>{replicas(1, 0.5)}, seed(7)};
    looks all;
    const auto look = [&](training_state& s) {
      const auto w = model.parameters();
      all.weights.insert(all.weights.end(), w.begin(), w.end());
      s.new_learning_rate = 0.9 * s.learning_rate;
    };
    take_counts();
    const training_history past =
        model.fit(make(), epochs(3), verbosity::off, validation(make()), steps_per_execution(steps), at_epoch_end{look});
    counts = take_counts();
    for (const double each : past["loss"]) all.losses.push_back(each);
    for (const double each : past["val_loss"]) all.losses.push_back(each);
    return all;
  };
  counts_of_fit each{}, some{};
  const looks expected = outcome_of(1, 1, each);
  for (const long steps : {2, 3, 4, 5, 100})
    for (const std::uint64_t order : {1u, 2u, 3u}) {
      CAPTURE(steps);
      const looks found = outcome_of(steps, order, some);
      CHECK(found.weights == expected.weights);
      CHECK(found.losses == expected.losses);
#if !defined(__CUDACC__)
      // An epoch has 5 batches of 8 samples and one of 5: 2 + 2 + 1 + 1, 3 + 1 + 1 + 1, 4 + 1 + 1, 5 + 1, and all by themselves.
      const long launches = steps == 2 ? 4 : steps == 3 ? 4 : steps == 4 ? 3 : steps == 5 ? 2 : 6;
      CHECK(some.graphs == 3 * launches);
      CHECK(some.kernels == each.kernels);
      CHECK(some.copies_to_device == each.copies_to_device - 3 * (6 - launches));
#endif
    }
}

TEST_CASE("a loss that is not finite in the middle of an execution is an error with its step") {
  std::vector<float> x(45 * 24, 1);
  x[17 * 24] = std::numeric_limits<float>::quiet_NaN();
  CHECK(error_of([&] {
          trained<labelled>(1, 0.5, data::from_tensor_slices(data::array<float, image>(x), classes(45)) | data::batch<8>,
                            steps_per_execution(5));
        }).starts_with("epoch 1, step 3: the loss is nan or infinite"));
}

TEST_CASE("what is asked for between the steps of an execution comes after those so far") {
  have_devices(1);
  const auto outcome_of = [](long steps) {
    trainer model{net{}, adam{}, labelled{}, one_device<cuda>{replicas(1, 0.5)}, seed(7)};
    auto source = images(45) | data::scale(1.0 / 255) | data::batch<8>;
    auto& executor = model.executor();
    executor.prepare(8, purpose::training);
    executor.prepare(4, purpose::inference);
    REQUIRE(executor.keep_samples(*source.stored()));
    executor.launch_together(steps);
    std::vector<float> found;
    const std::vector<float> rows(std::size_t(4 * image.size()), 0.5f);
    const std::vector<std::int32_t> labels(4);
    std::vector<sample_index> indices(8);
    const auto train = [&](std::size_t first, int count) {
      for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = {std::uint32_t(first + i), 0};
      samples<float> batch;
      batch.stored = indices.data(), batch.count = count;
      return executor.train_step(batch);
    };
    const auto look = [&] {
      const auto w = executor.parameters();
      found.insert(found.end(), w.begin(), w.end());
    };
    const auto first = train(0, 8);
    train(8, 8), look();
    train(16, 8);
    found.push_back(float(executor.evaluate_step({rows.data(), labels.data(), 4})[0].sum));
    train(3, 8), train(4, 8), train(5, 8), train(6, 3), train(7, 8);
    executor.parameters()[0] += 1;
    executor.parameters_changed();
    train(9, 8);
    executor.keep_gradient(true);
    train(10, 8);
    for (const float each : executor.gradient()) found.push_back(each);
    executor.keep_gradient(false);
    executor.launch_together(steps);
    train(11, 8);
    executor.slots()[0] = 0.5f;
    executor.parameters_changed();
    found.push_back(float(train(12, 8).get()[0].sum));
    found.push_back(float(first.get()[0].sum));
    train(13, 8);
    look();
    executor.release_samples();
    return found;
  };
  const std::vector<float> expected = outcome_of(1);
  for (const long steps : {2, 3, 7}) CHECK(outcome_of(steps) == expected);
}

#if !defined(__CUDACC__)
TEST_CASE("an error of steps that waited for others is thrown by what needs the device next, once") {
  have_devices(1);
  const auto check = [](auto asks) {
    trainer model{net{}, adam{}, labelled{}, one_device<cuda>{replicas(1, 0.5)}, seed(7)};
    auto source = images(45) | data::batch<8>;
    auto& executor = model.executor();
    executor.prepare(8, purpose::training);
    REQUIRE(executor.keep_samples(*source.stored()));
    executor.launch_together(3);
    std::vector<sample_index> indices(8);
    samples<float> batch;
    batch.stored = indices.data(), batch.count = 8;
    executor.train_step(batch);
    const auto lost = executor.train_step(batch);  // and a third one would launch them
    machine::fail_next_capture();
    CHECK(error_of([&] { asks(executor, batch); }) == "CUDA: a graph of a step: out of memory");
    CHECK(error_of([&] { asks(executor, batch); }) == "no error");
    CHECK(error_of([&] { lost.get(); }) ==
          "training step 2 of this executor was not computed, or too many steps have followed it");
    executor.release_samples();
  };
  check([](auto& executor, const auto& batch) { executor.train_step(batch); });
  check([](auto& executor, const auto&) { executor.parameters(); });
  check([](auto& executor, const auto&) { executor.slots(); });
}

TEST_CASE("auto_device keeps a data set as the GPU that it chooses does") {
  have_devices(1);
  const auto bytes = [](const auto& strategy) {
    auto source = images(45) | data::batch<8>;
    trainer model{net{}, adam{}, labelled{}, strategy};
    take_counts();
    model.fit(source, epochs(3), verbosity::off);
    return take_counts().bytes_to_device;
  };
  CHECK(bytes(auto_device{.on_choice = {}}) == bytes(one_device{gpu(0)}));
}
#endif

TEST_CASE("errors of data are those of batches that are streamed") {
  const auto error_with = [](double share, auto x, auto y, auto&&... options) {
    return error_of([&] {
      trained<labelled>(1, share, data::from_tensor_slices(data::array<float, image>(x), y) | data::batch<8>, options...);
    });
  };
  std::vector<float> x(20 * 24, 1);
  std::vector<int> y = classes(20);
  y[17] = 3;
  CHECK(error_with(0.5, x, y) == error_with(0, x, y));
  CHECK(error_with(0.5, x, y) == "sample 17 has the label 3, but the network has 3 classes: labels must be 0 to 2");
  y[17] = 0;
  x[10 * 24] = std::numeric_limits<float>::quiet_NaN();
  CHECK(error_with(0.5, x, y).starts_with("epoch 1, step 2: the loss is nan or infinite"));
}
