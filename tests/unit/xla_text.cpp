// Modules of StableHLO as text: short ones in full, and the arguments of a training module.
#include <doctest/doctest.h>

#include <strata/strata.hpp>
#include <strata/xla/emitter/emitter.hpp>
#include <string>
#include <vector>

using namespace strata;
using namespace strata::core;
namespace hlo = strata::stablehlo;
using hlo::argument, hlo::element, hlo::module_text, hlo::role;

namespace {

/// The operations of @main, without the lines around them.
std::string operations(const hlo::graph& g, const std::vector<hlo::tensor>& results, std::size_t arguments) {
  const std::string text = g.text(results, std::vector<int>(arguments, -1), "");
  const std::size_t begin = text.find("{\n  "), end = text.find("  \"func.return\"");
  return begin == text.npos ? "" : text.substr(begin + 2, end - begin - 2);
}

template <class Network, class Loss, class Optimizer, class... Metrics>
using program_of = program<Network, Loss, Optimizer, type_list<Metrics...>>;

/// A user-defined activation with a branch.
struct hard_swish : detail::elementwise_function {
  [[maybe_unused]] static constexpr auto name = "hard_swish";
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

/// A rule with a member that is not of type T: it would keep the value of the time when the module was made.
struct forgetful {
  static constexpr auto name = "forgetful";
  learning_rate_schedule learning_rate = 0.1;
  double weight_decay = 0, clipnorm = 0, clipvalue = 0, global_clipnorm = 0;
  struct rule {
    static constexpr int slots = 0;
    double rate;
    template <class V>
    constexpr void operator()(V& w, reduced_gradient<V> gradient) const {
      w -= gradient.value() * rate;
    }
  };
  static int slots() { return 0; }
  void validate() const {}
  template <class T, class F>
  void with_rule(long, double rate, F&& f) const {
    f(rule{rate});
  }
};

/// A rule whose form depends on the step.
struct late : forgetful {
  static constexpr auto name = "late";
  template <class T, class F>
  void with_rule(long step, double, F&& f) const {
    f(rule{step < 10 ? 0.1 : 0.2});
  }
};

/// A loss with a comparison for each element.
template <bool IsMean>
struct by_element {
  static constexpr auto name = "by_element";
  static constexpr label_kind labels = label_kind::dense;
  static constexpr operation_traits traits{.is_mean_of_elements = IsMean};
  static constexpr expected_shape output_shape(shape in) { return in; }
  template <class T>
  static constexpr T value(std::span<const T> prediction, std::span<const T> truth) {
    T sum{};
    for (std::size_t i = 0; i < prediction.size(); ++i) sum += prediction[i] > truth[i] ? prediction[i] - truth[i] : T(0);
    return sum / T(prediction.size());
  }
  template <class T>
  static constexpr void gradient(std::span<const T> prediction, std::span<const T> truth, std::span<T> dx) {
    for (std::size_t i = 0; i < prediction.size(); ++i) dx[i] = (prediction[i] > truth[i] ? T(1) : T(0)) / T(prediction.size());
  }
};

/// The square of the error, relative to the target.
struct relative_square {
  static constexpr auto name = "relative_square";
  static constexpr label_kind labels = label_kind::dense;
  static constexpr expected_shape output_shape(shape in) { return in; }
  template <class T>
  static T value(std::span<const T> p, std::span<const T> t) {
    T sum{};
    for (std::size_t i = 0; i < p.size(); ++i)
      sum += (p[i] - t[i]) * (p[i] - t[i]) / (t[i] * t[i] + std::numeric_limits<T>::epsilon());
    return sum;
  }
  template <class T>
  static void gradient(std::span<const T> p, std::span<const T> t, std::span<T> dx) {
    for (std::size_t i = 0; i < p.size(); ++i) dx[i] = 2 * (p[i] - t[i]) / (t[i] * t[i] + std::numeric_limits<T>::epsilon());
  }
};

struct half {
  static constexpr auto name = "half";
  static constexpr expected_shape output_shape(shape in) { return in; }
};
struct shifted {
  static constexpr auto name = "shifted";
  static constexpr expected_shape output_shape(shape in) { return in; }
  static constexpr std::array<parameter, 1> parameters(shape in) { return {{{.name = "bias", .extents = in}}}; }
};

}  // namespace

/// Emissions that omit a gradient.
template <>
struct strata::stablehlo::emission<half> {
  static tensor forward(operation_call& c) { return c.x[0] * 0.5; }
  static void backward(operation_call&) {}
};
template <>
struct strata::stablehlo::emission<shifted> {
  static tensor forward(operation_call& c) { return c.x[0] + along_last_axis(c.w[0], c.x[0]); }
  static void backward(operation_call& c) { c.set_dx(c.dy); }
};

TEST_CASE("numbers as they are written") {
  CHECK(hlo::number_text(1, element::f32) == "1.0");
  CHECK(hlo::number_text(1e-7, element::f32) == "1.0e-07");
  CHECK(hlo::number_text(0.1, element::f64) == "1.0e-01");
  CHECK(hlo::number_text(0.1, element::f32) == "1.0e-01");
  CHECK(hlo::number_text(1 / 3., element::f64) == "3.333333333333333e-01");
  CHECK(hlo::number_text(-std::numeric_limits<double>::infinity(), element::f32) == "0xFF800000");
  CHECK(hlo::number_text(std::numeric_limits<double>::infinity(), element::f64) == "0x7FF0000000000000");
  CHECK(hlo::number_text(3528531795.0, element::ui32) == "3528531795");
  CHECK(hlo::number_text(1, element::i1) == "true");
}

TEST_CASE("what no result needs is left out, and what is written twice is one operation") {
  hlo::graph g;
  const hlo::tensor x = g.argument({element::f32, {2, 3}});
  const hlo::tensor unused = x * x;
  CHECK(x + x == x + x);
  CHECK(operations(g, {(x + x) * (x + x)}, 1) ==
        "  %0 = \"stablehlo.add\"(%a0, %a0) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>\n"
        "  %1 = \"stablehlo.multiply\"(%0, %0) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>\n");
  CHECK(unused.type().text() == "tensor<2x3xf32>");
}

TEST_CASE("a formula is traced along each way through its comparisons") {
  hlo::graph g;
  const hlo::tensor x = g.argument({element::f32, {4}});
  hlo::operation_call c{.step = {}, .x = {x}, .out = {4}};
  CHECK(operations(g, {hlo::emission<relu>::forward(c)}, 1) ==
        "  %0 = \"stablehlo.constant\"() {value = dense<0.0> : tensor<4xf32>} : () -> tensor<4xf32>\n"
        "  %1 = \"stablehlo.compare\"(%a0, %0) {comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<4xf32>, "
        "tensor<4xf32>) -> tensor<4xi1>\n"
        "  %2 = \"stablehlo.select\"(%1, %0, %a0) : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>\n");
  // The gradient of relu is a select, not a product.
  const hlo::tensor dy = g.argument({element::f32, {4}});
  hlo::operation_call back{.step = {}, .x = {x}, .out = {4}, .y = x, .dy = dy, .wants_dx = {true}};
  back.dx.resize(1);
  hlo::emission<relu>::backward(back);
  CHECK(operations(g, {back.dx[0]}, 2)
            .ends_with(
                "  %2 = \"stablehlo.select\"(%1, %a1, %0) : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>\n"));
  const std::string swish = operations(g, {hlo::emission<hard_swish>::forward(c)}, 2);
  CHECK(swish.ends_with(
      "  %9 = \"stablehlo.select\"(%4, %a0, %8) : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>\n"
      "  %10 = \"stablehlo.select\"(%2, %0, %9) : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>\n"));

  // max and min need no second path.
  int runs = 0;
  const auto largest = [&] {
    using std::max, std::min;
    ++runs;
    return max(min(hlo::traced(x), hlo::traced(2)), hlo::traced(0)) + max(hlo::traced(1), hlo::traced(3));
  };
  CHECK(operations(g, {hlo::trace(x, largest)}, 2).find("stablehlo.select") != std::string::npos);
  CHECK(runs == 1);

  runs = 0;
  const auto many = [&] {
    hlo::traced sum = 0;
    for (int i = 0; i < 20; ++i) sum += hlo::traced(x) > i ? 1 : 0;
    ++runs;
    return sum;
  };
  CHECK_THROWS_WITH_AS(hlo::trace(x, many), doctest::Contains("more than 4096 paths through its comparisons"),
                       strata::strata_error);
  CHECK(runs == hlo::max_paths);
  // After that, no path is left behind.
  CHECK_THROWS_WITH_AS((void)bool(hlo::traced(x) > 0),
                       doctest::Contains("a formula branches on a recorded number where its two paths cannot be joined"),
                       strata::strata_error);
}

TEST_CASE("a training step") {
  using small = program_of<sequential<input<3>, dense<2, no_bias>>, mean_squared_error, sgd>;
  const module_text m = hlo::training_module<small>(sgd{}, {.rows = 4, .replicas = 2, .platform = {}});
  CHECK(m.text == R"(module @step attributes {mhlo.num_replicas = 2 : i32, mhlo.num_partitions = 1 : i32} {
func.func public @main(%a0: tensor<3x2xf32> {tf.aliasing_output = 0 : i32}, %a1: tensor<4x3xf32>, %a2: tensor<4x2xf32>, %a3: tensor<1xf32>) -> (tensor<3x2xf32>, tensor<1x2xf32>) {
  %0 = "stablehlo.constant"() {value = dense<8.0> : tensor<f32>} : () -> tensor<f32>
  %1 = "stablehlo.dot_general"(%a1, %a0) {dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision HIGHEST>]} : (tensor<4x3xf32>, tensor<3x2xf32>) -> tensor<4x2xf32>
  %2 = "stablehlo.constant"() {value = dense<4.0> : tensor<f32>} : () -> tensor<f32>
  %3 = "stablehlo.subtract"(%1, %a2) : (tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
  %4 = "stablehlo.multiply"(%3, %3) : (tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
  %5 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %6 = "stablehlo.reduce"(%4, %5) ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %s = "stablehlo.add"(%l, %r) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%s) : (tensor<f32>) -> ()
  }) {dimensions = array<i64: 1>} : (tensor<4x2xf32>, tensor<f32>) -> tensor<4xf32>
  %7 = "stablehlo.constant"() {value = dense<2.0> : tensor<4xf32>} : () -> tensor<4xf32>
  %8 = "stablehlo.divide"(%6, %7) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %9 = "stablehlo.reduce"(%8, %5) ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %s = "stablehlo.add"(%l, %r) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%s) : (tensor<f32>) -> ()
  }) {dimensions = array<i64: 0>} : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
  %10 = "stablehlo.reshape"(%9) : (tensor<f32>) -> tensor<1x1xf32>
  %11 = "stablehlo.reshape"(%2) : (tensor<f32>) -> tensor<1x1xf32>
  %12 = "stablehlo.concatenate"(%10, %11) {dimension = 1 : i64} : (tensor<1x1xf32>, tensor<1x1xf32>) -> tensor<1x2xf32>
  %13 = "stablehlo.constant"() {value = dense<2.0> : tensor<4x2xf32>} : () -> tensor<4x2xf32>
  %14 = "stablehlo.multiply"(%13, %3) : (tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
  %15 = "stablehlo.divide"(%14, %13) : (tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
  %16 = "stablehlo.dot_general"(%a1, %15) {dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision HIGHEST>]} : (tensor<4x3xf32>, tensor<4x2xf32>) -> tensor<3x2xf32>
  %17:2 = "stablehlo.all_reduce"(%16, %12) ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %s = "stablehlo.add"(%l, %r) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%s) : (tensor<f32>) -> ()
  }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<3x2xf32>, tensor<1x2xf32>) -> (tensor<3x2xf32>, tensor<1x2xf32>)
  %18 = "stablehlo.constant"() {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %19 = "stablehlo.divide"(%18, %0) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %20 = "stablehlo.broadcast_in_dim"(%19) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<3x2xf32>
  %21 = "stablehlo.multiply"(%17#0, %20) : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
  %22 = "stablehlo.reshape"(%a3) : (tensor<1xf32>) -> tensor<f32>
  %23 = "stablehlo.broadcast_in_dim"(%22) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<3x2xf32>
  %24 = "stablehlo.multiply"(%21, %23) : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
  %25 = "stablehlo.subtract"(%a0, %24) : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
  "func.return"(%25, %17#1) : (tensor<3x2xf32>, tensor<1x2xf32>) -> ()
}
}
)");
  CHECK(m.replicas == 2);
}

TEST_CASE("several steps are a loop around the function of one") {
  using small = program_of<sequential<input<3>, dense<2, no_bias>>, mean_squared_error, sgd>;
  const module_text one = hlo::training_module<small>(sgd{}, {.rows = 4, .platform = {}}),
                    m = hlo::training_module<small>(sgd{}, {.rows = 4, .steps = 5, .platform = {}});
  const auto operations_of = [](const std::string& text) {
    const std::size_t begin = text.find(") {\n");
    return text.substr(begin, text.find("\n}\n") - begin);
  };
  CHECK(operations_of(m.text) == operations_of(one.text));
  CHECK(m.text.substr(m.text.find("\n}\n")) == R"(
}
func.func public @main(%a0: tensor<3x2xf32> {tf.aliasing_output = 0 : i32}, %a1: tensor<5x4x3xf32>, %a2: tensor<5x4x2xf32>, %a3: tensor<5x1xf32>) -> (tensor<3x2xf32>, tensor<5x1x2xf32>) {
  %first = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
  %empty1 = "stablehlo.constant"() {value = dense<0.0> : tensor<5x1x2xf32>} : () -> tensor<5x1x2xf32>
  %all:6 = "stablehlo.while"(%first, %a0, %a1, %a2, %a3, %empty1) ({
  ^bb0(%i: tensor<i32>, %b0: tensor<3x2xf32>, %b1: tensor<5x4x3xf32>, %b2: tensor<5x4x2xf32>, %b3: tensor<5x1xf32>, %e1: tensor<5x1x2xf32>):
  %count = "stablehlo.constant"() {value = dense<5> : tensor<i32>} : () -> tensor<i32>
  %goes_on = "stablehlo.compare"(%i, %count) {comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<i32>, tensor<i32>) -> tensor<i1>
  "stablehlo.return"(%goes_on) : (tensor<i1>) -> ()
  }, {
  ^bb0(%i: tensor<i32>, %b0: tensor<3x2xf32>, %b1: tensor<5x4x3xf32>, %b2: tensor<5x4x2xf32>, %b3: tensor<5x1xf32>, %e1: tensor<5x1x2xf32>):
  %zero = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
  %one = "stablehlo.constant"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
  %s1 = "stablehlo.dynamic_slice"(%b1, %i, %zero, %zero) {slice_sizes = array<i64: 1, 4, 3>} : (tensor<5x4x3xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x4x3xf32>
  %c1 = "stablehlo.reshape"(%s1) : (tensor<1x4x3xf32>) -> tensor<4x3xf32>
  %s2 = "stablehlo.dynamic_slice"(%b2, %i, %zero, %zero) {slice_sizes = array<i64: 1, 4, 2>} : (tensor<5x4x2xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x4x2xf32>
  %c2 = "stablehlo.reshape"(%s2) : (tensor<1x4x2xf32>) -> tensor<4x2xf32>
  %s3 = "stablehlo.dynamic_slice"(%b3, %i, %zero) {slice_sizes = array<i64: 1, 1>} : (tensor<5x1xf32>, tensor<i32>, tensor<i32>) -> tensor<1x1xf32>
  %c3 = "stablehlo.reshape"(%s3) : (tensor<1x1xf32>) -> tensor<1xf32>
  %r:2 = "func.call"(%b0, %c1, %c2, %c3) {callee = @one_step} : (tensor<3x2xf32>, tensor<4x3xf32>, tensor<4x2xf32>, tensor<1xf32>) -> (tensor<3x2xf32>, tensor<1x2xf32>)
  %t1 = "stablehlo.reshape"(%r#1) : (tensor<1x2xf32>) -> tensor<1x1x2xf32>
  %u1 = "stablehlo.dynamic_update_slice"(%e1, %t1, %i, %zero, %zero) : (tensor<5x1x2xf32>, tensor<1x1x2xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<5x1x2xf32>
  %next = "stablehlo.add"(%i, %one) : (tensor<i32>, tensor<i32>) -> tensor<i32>
  "stablehlo.return"(%next, %r#0, %b1, %b2, %b3, %u1) : (tensor<i32>, tensor<3x2xf32>, tensor<5x4x3xf32>, tensor<5x4x2xf32>, tensor<5x1xf32>, tensor<5x1x2xf32>) -> ()
  }) : (tensor<i32>, tensor<3x2xf32>, tensor<5x4x3xf32>, tensor<5x4x2xf32>, tensor<5x1xf32>, tensor<5x1x2xf32>) -> (tensor<i32>, tensor<3x2xf32>, tensor<5x4x3xf32>, tensor<5x4x2xf32>, tensor<5x1xf32>, tensor<5x1x2xf32>)
  "func.return"(%all#1, %all#5) : (tensor<3x2xf32>, tensor<5x1x2xf32>) -> ()
}
}
)");
  CHECK_THROWS_WITH_AS(hlo::training_module<small>(sgd{}, {.rows = 4, .steps = 5, .keeps_gradient = true, .platform = {}}),
                       "a module of 5 steps, which keeps the gradient", strata::strata_error);
}

TEST_CASE("in a loop of steps, what stays on the devices comes from an argument") {
  module_text one;
  one.results = {{.what = role::parameter, .index = 3, .type = {element::f32, {2}}}};
  CHECK_THROWS_WITH_AS(hlo::detail::in_a_loop(one, 5, ""),
                       "a module of 5 steps: no argument is donated to the result parameter 3", strata::strata_error);
  one.arguments = {one.results[0]};
  one.arguments[0].donated_to = 0;
  one.results.push_back({.what = role::slot, .index = 3, .arena = 1, .type = {element::f32, {2}}});
  CHECK_THROWS_WITH_AS(hlo::detail::in_a_loop(one, 5, ""),
                       "a module of 5 steps: no argument is donated to the result slot 1 of parameter 3", strata::strata_error);
}

TEST_CASE("arguments, results and donations of a training module") {
  using net = sequential<input<6>, dense<4, relu>, batch_norm<>, dropout<0.5_r>, dense<3, softmax>>;
  using with_adam = program_of<net, sparse_categorical_crossentropy<>, adam, accuracy>;
  const module_text m = hlo::training_module<with_adam>(
      adam{}, {.rows = 8, .is_padded = true, .has_weights = true, .keeps_gradient = true, .platform = {}});
  const auto count = [](const std::vector<argument>& all, role what) {
    return std::count_if(all.begin(), all.end(), [=](const argument& a) { return a.what == what; });
  };
  CHECK(count(m.arguments, role::parameter) == 8);
  CHECK(count(m.arguments, role::slot) == 2 * 6);
  CHECK(count(m.arguments, role::step_scalars) == 1);
  for (const role one : {role::input, role::truth, role::sample_weight, role::row_count, role::batch_count, role::random_key})
    CHECK(count(m.arguments, one) == 1);
  CHECK(count(m.results, role::gradient) == 6);
  for (const argument& a : m.arguments) {
    const bool is_state = a.what == role::parameter || a.what == role::slot;
    CHECK((a.donated_to >= 0) == is_state);
    if (!is_state) continue;
    const argument& r = m.results[std::size_t(a.donated_to)];
    CHECK((r.what == a.what && r.index == a.index && r.arena == a.arena && r.type == a.type));
  }
  CHECK(m.results.back().what == role::sums);
  CHECK(m.results.back().type.text() == "tensor<2x2xf32>");
  CHECK(hlo::step_scalars<with_adam>(adam{}, 0, 1e-3).size() == 4);
  CHECK(hlo::step_scalars<with_adam>(adam{.weight_decay = 0.5}, 0, 1e-3).back() == 0.5f * 1e-3f);

  const module_text evaluation = hlo::evaluation_module<with_adam>({.rows = 8, .platform = {}});
  CHECK(count(evaluation.arguments, role::random_key) == 0);
  CHECK(evaluation.results.size() == 1);
  const module_text prediction = hlo::prediction_module<with_adam>({.rows = 8, .platform = {}});
  CHECK(count(prediction.arguments, role::truth) == 0);
  CHECK(prediction.results[0].type.text() == "tensor<8x3xf32>");
}

TEST_CASE("frozen parameters are arguments that stay, without gradients and slots") {
  using net = sequential<input<6>, dense<4, relu, kernel_regularizer<l2<0.1_r>>>, dense<3, softmax>>;
  using with_adam = program_of<net, sparse_categorical_crossentropy<>, adam, accuracy>;
  const auto frozen = [](std::string which) {
    return hlo::training_module<with_adam>(adam{},
                                           {.rows = 8, .keeps_gradient = true, .frozen = std::move(which), .platform = {}});
  };
  const auto indices = [](const std::vector<argument>& all, role what) {
    std::vector<int> out;
    for (const argument& a : all)
      if (a.what == what && a.arena == 0) out.push_back(a.index);
    return out;
  };
  const module_text first = frozen("1100"), all = frozen("0000"), none = frozen("1111");
  CHECK(indices(first.arguments, role::parameter) == std::vector{0, 1, 2, 3});
  CHECK(indices(first.arguments, role::slot) == std::vector{2, 3});
  CHECK(indices(first.results, role::parameter) == std::vector{2, 3});
  CHECK(indices(first.results, role::slot) == std::vector{2, 3});
  CHECK(indices(first.results, role::gradient) == std::vector{2, 3});
  CHECK(first.arguments[0].donated_to == -1);
  const auto products = [](const std::string& text) {
    int n = 0;
    for (std::size_t at = 0; (at = text.find("dot_general", at)) != text.npos; ++at) ++n;
    return n;
  };
  CHECK(products(all.text) == 2 + 3);
  CHECK(products(first.text) == 2 + 1);  // none below the first layer that trains
  CHECK(products(none.text) == 2);
  CHECK(none.text.find("\"stablehlo.abs\"") == none.text.npos);
}

TEST_CASE("moments of rows and columns need less than a parameter") {
  CHECK(hlo::slot_type(adafactor{}, 0, {element::f32, {3, 5, 7, 9}}).text() == "tensor<240xf32>");
  CHECK(hlo::slot_type(adafactor{}, 0, {element::f32, {9}}).text() == "tensor<9xf32>");
  CHECK(hlo::slot_type(adam{}, 1, {element::f32, {7, 9}}).text() == "tensor<7x9xf32>");
}

TEST_CASE("a rule whose numbers would not change from step to step is refused") {
  using network = sequential<input<3>, dense<2, no_bias>>;
  CHECK_THROWS_WITH_AS(
      (hlo::training_module<program_of<network, mean_squared_error, forgetful>>(forgetful{}, {.rows = 4, .platform = {}})),
      doctest::Contains("forgetful: its rule has numbers that change from step to step"), strata::strata_error);
  CHECK_THROWS_WITH_AS((hlo::training_module<program_of<network, mean_squared_error, late>>(late{}, {.rows = 4, .platform = {}})),
                       doctest::Contains("late: its rule has numbers that change from step to step"), strata::strata_error);
}

TEST_CASE("limits of traced numbers are those of the program") {
  const auto text_of_module = []<class Precision>(Precision) {
    using network = sequential<input<3>, dense<2>>;
    using all = program<network, relative_square, sgd, type_list<>, Precision>;
    return hlo::training_module<all>(sgd{}, {.rows = 4, .platform = {}}).text;
  };
  CHECK(text_of_module(precision::f32{}).find(hlo::number_text(std::numeric_limits<float>::epsilon(), element::f32)) !=
        std::string::npos);
  CHECK(text_of_module(precision::f64{}).find(hlo::number_text(std::numeric_limits<double>::epsilon(), element::f64)) !=
        std::string::npos);
}

TEST_CASE("a loss with too many ways says which one it is") {
  using twenty = program_of<sequential<input<3>, dense<20>>, by_element<false>, sgd>;
  CHECK_THROWS_WITH_AS(hlo::training_module<twenty>(sgd{}, {.rows = 4, .platform = {}}),
                       doctest::Contains("by_element has more than 4096 paths"), strata::strata_error);
  using at_once = program_of<sequential<input<3>, dense<20>>, by_element<true>, sgd>;
  CHECK(hlo::training_module<at_once>(sgd{}, {.rows = 4, .platform = {}}).text.find("stablehlo.select") != std::string::npos);
}

TEST_CASE("an emission that forgets a gradient is refused") {
  const auto module_of = []<class Layer>(Layer) {
    using network = sequential<input<3>, dense<2>, Layer>;
    return hlo::training_module<program_of<network, mean_squared_error, sgd>>(sgd{}, {.rows = 4, .platform = {}});
  };
  CHECK_THROWS_WITH_AS(module_of(half{}), "the emission of operation half computes no gradient of input 0", strata::strata_error);
  CHECK_THROWS_WITH_AS(module_of(shifted{}), "the emission of operation shifted computes no gradient of parameter 0",
                       strata::strata_error);
}
