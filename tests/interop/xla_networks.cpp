// The other half of test_xla_networks.py: networks that together have most layers, trained as modules of StableHLO on a PJRT
// plugin and by the reference kernels. A line for each comparison.
#include <strata/optimizers/ema.hpp>
#include <strata/program/device_batch.hpp>
#include <strata/program/row_tables.hpp>
#include <strata/strata.hpp>
#include <strata/synchronous/synchronous.hpp>
#include <strata/xla/xla.hpp>
#include <type_traits>

#include "../unit/two_by_two.hpp"
#include "xla_numbers.hpp"
#include "xla_test_networks.hpp"

using namespace strata;
using namespace strata::core;
using xla_numbers::numbers;
using namespace xla_networks;

namespace {

/// A batch of `count` random samples.
template <class Program>
struct random_batch {
  using T = typename Program::value_type;
  static constexpr const end_sizes& ends = ends_of_program<Program>;
  std::vector<T> inputs[max_ends], targets[max_ends], weights[max_ends];
  std::vector<std::int32_t> labels[max_ends];
  samples<T> rows;

  random_batch(int count, std::uint64_t step, bool weighted) {
    rows.count = count;
    const auto fill = [&](std::vector<T>& to, long size, std::uint64_t stream, double low, double high) {
      for (double x : xla_numbers::random_numbers(std::size_t(count * size), stream * 97 + step, low, high)) to.push_back(T(x));
      return to.data();
    };
    for (int k = 0; k < ends.input_count; ++k) {
      rows.inputs[k] = fill(inputs[k], ends.inputs[k], std::uint64_t(k), -1, 1);
      for (const auto& table : row_tables_of_program<Program>)
        if (table.names.input == k)
          for_each_row_name(table, inputs[k].data(), ends.inputs[k], {0, count},
                            [](T& x, long, long) { x = std::floor(std::abs(x) * T(6.9)); });
    }
    for (int k = 0; k < ends.output_count; ++k) {
      rows.truths[k].targets = fill(targets[k], ends.outputs[k], 20 + std::uint64_t(k), 0, 1);
      if (truths_of_program<Program>[std::size_t(k)] == label_kind::sparse) {
        for (int i = 0; i < count; ++i)
          labels[k].push_back(std::int32_t(double(targets[k][std::size_t(i)]) * double(ends.outputs[k])));
        rows.truths[k].labels = labels[k].data(), rows.truths[k].targets = nullptr;
      }
      if (weighted) rows.truths[k].weights = fill(weights[k], 1, 40 + std::uint64_t(k), 0, 2);
    }
  }
};

/// Results and state of a program after steps of several sizes, the last ones with sample weights.
template <class Program>
struct outcome {
  numbers sums, weights, slots, evaluation, predictions;

  explicit outcome(auto&& executor) {
    using T = typename Program::value_type;
    executor.prepare(16, purpose::training);
    executor.prepare(16, purpose::inference);
    const auto keep = [](numbers& to, const metric_sums<Program>& all) {
      for (const metric_sum& s : all) to.push_back(s.sum), to.push_back(s.count);
    };
    std::uint64_t step = 0;
    for (const int count : {16, 16, 13, 16, 9}) {
      const random_batch<Program> batch(count, step, step > 2);
      keep(sums, step_result<Program>(executor.train_step(batch.rows)).get());
      ++step;
    }
    keep(sums, executor.finish());
    for (const T w : executor.parameters()) weights.push_back(double(w));
    for (const T s : executor.slots()) slots.push_back(double(s));
    const random_batch<Program> batch(11, 77, true);
    keep(evaluation, executor.evaluate_step(batch.rows));
    output_rows<T> out;
    std::vector<T> rows[max_ends];
    for (int k = 0; k < ends_of_program<Program>.output_count; ++k) {
      rows[k].resize(std::size_t(11 * ends_of_program<Program>.outputs[k]));
      out.at[k] = rows[k].data();
    }
    executor.predict(batch.rows, out);
    for (const auto& row : rows) predictions.insert(predictions.end(), row.begin(), row.end());
  }
};

template <class Program>
void compare(const std::string& name, const typename Program::optimizer& optimizer, std::initializer_list<int> replicas,
             double tolerance = 1e-9) {
  const outcome<Program> expected(synchronous_executor<Program, reference>(optimizer, 7));
  for (const int r : replicas) {
    const outcome<Program> got(xla{.plugin = {}, .replicas = r}.template make<Program>(optimizer, 7));
    const std::string what = name + ", " + std::to_string(r) + (r > 1 ? " replicas, " : " replica, ");
    xla_numbers::report(what + "sums", got.sums, expected.sums, tolerance);
    xla_numbers::report(what + "weights", got.weights, expected.weights, tolerance);
    xla_numbers::report(what + "slots", got.slots, expected.slots, tolerance);
    xla_numbers::report(what + "evaluation", got.evaluation, expected.evaluation, tolerance);
    xla_numbers::report(what + "predictions", got.predictions, expected.predictions, tolerance);
  }
}

using transferred =
    sequential<input<8, 8, 2>, frozen<conv2d<3, 3, relu>, batch_norm<>>, conv2d<2, 3, softplus>, flatten, dense<2>>;

/// An activation, a loss and a metric as a user would write them.
struct hard_swish : detail::elementwise_function {
  static constexpr auto name = "hard_swish";
  static constexpr bool uses_input = true, uses_output = false;
  template <class T>
  static constexpr T value(T x) {
    return x < -3 ? T(0) : x > 3 ? x : x * (x + 3) / 6;
  }
  template <class T>
  static constexpr T derivative(T x, T) {
    return x < -3 ? T(0) : x > 3 ? T(1) : x / 3 + T(0.5);
  }
};
/// An activation that is not finite where its input is 0.
struct log_of_square : detail::elementwise_function {
  static constexpr auto name = "log_of_square";
  static constexpr bool uses_input = true, uses_output = false;
  template <class T>
  static T value(T x) {
    using std::log;
    return log(x * x);
  }
  template <class T>
  static constexpr T derivative(T x, T) {
    return 2 / x;
  }
};
struct largest_error {
  static constexpr auto name = "largest_error";
  static constexpr label_kind labels = label_kind::dense;
  static constexpr expected_shape output_shape(shape in) { return in; }
  template <class T>
  static constexpr T value(std::span<const T> prediction, std::span<const T> truth) {
    T largest = 0;
    for (std::size_t i = 0; i < prediction.size(); ++i) {
      const T error = prediction[i] - truth[i];
      if (error * error > largest) largest = error * error;
    }
    return largest;
  }
  template <class T>
  static constexpr void gradient(std::span<const T> prediction, std::span<const T> truth, std::span<T> dx) {
    const T largest = value(prediction, truth);
    for (std::size_t i = 0; i < prediction.size(); ++i) {
      const T error = prediction[i] - truth[i];
      dx[i] = error * error == largest ? 2 * error : T(0);
    }
  }
};
/// A loss that is a mean over more elements than the number of comparisons allowed in a formula.
struct pinball {
  static constexpr auto name = "pinball";
  static constexpr label_kind labels = label_kind::dense;
  static constexpr operation_traits traits{.is_mean_of_elements = true};
  static constexpr expected_shape output_shape(shape in) { return in; }
  template <class T>
  static constexpr T value(std::span<const T> prediction, std::span<const T> truth) {
    using std::max;
    T sum{};
    for (std::size_t i = 0; i < prediction.size(); ++i) {
      const T error = truth[i] - prediction[i];
      sum += max(T(0.9) * error, T(-0.1) * error);
    }
    return sum / T(prediction.size());
  }
  template <class T>
  static constexpr void gradient(std::span<const T> prediction, std::span<const T> truth, std::span<T> dx) {
    for (std::size_t i = 0; i < prediction.size(); ++i)
      dx[i] = (truth[i] > prediction[i] ? T(-0.9) : T(0.1)) / T(prediction.size());
  }
};
struct all_too_small {
  static constexpr auto name = "all_too_small";
  template <class T>
  static constexpr double measure(std::span<const T> prediction, std::span<const T> truth) {
    for (std::size_t i = 0; i < prediction.size(); ++i)
      if (prediction[i] >= truth[i]) return 0;
    return 1;
  }
};
using of_users = sequential<input<6>, dense<8, hard_swish>, dense<3>>;
using quantiles = sequential<input<6>, dense<20>>;
using logarithms = sequential<input<6>, activation<log_of_square>, dense<4, no_bias, log_of_square>, batch_norm<>, dense<3>>;

template <class Network, class Loss, class Optimizer, class... Metrics>
using exact = program<Network, Loss, Optimizer, type_list<Metrics...>, precision::f64>;

}  // namespace

int main() try {
  compare<exact<images, sparse_categorical_crossentropy<>, adam, accuracy, auc<num_thresholds<20>>>>(
      "images", adam{.weight_decay = 0.01, .global_clipnorm = 0.5}, {2});
  compare<exact<words, binary_crossentropy<>, lamb, accuracy, recall<>>>("words", lamb{}, {3});
  compare<exact<transferred, mean_squared_error, ema<adafactor>, r2_score>>("transferred",
                                                                            ema{adafactor{.learning_rate = 0.1}, 0.9}, {1});
  compare<exact<of_users, largest_error, sgd, all_too_small>>("of users", sgd{.learning_rate = 0.1, .momentum = 0.9}, {1});
  compare<exact<quantiles, pinball, sgd>>("quantiles", sgd{.learning_rate = 0.1}, {1});
  compare<exact<logarithms, mean_squared_error, sgd, r2_score>>("logarithms", sgd{.learning_rate = 1e-4}, {1, 5});
  compare<test::program_of_two<true, adam, precision::f64>>("two inputs and outputs", adam{}, {2});
  // First in float, then with the operands of products rounded to bfloat16.
  compare<program<words, binary_crossentropy<>, sgd, type_list<accuracy>>>("float", sgd{.learning_rate = 0.1}, {1}, 1e-5);
  compare<program<transferred, mean_squared_error, sgd, type_list<>, precision::mixed_bf16>>("mixed_bf16", sgd{}, {1}, 2e-2);
} catch (const std::exception& e) {
  std::printf("BAD %s\n", e.what());
}
