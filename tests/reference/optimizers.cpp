// Ten steps of each optimizer, through the executor, against the recordings.
#include <numeric>
#include <strata/cpu/cpu.hpp>
#include <strata/losses/mean_squared_error.hpp>
#include <strata/optimizers/schedules.hpp>
#include <strata/synchronous/synchronous.hpp>

#include "recorded.hpp"
#include "some_optimizer.hpp"

using namespace strata;
using namespace strata::core;
using namespace strata::test;

static recording recorded("optimizers");

namespace {

/// Two parameters whose gradients are the elements of the sample: 21 for the kernel, 3 for the bias.
struct given_gradients {
  static constexpr auto name = "given_gradients";
  static constexpr expected_shape output_shape(shape) { return shape{1}; }
  static constexpr auto parameters(shape) {
    return std::array{parameter{"kernel", {7, 3}, &info_of_initializer<zeros>},
                      parameter{"bias", {3}, &info_of_initializer<zeros>}};
  }
};

}  // namespace

template <class P, shape In>
struct strata::core::kernel<reference, given_gradients, P, In> {
  using T = typename P::value_type;
  static void forward(const operands<T>& o) { std::fill_n(o.y, o.count, T{}); }
  static void backward(const operands<T>& o) {
    T* const kernel = strata::detail::begin_weight_gradient(o, 0, 21);
    T* const bias = strata::detail::begin_weight_gradient(o, 1, 3);
    for (int n = 0; n < o.count; ++n) {
      for (int i = 0; i < 21; ++i) kernel[i] += o.x[0][24 * n + i];
      for (int i = 0; i < 3; ++i) bias[i] += o.x[0][24 * n + 21 + i];
    }
  }
};

namespace {

/// The recordings of Keras in float differ by at most 7e-7 from those in double; weights are below 1.
template <class T>
constexpr double tolerance = sizeof(T) == 4 ? 2e-6 : 1e-13;

/// A slot by its recorded name. `start`: the initial value of Keras' slot; strata's is zero.
struct slot {
  const char* name;
  double start;
  bool factored = false;  // strata keeps only the moments of rows and columns, Keras also the result for each element
  slot(const char* name, double start = 0) : name(name), start(start) {}
  static slot of_moments(const char* name) {
    slot one(name);
    one.factored = true;
    return one;
  }
};

/// Compares with a recording; `slots` has the order of the arenas.
template <class Precision>
void check_in(const std::string& name, const some_optimizer& optimizer, std::span<const slot> slots) {
  using T = typename Precision::value_type;
  using P = program<sequential<input<24>, given_gradients>, mean_squared_error, some_optimizer, type_list<>, Precision>;
  constexpr const auto& layout = layout_of_program<P>;
  constexpr std::size_t count = 8;  // samples, all equal: their mean is exact
  INFO(name << ", " << sizeof(T) << " bytes");
  optimizer.validate();
  synchronous_executor<P, cpu> executor(optimizer, 1, {.threads = 2, .leaves = 4});
  executor.prepare(int(count), purpose::training);

  struct block {
    std::string name;
    long offset;
    std::size_t size;
  };
  const block blocks[] = {{"kernel", layout.slots[0].offset, 21}, {"bias", layout.slots[1].offset, 3}};
  std::vector<std::vector<T>> gradients;
  std::vector<std::vector<double>> expected;
  for (const block& b : blocks) {
    std::ranges::copy(recorded.tensor<T>("initial/" + b.name), executor.parameters().begin() + b.offset);
    gradients.push_back(recorded.tensor<T>("gradients/" + b.name));
    expected.push_back(recorded.tensor(name + '/' + b.name));
  }
  executor.parameters_changed();

  for (std::size_t step = 0; step < 10; ++step) {
    std::vector<T> x, targets(count);
    for (std::size_t n = 0; n < count; ++n)
      for (std::size_t b = 0; b < 2; ++b) {
        const auto now = std::span(gradients[b]).subspan(step * blocks[b].size, blocks[b].size);
        x.insert(x.end(), now.begin(), now.end());
      }
    executor.train_step({x.data(), targets.data(), int(count)});
    for (std::size_t b = 0; b < 2; ++b)
      for (std::size_t i = 0; i < blocks[b].size; ++i) {
        INFO(blocks[b].name << '[' << i << "] after step " << step);
        const double weight = executor.parameters()[std::size_t(blocks[b].offset) + i];
        CHECK(std::abs(weight - expected[b][step * blocks[b].size + i]) <= tolerance<T>);
      }
  }
  REQUIRE(int(slots.size()) == optimizer.slots());
  for (std::size_t k = 0; k < slots.size(); ++k)
    for (const block& b : blocks) {
      const std::string slot = name + "/slots/" + slots[k].name + '/' + b.name;
      const std::span<const T> kept = executor.slots().subspan(k * std::size_t(layout.trainable) + std::size_t(b.offset), b.size);
      std::vector<T> got(kept.begin(), kept.end());
      for (T& value : got) value += T(slots[k].start);
      if (slots[k].factored && b.size == 21) {
        const std::vector<T> moments = got;  // of 7 rows, then of 3 columns
        const double sum = std::accumulate(moments.begin(), moments.begin() + 7, 0.0);
        for (std::size_t i = 0; i < 21; ++i) got[i] = T(double(moments[i / 3]) * double(moments[7 + i % 3]) / (sum / 7));
      }
      compare<T>(slot, std::span<const T>(got), recorded.tensor(slot), tolerance_of<T>);
    }
}

void check(const std::string& name, const some_optimizer& optimizer, std::initializer_list<slot> slots) {
  check_in<precision::f64>(name, optimizer, slots);
  check_in<precision::f32>(name, optimizer, slots);
}

/// Checks an optimizer with its defaults, and with each setting that all optimizers have.
template <class Optimizer>
void check_common_settings(std::initializer_list<slot> slots) {
  const std::string name = Optimizer::name;
  check(name, Optimizer{}, slots);
  const auto check_one = [&](const char* setting, double Optimizer::* member, double value) {
    Optimizer o{.learning_rate = 0.02};
    o.*member = value;
    check(name + '_' + setting, o, slots);
  };
  check_one("weight_decay", &Optimizer::weight_decay, 0.1);
  check_one("clipnorm", &Optimizer::clipnorm, 1.0);
  check_one("clipvalue", &Optimizer::clipvalue, 0.25);
  check_one("global_clipnorm", &Optimizer::global_clipnorm, 1.5);
  check(name + "_exponential_decay", Optimizer{.learning_rate = exponential_decay{0.1, 3, 0.5}}, slots);
}

}  // namespace

TEST_CASE("sgd") {
  check("sgd", sgd{}, {});
  check("sgd_momentum", sgd{.momentum = 0.9}, {"momentum"});
  check("sgd_nesterov", sgd{.momentum = 0.9, .nesterov = true}, {"momentum"});
  check("sgd_weight_decay", sgd{.learning_rate = 0.05, .momentum = 0.9, .weight_decay = 0.01}, {"momentum"});
}

TEST_CASE("rmsprop") {
  check("rmsprop", rmsprop{}, {"velocity"});
  check("rmsprop_momentum", rmsprop{.momentum = 0.9}, {"velocity", "momentum"});
  check("rmsprop_centered", rmsprop{.centered = true}, {"velocity", "average_gradient"});
  check("rmsprop_centered_momentum",
        rmsprop{.learning_rate = 0.01, .rho = 0.8, .momentum = 0.5, .epsilon = 0.001, .centered = true},
        {"velocity", "momentum", "average_gradient"});
}

TEST_CASE("adam") {
  check("adam", adam{}, {"momentum", "velocity"});
  check("adam_settings", adam{.learning_rate = 0.01, .beta_1 = 0.8, .beta_2 = 0.95, .epsilon = 0.001}, {"momentum", "velocity"});
  check("adam_amsgrad", adam{.learning_rate = 0.01, .beta_2 = 0.9, .amsgrad = true}, {"momentum", "velocity", "velocity_hat"});
  check("adam_weight_decay", adam{.weight_decay = 0.1}, {"momentum", "velocity"});
  check("adamw", adamw{}, {"momentum", "velocity"});
}

TEST_CASE("adafactor") {
  check_common_settings<adafactor>({slot::of_moments("velocity")});
  check("adafactor_settings",
        adafactor{.learning_rate = 0.5, .beta_2_decay = -0.5, .epsilon_1 = 1e-3, .epsilon_2 = 0.25, .clip_threshold = 0.5},
        {slot::of_moments("velocity")});
}

TEST_CASE("clipping by value") {
  check("sgd_clipvalue", sgd{.learning_rate = 0.1, .clipvalue = 0.25}, {});
  check("adam_clipvalue", adam{.clipvalue = 0.25}, {"momentum", "velocity"});
}

TEST_CASE("clipping by norm") {
  check("sgd_clipnorm", sgd{.learning_rate = 0.1, .clipnorm = 1.0}, {});
  check("adam_clipnorm", adam{.clipnorm = 1.0}, {"momentum", "velocity"});
}

TEST_CASE("clipping by the norm of all parameters") {
  check("sgd_global_clipnorm", sgd{.learning_rate = 0.1, .global_clipnorm = 1.5}, {});
  check("adam_global_clipnorm", adam{.global_clipnorm = 1.5}, {"momentum", "velocity"});
  check("adamw_amsgrad",
        adamw{.learning_rate = 0.01, .weight_decay = 0.05, .beta_2 = 0.9, .amsgrad = true, .global_clipnorm = 1.5},
        {"momentum", "velocity", "velocity_hat"});
}

TEST_CASE("schedules") {
  check("sgd_momentum_exponential_decay", sgd{.learning_rate = exponential_decay{0.1, 3, 0.5}, .momentum = 0.9}, {"momentum"});
  check("sgd_nesterov_staircase", sgd{.learning_rate = exponential_decay{0.1, 3, 0.5, true}, .momentum = 0.9, .nesterov = true},
        {"momentum"});
  check("adamw_cosine_decay", adamw{.learning_rate = cosine_decay{0.0, 6, 0.1, 0.02, 3}}, {"momentum", "velocity"});
}

TEST_CASE("lamb") {
  check("lamb", lamb{}, {"momentum", "velocity"});
  check("lamb_settings", lamb{.learning_rate = 0.1, .beta_1 = 0.8, .beta_2 = 0.95, .epsilon = 0.001}, {"momentum", "velocity"});
  check("lamb_weight_decay", lamb{.learning_rate = 0.05, .weight_decay = 0.1}, {"momentum", "velocity"});
  check("lamb_clipnorm", lamb{.learning_rate = 0.02, .clipnorm = 1.0}, {"momentum", "velocity"});
  check("lamb_clipvalue", lamb{.clipvalue = 0.25}, {"momentum", "velocity"});
  check("lamb_global_clipnorm", lamb{.global_clipnorm = 1.5}, {"momentum", "velocity"});
  check("lamb_cosine_decay", lamb{.learning_rate = cosine_decay{0.0, 6, 0.1, 0.02, 3}}, {"momentum", "velocity"});
}

TEST_CASE("nadam") {
  check_common_settings<nadam>({"momentum", "velocity"});
  check("nadam_settings", nadam{.learning_rate = 0.01, .beta_1 = 0.8, .beta_2 = 0.95, .epsilon = 0.001},
        {"momentum", "velocity"});
}

TEST_CASE("adamax") {
  check_common_settings<adamax>({"momentum", "norm"});
  check("adamax_settings", adamax{.learning_rate = 0.01, .beta_1 = 0.8, .beta_2 = 0.7, .epsilon = 0.001}, {"momentum", "norm"});
}

TEST_CASE("adagrad") {
  check_common_settings<adagrad>({{"accumulator", 0.1}});
  check("adagrad_settings", adagrad{.learning_rate = 0.1, .initial_accumulator_value = 0, .epsilon = 0.001}, {"accumulator"});
}

TEST_CASE("adadelta") {
  check_common_settings<adadelta>({"accumulated_grad", "accumulated_delta_var"});
  check("adadelta_settings", adadelta{.learning_rate = 1, .rho = 0.8, .epsilon = 0.001},
        {"accumulated_grad", "accumulated_delta_var"});
}

TEST_CASE("lion") {
  check_common_settings<lion>({"momentum"});
  check("lion_settings", lion{.learning_rate = 0.01, .beta_1 = 0.8, .beta_2 = 0.95}, {"momentum"});
}

TEST_CASE("ftrl") {
  check_common_settings<ftrl>({{"accumulator", 0.1}, "linear"});
  check("ftrl_settings",
        ftrl{.learning_rate = 0.1, .initial_accumulator_value = 0.5, .l1_regularization_strength = 0.25, .beta = 0.5},
        {{"accumulator", 0.5}, "linear"});
  check("ftrl_power",
        ftrl{.learning_rate = 0.1,
             .learning_rate_power = -0.25,
             .l2_regularization_strength = 0.5,
             .l2_shrinkage_regularization_strength = 0.25},
        {{"accumulator", 0.1}, "linear"});
}

TEST_CASE("no recorded tensor is forgotten") { CHECK(recorded.forgotten() == ""); }
