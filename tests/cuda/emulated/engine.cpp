// Training on emulated GPUs: results as those of the reference, and the same bits for any number of devices and any order of
// their work.
// needs: emulated_cuda
#include "compare.hpp"

#include <cmath>
#include <cstring>
#include <strata/communicators/in_process.hpp>
#include <strata/cpu/engine/weight_update.hpp>
#include <strata/cuda/cuda.hpp>
#include <strata/distribute/synchronous_among.hpp>
#include <strata/strata.hpp>
#include <string>
#include <thread>

using namespace strata;
using namespace strata::core;
using namespace strata::test;

namespace {
using mlp = sequential<input<6>, dense<8, elu<>>, dropout<0.25_r>, dense<3, softmax>>;
using normalized = sequential<input<6, 6, 1>, conv2d<4, 3>, batch_norm<>, activation<relu>, max_pool2d<>, flatten, dense<5>,
                              batch_norm<no_scale>, activation<tanh_activation>, dense<3, softmax>>;
using branched = sequential<input<4, 4, 2>, residual<conv2d<2, 3, same_padding>, layer_norm<>>, conv2d_transpose<3, 2, stride<2>>,
                            global_average_pool2d, dense<5, gelu>, dense<3>, activation<softmax>>;

struct outcome {
  std::vector<float> weights, slots, gradient, predictions;
  double loss = 0, val_loss = 0, val_accuracy = 0;
};
bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}
bool operator==(const outcome& a, const outcome& b) {
  return same_bits(a.weights, b.weights) && same_bits(a.slots, b.slots) && same_bits(a.gradient, b.gradient) &&
         same_bits(a.predictions, b.predictions) && a.loss == b.loss && a.val_loss == b.val_loss &&
         a.val_accuracy == b.val_accuracy;
}
double distance(const std::vector<float>& a, const std::vector<float>& b) {
  return difference(a, std::vector<double>(b.begin(), b.end()));
}

/// Some steps with a short last batch, then evaluation and prediction.
template <class Network, class Optimizer>
outcome trained(const auto& strategy, const Optimizer& optimizer, const std::string& frozen = "", bool keeps_gradient = true) {
  constexpr std::size_t size = std::size_t(Network::input_shape.size()), count = 46;
  std::vector<float> x(count * size);
  std::vector<std::int32_t> labels(count);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(philox{3}.uniform(i) - 0.5);
  for (std::size_t i = 0; i < count; ++i) labels[i] = int(i % 3);
  trainer model{Network{}, optimizer, sparse_categorical_crossentropy{}, accuracy{}, strategy, seed(7)};
  if (!frozen.empty()) model.set_trainable(frozen, false);
  model.executor().keep_gradient(keeps_gradient);
  outcome out;
  out.loss = model.fit(x, labels, epochs(3), batch_size(20), shuffle(false), verbosity::off)["loss"].back();
  const logs after = model.evaluate(x, labels);
  out.val_loss = after["loss"], out.val_accuracy = after["accuracy"];
  out.predictions.resize(count * 3);
  model.predict(x, out.predictions);
  auto& executor = const_cast<std::remove_const_t<std::remove_reference_t<decltype(model.executor())>>&>(model.executor());
  const auto w = executor.parameters(), s = executor.slots();
  const auto g = executor.gradient();
  out.gradient.assign(g.begin(), g.end());
  out.weights.assign(w.begin(), w.end()), out.slots.assign(s.begin(), s.end());
  return out;
}

/// A strategy with that many devices; if there are fewer, some are used several times. Batches have four leaves.
one_device<cuda> on_devices(int count) {
  cuda_options options{.devices = {}, .leaves = 4};
  for (int i = 0; i < count; ++i) options.devices.push_back(i % machine::device_count());
  return {options};
}

template <class Network, class Optimizer = adam>
void check(const Optimizer& optimizer = {}, const std::string& frozen = "", double tolerance = 1e-4) {
  const outcome expected = trained<Network>(one_device<reference>{{.threads = 1, .leaves = 4}}, optimizer, frozen);
  have_devices(1);
  const outcome one = trained<Network>(on_devices(1), optimizer, frozen);
  CHECK(distance(one.weights, expected.weights) < tolerance);
  CHECK(distance(one.predictions, expected.predictions) < tolerance);
  CHECK(distance(one.gradient, expected.gradient) < 10 * tolerance);
  CHECK(one.loss == doctest::Approx(expected.loss).epsilon(tolerance));
  CHECK(one.val_loss == doctest::Approx(expected.val_loss).epsilon(tolerance));
#if defined(__CUDACC__)
  CHECK(std::abs(one.val_accuracy - expected.val_accuracy) < 1.5 / 46);  // two classes of a sample have nearly one probability
#else
  CHECK(one.val_accuracy == expected.val_accuracy);
#endif
  for (const int devices : {2, 3, 4, 8})
    for (const std::uint64_t order : {1u, 2u}) {
      CAPTURE(devices);
      have_devices(devices, order);
      CHECK(trained<Network>(on_devices(devices), optimizer, frozen) == one);
    }
}
}  // namespace

TEST_CASE("a thread adds up leaves in the tree over them") {
  const auto value = [](int l) { return 1 / (l + 1.3) + l % 7 * 1e-3; };
  for (int leaves = 1; leaves <= 100; ++leaves)
    CHECK(machine::sum_over_leaves<double>(leaves, value) == sum_in_tree(value, 0, leaves));
}

TEST_CASE("networks train on emulated devices as the reference does") {
  check<mlp>();
  check<normalized>(adam{}, "", 1e-3);
  check<branched>(adam{}, "", 5e-4);
}

TEST_CASE("with layers that are frozen at run time") {
  check<mlp>(adam{}, "dense");
  check<mlp>(adam{}, "dense_1");
  check<normalized>(adam{}, "conv2d");
}

TEST_CASE("with every optimizer") {
  check<mlp>(sgd{.learning_rate = 0.1, .momentum = 0.9, .nesterov = true});
  check<mlp>(adamw{});
  check<mlp>(adamax{});
  check<mlp>(nadam{});
  check<mlp>(rmsprop{.momentum = 0.9, .centered = true});
  check<mlp>(adagrad{});
  check<mlp>(adadelta{.learning_rate = 1});
  check<mlp>(ftrl{});
  check<mlp>(lion{});
  check<mlp>(lamb{});
  check<mlp>(adafactor{.learning_rate = 0.01});
  check<normalized>(adafactor{.learning_rate = 0.01});
  // Because of the padding, rows of the first matrix have no gradient; because of what the pooling drops, columns of the second.
  check<sequential<input<6>, reshape<1, 2, 3>, zero_padding2d<1>, flatten, dense<9>, reshape<3, 3, 1>, average_pool2d<2>, flatten,
                   dense<3, softmax>>>(adafactor{.learning_rate = 0.01});
}

TEST_CASE("with clipping and weight decay") {
  check<mlp>(adam{.weight_decay = 0.1, .clipvalue = 0.01});
  check<mlp>(sgd{.learning_rate = 0.1, .clipnorm = 0.05});
  check<mlp>(sgd{.learning_rate = 0.1, .global_clipnorm = 0.05});
  check<mlp>(lamb{.global_clipnorm = 0.05});
}

TEST_CASE("norms of large parameters, by several blocks, have the bits of the CPU") {
  have_devices(1);
  const cuda_device on(0);
  const machine::queue q = on.make_queue();
  // The second begins within a piece and ends in another; the third is frozen; padding is not read. The last one has more pieces
  // than a block fetches at a time.
  std::vector<parameter_range> ranges(5);
  long at = 0;
  for (std::size_t k = 0; const long elements : {9L, 5003L, 2048L, 1024L, 2 * norm_piece * machine::add_pieces::at_once + 5003}) {
    ranges[k].begin = at, ranges[k].elements = elements, ranges[k].frozen = k == 2;
    ranges[k].end = at = (at + elements + 15) / 16 * 16;
    ++k;
  }
  std::vector<float> values(static_cast<std::size_t>(at));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = float(number(5, i));
  std::vector<double> expected;
  for (const parameter_range& p : ranges) {
    double sum = 0;
    for (long begin = p.begin, end; begin < p.begin + p.elements && !p.frozen; begin = end) {
      end = std::min(p.begin + p.elements, (begin / norm_piece + 1) * norm_piece);
      sum += detail::sum_over(values.data(), begin, end, [](simd::vec<double> x) { return detail::product(x, x); });
    }
    expected.push_back(sum);
  }
  std::vector<long> begins;
  for (const parameter_range& p : ranges) begins.push_back(p.begin);
  for (const long shift : {0, 1040}) {  // the arena of a device may have other parameters in front
    CAPTURE(shift);
    for (std::size_t k = 0; k < ranges.size(); ++k) ranges[k].begin += shift, ranges[k].end += shift;
    values.insert(values.begin(), std::size_t(shift), 7.0f);
    cuda_update<float> update(on, q, ranges, begins);
    const auto gradient = on.allocate<float>(values.size()), weights = on.allocate<float>(values.size());
    const auto numbers = on.allocate<update_numbers<float>>(1);
    on.copy_to_device(q, std::span<const float>(values), gradient.data());
    float* arrays[] = {gradient.data()};
    update.tell_arrays(arrays);
    update.take_norms(sgd{.clipnorm = 1}, numbers.data(),
                      whole_batch_reduction::reduce(leaf_gradients<float, cuda_device>{arrays, 1, 0, 1, 1}, 1), weights.data());
    std::vector<double> found(ranges.size());
    on.copy_to_host(q, update.norms(), std::span(found));
    on.wait(q);
    CHECK(found == expected);
  }
}

TEST_CASE("with regularizers") {
  using penalized =
      sequential<input<6>, dense<8, relu, kernel_regularizer<l2<0.01_r>>>, dense<3, softmax, bias_regularizer<l1<0.02_r>>>>;
  check<penalized>();
  check<penalized>(sgd{.learning_rate = 0.1, .clipnorm = 0.05});
}

TEST_CASE("several processes, each with a GPU or two") {
  have_devices(1);
  const outcome one = trained<normalized>(on_devices(1), adam{}, "", false);
  for (const auto& [gpus, order] : {std::pair{1, 1}, std::pair{2, 1}, std::pair{2, 2}, std::pair{2, 3}}) {
    const int devices = gpus;  // clang++ 14 captures no structured bindings
    CAPTURE(devices);
    have_devices(4, std::uint64_t(order));
    std::vector<std::string> failures(2, "");
    std::vector<outcome> outcomes(2);
    std::vector<std::thread> threads;
    for (in_process& member : in_process::group(2))
      threads.emplace_back([&, member] {
        try {
          cuda_options own = on_devices(devices).options;
          for (int& each : own.devices) each = (each + 2 * member.rank()) % machine::device_count();
          outcomes[std::size_t(member.rank())] =
              trained<normalized>(synchronous_among<in_process, cuda>{member, own, {}}, adam{}, "", false);
        } catch (const std::exception& e) {
          failures[std::size_t(member.rank())] = e.what();
        }
      });
    for (auto& t : threads) t.join();
    for (const auto& f : failures) CHECK(f == "");
    for (const outcome& o : outcomes) CHECK(o == one);
  }
}
