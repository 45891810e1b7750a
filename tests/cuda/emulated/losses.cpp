// Losses and their metrics against the reference in double precision: rows that one thread computes, and rows of a block.
// needs: emulated_cuda
// flags: -O0
#include "compare.hpp"

#include <strata/cuda/cuda.hpp>
#include <strata/strata.hpp>

using namespace strata;
using namespace strata::core;
using namespace strata::test;

namespace {
constexpr int count = 23, capacity = 8, leaves = 4;  // 8, 8, 7 and no samples

/// The truths of a batch: rows of positive targets that add up to about 1, in some of which the largest occurs twice; or classes.
template <int N>
struct truths {
  std::vector<double> rows = numbers(2, count* N), weights;
  std::vector<std::int32_t> labels;

  truths() {
    for (int n = 0; n < count; ++n) {
      const std::span<double> row(rows.data() + n * N, N);
      double sum = 0;
      for (double& each : row) sum += each = std::abs(each);
      for (double& each : row) each /= sum;
      if (n % 3 == 0) row[N - 1] = *std::ranges::max_element(row);
      labels.push_back(n * 7 % N), weights.push_back((n % 4 + 1) / 2.0);
    }
  }
};

/// The sum of a mean metric over a leaf.
template <class Loss, class Metric, int N>
double measured(const std::vector<double>& y, const truths<N>& truth, int leaf) {
  double sum = 0;
  for (int n = leaf * capacity; n < std::min((leaf + 1) * capacity, count); ++n) {
    const std::span<const double> row(y.data() + n * N, N);
    if constexpr (Loss::labels == label_kind::sparse)
      sum += double(Metric::measure(row, truth.labels[std::size_t(n)]));
    else
      sum += double(Metric::measure(row, std::span<const double>(truth.rows.data() + n * N, N)));
  }
  return sum;
}

/// Op: the loss, alone or fused with the activation before it. Predictions are positive if Op is a loss of probabilities.
template <class Op, class Loss, int N, class... Metrics>
void compare_size() {
  CAPTURE(N);
  using metrics = machine::metrics_of_output<Loss, double, N, Metrics...>;
  using K = kernel<cuda, Op, precision::f64, shape{N}>;
  have_devices(1);
  const machine::queue q = cuda_device(0).make_queue();
  const truths<N> truth;
  std::vector<double> x = numbers(1, count * N);
  if (std::is_same_v<Op, Loss>)
    for (double& each : x) each = std::abs(each);

  for (int n = 1; n < count; n += 4)  // equal to the prediction for the class, and at a lower index
    x[std::size_t(n * N)] = x[std::size_t(n * N + truth.labels[std::size_t(n)])] = 2;

  operands<double> o;
  o.count = count;
  std::vector<double> y(x.size()), dx(x.size()), scratch(N);
  o.x[0] = x.data(), o.y = y.data(), o.dx[0] = dx.data(), o.scratch = scratch.data();
  o.labels = truth.labels.data(), o.targets = truth.rows.data(), o.weights = truth.weights.data();
  using expected = kernel<reference, Op, precision::f64, shape{N}>;
  std::vector<double> losses;
  for (int leaf = 0; leaf < leaves; ++leaf) {
    const int first = std::min(leaf * capacity, count);
    operands<double> of_leaf = o;
    of_leaf.count = std::min(first + capacity, count) - first;
    of_leaf.x[0] += first * N, of_leaf.y += first * N, of_leaf.labels += first, of_leaf.targets += first * N,
        of_leaf.weights += first;
    double sums[2] = {};
    of_leaf.loss = sums;
    expected::forward(of_leaf);
    losses.push_back(sums[0]), losses.push_back(sums[1]);
  }
  expected::backward(o);

  const device_array<double> rows(q, truth.rows), weights(q, truth.weights),
      scratch_memory(
          q,
          std::size_t(traits_of_kernel<K>.scratch) + std::size_t(count) * std::size_t(traits_of_kernel<K>.scratch_per_sample) + 1,
          NAN);
  const device_array<std::int32_t> labels(q, std::vector<double>(truth.labels.begin(), truth.labels.end()));
  const auto run = [&](bool in_place, bool adds) {
    device_array<double> from(q, x), to(q, x.size(), NAN), gradient(q, x.size(), adds ? 1.0 : NAN), sums(q, leaves * 20, NAN);
    operands<double> on_device;
    on_device.count = count, on_device.leaves = {leaves, capacity, 0, 20};
    on_device.x[0] = in_place ? to.data() : from.data(), on_device.y = to.data(), on_device.scratch = scratch_memory.data();
    if (in_place) cuda_device(0).copy_to_device(q, std::span<const double>(x), to.data());
    K::forward(q, on_device);
    CHECK(difference(to.values(), y) < 1e-12);
    if (in_place) cuda_device(0).copy_to_device(q, std::span<const double>(x), to.data());
    on_device.labels = labels.data(), on_device.targets = rows.data(), on_device.weights = weights.data();
    on_device.loss = sums.data();
    K::forward_with(q, on_device, metrics{to.data(), labels.data(), rows.data(), sums.data() + 2, 20});
    CHECK(difference(to.values(), y) < 1e-12);
    const std::vector<double> found = sums.values();
    for (int leaf = 0; leaf < leaves; ++leaf) {
      CAPTURE(leaf);
      const double* const of_leaf = found.data() + leaf * 20;
      const double wanted[] = {losses[std::size_t(2 * leaf)], measured<Loss, Metrics>(y, truth, leaf)...};
      for (std::size_t k = 0; k < std::size(wanted); ++k) {
        CHECK(of_leaf[2 * k] == doctest::Approx(wanted[k]).epsilon(1e-12));
        CHECK(of_leaf[2 * k + 1] == losses[std::size_t(2 * leaf + 1)]);
      }
    }
    on_device.dx[0] = gradient.data(), on_device.adds_dx[0] = adds;
    K::backward(q, on_device);
    std::vector<double> wanted = dx;
    for (double& each : wanted) each += adds;
    CHECK(difference(gradient.values(), wanted) < 1e-12);
  };
  run(false, false);
  run(true, true);
}
/// Compares two sizes; the second is greater than the number of threads of a block, and no multiple of it.
template <class Op, class Loss = Op, class... Metrics>
void compare_loss() {
  INFO(Loss::name);
  compare_size<Op, Loss, 5, Metrics...>();
  compare_size<Op, Loss, 300, Metrics...>();
}

/// A loss that accepts any label.
struct lenient {
  static constexpr auto name = "lenient";
  static constexpr label_kind labels = label_kind::sparse;
  static constexpr expected_shape output_shape(shape in) { return in; }
  template <class T>
  static constexpr T value(std::span<const T>, std::int32_t label) {
    return T(label);
  }
  template <class T>
  static constexpr void gradient(std::span<const T>, std::int32_t, std::span<T> dx) {
    for (T& each : dx) each = 0;
  }
};
/// A loss that is a mean over elements, but whose measure as a metric is something else.
struct its_own_measure : mean_squared_error {
  template <class Prediction, class Truth>
  static constexpr double measure(Prediction, Truth) {
    return 2;
  }
};
/// The sum of a metric over one leaf with rows of 70 elements.
template <class Loss, class Metric>
double measured_on_device(const std::vector<double>& predictions, const std::vector<double>& labels,
                          const std::vector<double>& rows) {
  constexpr int N = 70;
  have_devices(1);
  const machine::queue q = cuda_device(0).make_queue();
  device_array<double> x(q, predictions), y(q, predictions.size(), NAN), targets(q, rows), sums(q, 4, NAN),
      scratch(q, predictions.size() + 8 * N, NAN);
  device_array<std::int32_t> truth(q, labels);
  operands<double> o;
  o.count = int(predictions.size() / N), o.leaves = {1, o.count, 0, 4};
  o.x[0] = x.data(), o.y = y.data(), o.loss = sums.data(), o.scratch = scratch.data();
  o.labels = truth.data(), o.targets = targets.data();
  kernel<cuda, Loss, precision::f64, shape{N}>::forward_with(
      q, o, machine::metrics_of_output<Loss, double, N, Metric>{y.data(), truth.data(), targets.data(), sums.data() + 2, 4});
  return sums.values()[2];
}
}  // namespace

TEST_CASE("nan, and labels that are no class: what the metric says of a row, a block says of a long one") {
  constexpr std::size_t N = 70;
  std::vector<double> given = numbers(1, N);
  given[69] = 3;
  for (const double infinite : {INFINITY, -INFINITY})
    for (const int label : {0, 3, 69}) {
      std::vector<double> row = given;
      row[3] = infinite;
      CAPTURE(infinite);
      CAPTURE(label);
      CHECK(measured_on_device<lenient, sparse_categorical_accuracy>(row, {double(label)}, row) ==
            sparse_categorical_accuracy::measure(std::span<const double>(row), label));
      CHECK(measured_on_device<lenient, sparse_top_k_categorical_accuracy<2>>(row, {double(label)}, row) ==
            sparse_top_k_categorical_accuracy<2>::measure(std::span<const double>(row), label));
    }
  for (const std::size_t nan_at : {std::size_t{0}, std::size_t{3}, std::size_t{69}, N})
    for (const int label : {0, 3, 69, -1, 70}) {
      std::vector<double> row = given;
      if (nan_at < N) row[nan_at] = NAN;
      CAPTURE(nan_at);
      CAPTURE(label);
      CHECK(measured_on_device<lenient, sparse_categorical_accuracy>(row, {double(label)}, row) ==
            sparse_categorical_accuracy::measure(std::span<const double>(row), label));
      if (label >= 0 && label < int(N))
        CHECK(measured_on_device<lenient, sparse_top_k_categorical_accuracy<70>>(row, {double(label)}, row) == (nan_at == N));
      CHECK(measured_on_device<mean_squared_error, categorical_accuracy>(given, {double(label)}, row) ==
            categorical_accuracy::measure(std::span<const double>(given), std::span<const double>(row)));
    }
}

TEST_CASE("a metric that measures in its own way is not taken for the mean of a loss over elements") {
  const std::vector<double> row = numbers(1, 70);
  CHECK(measured_on_device<mean_squared_error, its_own_measure>(row, {0}, row) == 2);
}

TEST_CASE("crossentropies of labels") {
  using of_probabilities = sparse_categorical_crossentropy<>;
  using of_logits = sparse_categorical_crossentropy<from_logits>;
  compare_loss<of_probabilities>();
  compare_loss<fused<softmax, of_probabilities>, of_probabilities, accuracy, sparse_top_k_categorical_accuracy<3>>();
  compare_loss<of_logits, of_logits, sparse_categorical_accuracy, of_logits>();
}

TEST_CASE("crossentropies of rows") {
  using of_probabilities = categorical_crossentropy<>;
  using of_logits = categorical_crossentropy<from_logits, label_smoothing<0.1_r>>;
  using smoothed = categorical_crossentropy<label_smoothing<0.1_r>>;
  compare_loss<of_probabilities>();
  compare_loss<fused<softmax, of_probabilities>, of_probabilities, accuracy, top_k_categorical_accuracy<3>, of_probabilities>();
  compare_loss<fused<softmax, smoothed>, smoothed>();
  compare_loss<of_logits, of_logits, categorical_accuracy>();
}

TEST_CASE("binary crossentropies") {
  using of_probabilities = binary_crossentropy<>;
  compare_loss<of_probabilities>();
  compare_loss<fused<sigmoid, of_probabilities>, of_probabilities, mean_squared_error, of_probabilities, binary_accuracy<>>();
  compare_loss<binary_crossentropy<from_logits>>();
}

TEST_CASE_TEMPLATE("other losses", Loss, mean_squared_error, mean_absolute_error, huber<>, log_cosh, poisson, hinge,
                   squared_hinge, kl_divergence, mean_absolute_percentage_error, mean_squared_logarithmic_error,
                   cosine_similarity, categorical_hinge, binary_focal_crossentropy<>, categorical_focal_crossentropy<>,
                   given_gradient) {
  compare_loss<Loss, Loss, Loss>();
}

TEST_CASE("more metrics than a long row has room for") {
  compare_size<mean_squared_error, mean_squared_error, 70, mean_squared_error, mean_absolute_error, huber<>, log_cosh, poisson,
               cosine_similarity, hinge, squared_hinge>();
}

TEST_CASE("a network with long rows of predictions trains to the bits of one device on several") {
  const auto trained = [](int devices) {
    have_devices(devices);
    std::vector<int> each(std::size_t(devices), 0);
    for (int i = 0; i < devices; ++i) each[std::size_t(i)] = i % machine::device_count();
    trainer model{sequential<input<4>, dense<70, softmax>>{},       sgd{},  sparse_categorical_crossentropy{}, accuracy{},
                  one_device<cuda>{{.devices = each, .leaves = 4}}, seed(3)};
    std::vector<float> x(40 * 4), predictions(40 * 70);
    std::vector<std::int32_t> labels(40);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(number(1, i));
    for (std::size_t n = 0; n < labels.size(); ++n) labels[n] = std::int32_t(n * 7 % 70);
    const double loss = model.fit(x, labels, epochs(3), batch_size(16), verbosity::off)["loss"].back();
    model.predict(x, predictions);
    predictions.push_back(float(loss));
    return predictions;
  };
  const auto first = trained(1);
  CHECK(first.back() < 4.5);  // log(70) is 4.25
  CHECK(trained(2) == first);
  CHECK(trained(4) == first);
}
