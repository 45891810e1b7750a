// A network with two inputs and two outputs: samples, plan, engines and executors take any number of ends.
// flags: -ffp-contract=off
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <span>
#include <strata/communicators/in_process.hpp>
#include <strata/strata.hpp>
#include <strata/synchronous/among_processes.hpp>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "error_of.hpp"
#include "gradient_check.hpp"
#include "toy_engine.hpp"
#include "two_by_two.hpp"

using namespace strata;
using namespace strata::core;
using namespace strata::test;

namespace {
using plain = program_of_two<false, adam, precision::f32>;
using normalized = program_of_two<true, adam, precision::f32>;

constexpr end_sizes ends{.input_count = 2, .output_count = 2, .inputs = {6, 3}, .outputs = {3, 2}};
static_assert(ends_of_program<plain>.input_count == 2 && ends_of_program<plain>.output_count == 2);
static_assert(ends_of_program<plain>.inputs[0] == 6 && ends_of_program<plain>.inputs[1] == 3);
static_assert(ends_of_program<plain>.outputs[0] == 3 && ends_of_program<plain>.outputs[1] == 2);

// Groups refer to input k as -1 - k, also through views, and losses have the index of their output.
constexpr const auto& plan = plan_of<plain, reference>;
static_assert(plan.input_count == 2 && plan.output_count == 2);
static_assert(plan.groups[0].input[0] == -1);
static_assert([] {
  int readers[2] = {};
  for (int g = 0; g < plan.group_count; ++g)
    for (int k = 0; k < plan.groups[g].arity; ++k)
      if (const int from = plan.groups[g].input[k]; from < 0) ++readers[-1 - from];
  return readers[0] == 1 && readers[1] == 1;
}());
static_assert(plan.groups[plan.output_group[0]].number_of_output == 0 && plan.groups[plan.output_group[0]].size == 3);
static_assert(plan.groups[plan.output_group[1]].number_of_output == 1 && plan.groups[plan.output_group[1]].size == 2);
static_assert(plan.groups[plan.output_group[0]].count == 2, "softmax is computed with its loss although it is not the last one");
static_assert(plan_of<normalized, cpu>.segment_count == 2);

static_assert(row_tables_of_program<plain>.size() == 1 && row_tables_of_program<plain>[0].names.input == 1);
static_assert(std::tuple_size_v<metric_sums<plain>> == 1 + 2 + 3);

template <class T>
struct two_by_two_batch {
  int count;
  std::vector<T> numbers, words, targets;
  std::vector<std::int32_t> labels;

  explicit two_by_two_batch(int count)
      : count(count),
        numbers(random_numbers<T>(std::size_t(count) * 6, 1)),
        words(std::size_t(count) * 3),
        targets(random_numbers<T>(std::size_t(count) * 2, 2)),
        labels(std::size_t(count)) {
    for (std::size_t i = 0; i < words.size(); ++i) words[i] = T(philox{3}(i)[0] % 7);
    for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = std::int32_t(philox{4}(i)[0] % 3);
  }
  samples<T> view() const {
    samples<T> all;
    all.inputs[0] = numbers.data(), all.inputs[1] = words.data();
    all.truths[0].labels = labels.data(), all.truths[1].targets = targets.data();
    all.count = count;
    return all;
  }
};

struct outcome {
  std::vector<float> weights, classes, values;
  std::vector<double> sums;

  bool operator==(const outcome& o) const {
    return std::memcmp(weights.data(), o.weights.data(), weights.size() * sizeof(float)) == 0 && classes == o.classes &&
           values == o.values && sums == o.sums;
  }
};

/// Runs some steps, the last one with fewer samples; then an evaluation and predictions.
template <class Program>
outcome trained(auto& executor) {
  const two_by_two_batch<float> data(46);
  const samples<float> all = data.view();
  outcome out;
  const auto note = [&](const metric_sums<Program>& sums) {
    for (const metric_sum& each : sums) out.sums.push_back(each.sum), out.sums.push_back(each.count);
  };
  executor.prepare(20, purpose::training), executor.prepare(46, purpose::inference);
  for (int epoch = 0; epoch < 3; ++epoch)
    for (int at = 0; at < 46; at += 20) note(executor.train_step(all.rows(at, 20, ends)));
  samples<float> weighted = all;
  weighted.truths[0].gradient_weights = data.numbers.data();
  note(executor.train_step(weighted.rows(20, 20, ends)));
  note(executor.evaluate_step(all));
  out.classes.resize(46 * 3), out.values.resize(46 * 2);
  output_rows<float> to;
  to.at[0] = out.classes.data(), to.at[1] = out.values.data();
  executor.predict(all, to);
  out.weights.assign(executor.parameters().begin(), executor.parameters().end());
  return out;
}
template <class Program, class Backend>
outcome trained_on(compute_options how) {
  synchronous_executor<Program, Backend> executor(adam{.learning_rate = 0.01}, 3, how);
  return trained<Program>(executor);
}

/// Counts the elements that are allocated.
struct counting_device : host_device {
  static inline std::size_t numbers = 0, labels = 0;
  template <class T>
  static buffer<T> allocate(std::size_t size) {
    (std::is_same_v<T, std::int32_t> ? labels : numbers) += size;
    return buffer<T>(size);
  }
};
}  // namespace

TEST_CASE("a device has memory for what the network and each loss read, and gets nothing else") {
  device_batch<float, counting_device> memory(ends_of_program<plain>, truths_of_program<plain>);
  memory.grow({}, 10);
  CHECK(counting_device::numbers == 10 * (6 + 3 + 2));
  CHECK(counting_device::labels == 10);
  const two_by_two_batch<float> data(10);
  samples<float> batch = data.view();
  batch.truths[0].targets = data.targets.data(), batch.truths[1].labels = data.labels.data();
  const samples<float> there = memory.copy({}, {}, batch);
  CHECK(std::ranges::equal(std::span(there.truths[0].labels, 10), data.labels));
  CHECK(std::ranges::equal(std::span(there.truths[1].targets, 20), data.targets));
  CHECK(there.truths[0].targets == nullptr);
  CHECK(there.truths[1].labels == nullptr);
  CHECK(there.truths[0].weights == nullptr);

  batch.truths[1].weights = data.numbers.data();
  const samples<float> weighted = memory.copy({}, {}, batch);
  CHECK(counting_device::numbers == 10 * (6 + 3 + 2 + 1));
  CHECK(weighted.truths[0].weights == nullptr);
  CHECK(std::ranges::equal(std::span(weighted.truths[1].weights, 10), std::span(data.numbers).first(10)));
  CHECK(weighted.rows(4, 3, ends).truths[1].weights == weighted.truths[1].weights + 4);

  batch.truths[0].gradient_weights = data.numbers.data() + 7;
  const samples<float> both = memory.copy({}, {}, batch);
  CHECK(std::ranges::equal(std::span(both.truths[0].gradient_weights, 10), std::span(data.numbers).subspan(7, 10)));
  CHECK(std::ranges::equal(std::span(both.truths[1].weights, 10), std::span(data.numbers).first(10)));
  CHECK(both.truths[1].gradient_weights == nullptr);
  CHECK(both.rows(4, 3, ends).truths[0].gradient_weights == both.truths[0].gradient_weights + 4);
}

TEST_CASE("rows cuts every input and the truth at every output, as far as samples exist") {
  const two_by_two_batch<float> data(10);
  const samples<float> all = data.view(), some = all.rows(4, 3, ends), rest = all.rows(8, 3, ends), none = all.rows(12, 3, ends);
  CHECK(some.count == 3);
  CHECK(some.inputs[0] == data.numbers.data() + 4 * 6);
  CHECK(some.inputs[1] == data.words.data() + 4 * 3);
  CHECK(some.truths[0].labels == data.labels.data() + 4);
  CHECK(some.truths[0].targets == nullptr);
  CHECK(some.truths[1].targets == data.targets.data() + 4 * 2);
  CHECK(some.truths[1].labels == nullptr);
  CHECK(rest.count == 2);
  CHECK(none.count == 0);
}

TEST_CASE_TEMPLATE("two inputs and two outputs: the gradients are the differences of the loss, which is the sum of both", Backend,
                   reference, cpu) {
  const two_by_two_batch<double> data(8);
  check_gradients_of<program_of_two<false, keep_gradient, precision::f64>, Backend>(data.view());
  check_gradients_of<program_of_two<true, keep_gradient, precision::f64>, Backend>(data.view());
}

TEST_CASE_TEMPLATE("the sums are the loss, the loss of each output, then the metrics of each output", Program, plain,
                   normalized) {
  synchronous_executor<Program, cpu> executor(adam{}, 3, {.threads = 2, .leaves = 4});
  const two_by_two_batch<float> data(30);
  executor.prepare(30, purpose::inference);
  const metric_sums<Program> sums = executor.evaluate_step(data.view());
  std::vector<float> classes(30 * 3), values(30 * 2);
  output_rows<float> to;
  to.at[0] = classes.data(), to.at[1] = values.data();
  executor.predict(data.view(), to);

  double entropy = 0, right = 0, squares = 0, distances = 0;
  for (std::size_t n = 0; n < 30; ++n) {
    const std::span<const float> one(classes.data() + 3 * n, 3), two(values.data() + 2 * n, 2),
        truth(data.targets.data() + 2 * n, 2);
    entropy -= std::log(double(one[std::size_t(data.labels[n])]));
    right += sparse_categorical_accuracy::measure(one, data.labels[n]);
    squares += double(mean_squared_error::value(two, truth)), distances += double(mean_absolute_error::value(two, truth));
  }
  CHECK(sums[0].sum == sums[1].sum + sums[2].sum);
  CHECK(sums[1].sum == doctest::Approx(entropy));
  CHECK(sums[2].sum == doctest::Approx(squares));
  CHECK(sums[3].sum == right);
  CHECK(sums[4].sum == doctest::Approx(distances));
  CHECK(sums[5].sum == doctest::Approx(squares));
  for (const metric_sum& each : sums) CHECK(each.count == 30);
}

TEST_CASE_TEMPLATE("any number of threads, a device of its own and several processes train to the same bits", Program, plain,
                   normalized) {
  const outcome expected = trained_on<Program, reference>({.threads = 1, .leaves = 4});
  CHECK(trained_on<Program, reference>({.threads = 3, .leaves = 4}) == expected);
  CHECK(trained_on<Program, toy>({.leaves = 4}) == expected);
  CHECK(trained_on<Program, cpu>({.threads = 1, .leaves = 4}) == trained_on<Program, cpu>({.threads = 3, .leaves = 4}));

  std::vector<std::string> failures(3, "");
  std::vector<std::thread> threads;
  for (in_process& member : in_process::group(3))
    threads.emplace_back([&, member] {
      std::string& failure = failures[std::size_t(member.rank())];
      try {
        synchronous_executor<Program, reference, in_process> executor(adam{.learning_rate = 0.01}, 3, {.leaves = 4}, member);
        if (!(trained<Program>(executor) == expected)) failure = "other bits";
      } catch (const std::exception& e) {
        failure = e.what();
      }
    });
  for (auto& t : threads) t.join();
  for (const auto& f : failures) CHECK(f == "");
}

TEST_CASE("a number that is no row is found in the input that the table reads") {
  two_by_two_batch<float> data(4);
  data.numbers[0] = 100;  // of the other input
  CHECK(error_of([&] { refuse_other_rows<plain>(data.view(), {0, 4}); }) == "no error");
  data.words[3 * 2 + 1] = 7;
  CHECK(error_of([&] { refuse_other_rows<plain>(data.view(), {0, 4}); }) ==
        "sample 2 has the number 7 in element 1, but embedding has 7 rows: it takes whole numbers from 0 to 6");
}
