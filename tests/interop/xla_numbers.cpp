// The other half of test_xla_numbers.py: each operation, loss, metric and optimizer as a module of StableHLO on a PJRT plugin,
// against the reference kernels. A line for each comparison.
#include "xla_numbers.hpp"

#include <strata/cpu/engine/weight_update.hpp>
#include <strata/optimizers/ema.hpp>
#include <strata/program/pass.hpp>
#include <strata/strata.hpp>
#include <strata/xla/emitter/emitter.hpp>
#include <tools/reduced.hpp>

using namespace strata;
using namespace strata::core;
using namespace xla_numbers;
namespace hlo = strata::stablehlo;

namespace {

/// The rows of a module; the last one is padding where a module is padded.
constexpr int rows = 5;

/// Combines many tests in one module, because each module costs a tenth of a second.
struct bench {
  hlo::element number;
  hlo::graph in{};
  hlo::module_text module{};
  std::vector<hlo::tensor> returned{};
  std::vector<numbers> given{};
  struct comparison {
    std::string what;
    numbers expected;
    double tolerance;
  };
  std::vector<comparison> comparisons{};

  hlo::step_facts facts(bool padded = false) {
    hlo::step_facts step{.in = &in, .number = number, .rows = rows};
    step.batch_count = in.constant(padded ? rows - 1 : rows, {number, {}});
    if (padded) {
      const hlo::tensor index = hlo::iota(in, {hlo::element::i32, {rows}}, 0);
      step.is_sample = hlo::compare("LT", index, hlo::filled(rows - 1, index));
    }
    return step;
  }
  hlo::tensor argument(numbers values, hlo::extents extents, hlo::element of) {
    module.arguments.push_back({.type = {of, std::move(extents)}});
    given.push_back(std::move(values));
    return in.argument(module.arguments.back().type);
  }
  hlo::tensor argument(numbers values, hlo::extents extents) { return argument(std::move(values), std::move(extents), number); }
  void result(hlo::tensor t) {
    module.results.push_back({.type = t.type()});
    returned.push_back(t);
  }
  /// Compares a tensor with expected elements; the tolerance is in units of that of one operation.
  void expect(std::string what, hlo::tensor t, numbers expected, double tolerance = 1) {
    if (!t) throw strata_error({what, ": the emission does not compute it"});
    result(t);
    comparisons.push_back({what + (number == hlo::element::f64 ? " f64" : " f32"), std::move(expected), tolerance * unit()});
  }
  double unit() const { return number == hlo::element::f64 ? 1e-12 : 3e-6; }
  compiled_module compile() {
    module.text =
        in.text(returned, std::vector<int>(given.size(), -1), "mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 1 : i32");
    return compiled_module(module);
  }
  /// Runs the comparisons so far.
  void finish() {
    if (comparisons.empty()) return;
    const std::vector<numbers> got = compile()(given);
    for (std::size_t i = 0; i < got.size(); ++i)
      report(comparisons[i].what, got[i], comparisons[i].expected, comparisons[i].tolerance);
  }
};
/// The bench for tests of this element type. A module has up to 60 results.
bench& bench_of(hlo::element number) {
  static std::unique_ptr<bench> all[2];
  std::unique_ptr<bench>& b = all[number == hlo::element::f64];
  if (b && b->returned.size() > 60) b->finish(), b.reset();
  if (!b) b = std::make_unique<bench>(bench{.number = number});
  return *b;
}
constexpr hlo::element number_types[] = {hlo::element::f64, hlo::element::f32};

hlo::extents with_rows(const shape& s) {
  hlo::extents e{rows};
  for (int i = 0; i < s.rank(); ++i) e.push_back(s[i]);
  return e;
}
hlo::extents extents_of(const shape& s) {
  hlo::extents e = with_rows(s);
  e.erase(e.begin());
  return e;
}

/// The properties of an operation that a test needs, with its type erased.
struct tested_operation {
  std::string name;
  std::vector<shape> in;
  shape out;
  std::vector<parameter> parameters;
  kernel_code<double> reference;
  hlo::detail::emission_code emission;
  int saved, scratch, statistics;
  bool only_trains;
};

/// Range of the inputs and of the parameters.
struct ranges {
  double low = -1, high = 1, weight_low = -1, weight_high = 1;
  bool whole = false;  // inputs are whole numbers
};

void compare(const tested_operation& op, hlo::element number, const ranges& range, hlo::platform_traits platform) {
  bench& b = bench_of(number);
  hlo::step_facts step = b.facts();
  step.platform = platform;
  if (op.only_trains) step.random_key = b.argument({77}, {}, hlo::element::ui64);
  hlo::operation_call c{.step = step, .node = 3, .out = with_rows(op.out)};
  std::vector<numbers> x, w;
  for (std::size_t k = 0; k < op.in.size(); ++k) {
    x.push_back(random_numbers(std::size_t(rows * op.in[k].size()), 10 + k, range.low, range.high));
    if (range.whole)
      for (double& v : x.back()) v = std::floor(v);
    c.x.push_back(b.argument(x[k], with_rows(op.in[k])));
  }
  for (std::size_t k = 0; k < op.parameters.size(); ++k) {
    w.push_back(random_numbers(std::size_t(op.parameters[k].extents.size()), 20 + k, range.weight_low, range.weight_high));
    c.w.push_back(b.argument(w[k], extents_of(op.parameters[k].extents)));
  }
  const numbers dy = random_numbers(std::size_t(rows * op.out.size()), 30);
  c.dy = b.argument(dy, with_rows(op.out));
  c.dx.resize(x.size()), c.dw.resize(w.size()), c.wants_dx.assign(x.size(), true);
  for (const parameter& p : op.parameters) c.wants_dw.push_back(p.trainable);
  c.y = op.emission.forward(c);
  op.emission.backward(c);

  // The results of the reference.
  operands<double> o;
  numbers y(std::size_t(rows * op.out.size())), saved(std::size_t(rows * op.saved)), scratch(std::size_t(op.scratch)),
      statistics(2 * std::size_t(op.statistics));
  std::vector<numbers> dx = x, dw = w, state = w;
  o.count = rows, o.y = y.data(), o.dy = dy.data(), o.saved = saved.data(), o.scratch = scratch.data();
  o.statistics = statistics.data(), o.total = rows, o.random = philox{77}.fork(3);
  for (std::size_t k = 0; k < x.size(); ++k) o.x[k] = x[k].data(), o.dx[k] = dx[k].data();
  for (std::size_t k = 0; k < w.size(); ++k) o.w[k] = w[k].data(), o.dw[k] = op.parameters[k].trainable ? dw[k].data() : nullptr;
  if (op.reference.collect) op.reference.collect(o);
  op.reference.forward(o);
  if (op.reference.collect) {
    double* pointers[max_parameters] = {};
    for (std::size_t k = 0; k < w.size(); ++k) pointers[k] = state[k].data();
    op.reference.update_state(o, pointers);
    op.reference.collect_backward(o);
  }
  op.reference.backward(o);

  const auto expect = [&](const char* what, hlo::tensor t, const numbers& expected) {
    b.expect(op.name + " " + what, t, expected);
  };
  expect("y", c.y, y);
  for (std::size_t k = 0; k < x.size() && op.name != "lookup"; ++k) expect("dx", c.dx[k], dx[k]);  // indices have none
  for (std::size_t k = 0; k < w.size(); ++k)
    if (c.wants_dw[k]) expect(op.parameters[k].name, c.dw[k], dw[k]);
  c.new_state.resize(w.size());
  for (std::size_t k = 0; k < w.size() && op.reference.collect; ++k)
    if (!op.parameters[k].trainable) expect(op.parameters[k].name, c.new_state[k], state[k]);
}

/// An operation with inputs of these shapes.
template <class Operation, shape... In>
tested_operation operation_on() {
  constexpr std::array<shape, sizeof...(In)> in{In...};
  using K = kernel<reference, computed_operation_t<Operation, in[0]>, precision::f64, In...>;
  tested_operation op{.name = Operation::name,
                      .in = {In...},
                      .out = info_of<Operation>.output_shape(in).value,
                      .parameters = {},
                      .reference = code_of<K, double>,
                      .emission = hlo::detail::code_of<Operation>(),
                      .saved = traits_of_kernel<K>.saved,
                      .scratch = traits_of_kernel<K>.scratch + rows * traits_of_kernel<K>.scratch_per_sample,
                      .statistics = traits_of_kernel<K>.statistics,
                      .only_trains = info_of<Operation>.traits.only_trains};
  for (const parameter& p : parameters_of<Operation>(in[0])) op.parameters.push_back(p);
  return op;
}
template <class Operation, shape... In>
void test(const ranges& range = {}, hlo::platform_traits platform = {}) {
  const tested_operation op = operation_on<Operation, In...>();
  for (const hlo::element number : number_types) compare(op, number, range, platform);
}
/// The first operation of a layer.
template <class Layer, shape... In>
void test_layer(const ranges& range = {}, hlo::platform_traits platform = {}) {
  test<detail::at_t<0, operations_of<Layer>>, In...>(range, platform);
}

/// A loss, with its functions of one sample in double; joint: with an activation before it.
struct tested_loss {
  std::string name;
  shape in;
  hlo::detail::loss_code emission;
  bool sparse;
  double (*value)(const numbers& x, const numbers& truth);
  numbers (*gradient)(const numbers& x, const numbers& truth);
};
enum class truths { real, from_0_to_1, one_hot, signs };

void compare(const tested_loss& loss, hlo::element number, double low, double high, truths kind) {
  bench& b = bench_of(number);
  const hlo::step_facts step = b.facts();
  const std::size_t n = std::size_t(loss.in.size());
  const numbers x = random_numbers(rows * n, 1, low, high);
  numbers truth =
      loss.sparse ? random_numbers(rows, 2, 0, double(n)) : random_numbers(rows * n, 2, kind == truths::real ? -1 : 0, 1);
  for (std::size_t i = 0; i < truth.size(); ++i) {
    if (loss.sparse) truth[i] = std::floor(truth[i]);
    if (kind == truths::one_hot) truth[i] = i % n == (i / n * 7) % n;
    if (kind == truths::signs) truth[i] = truth[i] > 0.5;
  }
  hlo::loss_call c{.step = step, .x = b.argument(x, with_rows(loss.in)), .labels = {}, .targets = {}};
  if (loss.sparse)
    c.labels = b.argument(truth, {rows}, hlo::element::i32);
  else
    c.targets = b.argument(truth, with_rows(loss.in));
  numbers value, gradient;
  for (std::size_t i = 0; i < rows; ++i) {
    const numbers row(x.begin() + long(i * n), x.begin() + long((i + 1) * n));
    const numbers own = loss.sparse ? numbers{truth[i]} : numbers(truth.begin() + long(i * n), truth.begin() + long((i + 1) * n));
    value.push_back(loss.value(row, own));
    const numbers g = loss.gradient(row, own);
    gradient.insert(gradient.end(), g.begin(), g.end());
  }
  b.expect(loss.name + " value", loss.emission.value(c), value, 5);
  b.expect(loss.name + " gradient", loss.emission.gradient(c), gradient, 5);
}
template <class L>
auto as_truth(const numbers& truth) {
  if constexpr (L::labels == label_kind::sparse)
    return std::int32_t(truth[0]);
  else
    return std::span<const double>(truth);
}
template <class L>
void test_loss(shape in, double low, double high, truths kind) {
  const tested_loss loss{
      .name = L::name,
      .in = in,
      .emission = hlo::detail::loss_code_of<L>(),
      .sparse = L::labels == label_kind::sparse,
      .value = [](const numbers& x, const numbers& t) { return double(L::value(std::span<const double>(x), as_truth<L>(t))); },
      .gradient =
          [](const numbers& x, const numbers& t) {
            numbers dx(x.size());
            L::gradient(std::span<const double>(x), as_truth<L>(t), std::span<double>(dx));
            return dx;
          }};
  for (const hlo::element number : number_types) compare(loss, number, low, high, kind);
}
/// Tests an activation fused with a loss.
template <class Activation, class L, shape In>
void test_joint(double low, double high, truths kind) {
  using K = kernel<reference, fused<Activation, L>, precision::f64, In>;
  static constexpr auto operands_of = [](const numbers& x, const numbers& t, std::int32_t& label, numbers& y, double* sums) {
    operands<double> o;
    o.count = 1, o.x[0] = x.data(), o.y = y.data(), o.targets = t.data(), o.loss = sums;
    label = std::int32_t(t[0]), o.labels = &label;
    K::forward(o);
    return o;
  };
  const tested_loss loss{.name = std::string("joint ") + L::name,
                         .in = In,
                         .emission = hlo::detail::loss_code_of<fused<Activation, L>>(),
                         .sparse = L::labels == label_kind::sparse,
                         .value =
                             [](const numbers& x, const numbers& t) {
                               std::int32_t label;
                               numbers y(x.size());
                               double sums[2] = {};
                               operands_of(x, t, label, y, sums);
                               return sums[0];
                             },
                         .gradient =
                             [](const numbers& x, const numbers& t) {
                               std::int32_t label;
                               numbers y(x.size()), dx(x.size());
                               double sums[2] = {};
                               operands<double> o = operands_of(x, t, label, y, sums);
                               o.dx[0] = dx.data();
                               K::backward(o);
                               return dx;
                             }};
  for (const hlo::element number : number_types) compare(loss, number, low, high, kind);
}

/// Tests a metric on the samples; the last row is padding. hostile: some predictions are not finite.
template <class M, label_kind Kind>
void test_metric(int n, double low = 0, double high = 1, bool hostile = false) {
  const std::size_t size = std::size_t(n);
  numbers x = random_numbers(rows * size, 5, low, high);
  numbers truth = Kind == label_kind::sparse ? random_numbers(rows, 6, 0, n == 1 ? 2 : n) : random_numbers(rows * size, 6);
  constexpr bool in_double = std::is_same_v<M, r2_score>;  // for every element type, because its sums nearly cancel
  for (numbers* all : {&x, &truth})
    for (double& v : *all) v = in_double ? double(float(v + 1000)) : v;
  for (std::size_t i = 0; i < truth.size(); ++i) {
    if (Kind == label_kind::sparse)
      truth[i] = std::floor(truth[i]);
    else if (!std::is_same_v<M, r2_score> && !std::is_same_v<M, root_mean_squared_error>)
      truth[i] = n == 1 ? double(truth[i] > 0) : double(i % size == (i / size * 7) % size);
  }
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; hostile && i + 1 < rows; ++i)
    x[i * size + i % size] = i % 3 == 0 ? std::nan("") : i % 3 == 1 ? infinity : -infinity;
  numbers expected(2 * detail::pairs_of_sums<M>(n));
  for (std::size_t i = 0; i + 1 < rows; ++i) {
    double* at = expected.data();
    const std::span<const double> row(x.data() + i * size, size);
    if constexpr (Kind == label_kind::sparse)
      detail::measure_sample<M>(row, std::int32_t(truth[i]), at);
    else
      detail::measure_sample<M>(row, std::span<const double>(truth.data() + i * size, size), at);
  }
  for (const hlo::element number : number_types) {
    bench& b = bench_of(number);
    const hlo::step_facts step = b.facts(true);
    hlo::metric_call c{.step = step, .predictions = b.argument(x, {rows, n}), .labels = {}, .targets = {}};
    if (Kind == label_kind::sparse)
      c.labels = b.argument(truth, {rows}, hlo::element::i32);
    else
      c.targets = b.argument(truth, {rows, n});
    b.expect(M::name, hlo::metric_emission<M>::sums(c), expected, in_double ? 1e-12 / b.unit() : 1);
  }
}

/// Three updates of a matrix with a penalty, a stack of matrices and a vector. The first row and the first column of each matrix
/// of the stack have no gradient. unit: the scale of the gradients.
template <class O>
void test_optimizer(const O& o, const char* name = O::name, double unit = 1) {
  const std::vector<hlo::extents> shapes{{6, 5}, {2, 3, 4}, {7}};
  const penalty penalties[] = {{0.03, 0.02}, {}, {}};
  constexpr long place = 32;  // elements of a parameter in the arena
  const long size = place * long(shapes.size());
  std::vector<parameter_range> parameters;
  for (std::size_t p = 0; p < shapes.size(); ++p) {
    const std::size_t rank = shapes[p].size();
    parameters.push_back({.begin = long(p) * place,
                          .end = long(p + 1) * place,
                          .regularizer = penalties[p],
                          .elements = hlo::tensor_type{hlo::element::f64, shapes[p]}.size(),
                          .rows = rank < 2 ? 1 : shapes[p][rank - 2],
                          .columns = rank < 2 ? 1 : shapes[p][rank - 1]});
  }
  for (const hlo::element number : number_types) {
    if (number == hlo::element::f32 && !std::is_same_v<O, adam> && !std::is_same_v<O, adafactor>) continue;  // all others alike
    // The module: the weights and slots of each parameter, then all gradients, then the scalars.
    bench b{.number = number};
    std::vector<hlo::updated_parameter> updated;
    for (std::size_t p = 0; p < shapes.size(); ++p) {
      updated.push_back(
          {b.argument(random_numbers(std::size_t(parameters[p].elements), 40 + p), shapes[p]), {}, {}, penalties[p]});
      for (int k = 0; k < o.slots(); ++k) {
        const hlo::tensor_type type = hlo::slot_type(o, k, updated[p].weight.type());
        updated[p].slots.push_back(b.argument(numbers(std::size_t(type.size())), type.extents));
      }
    }
    const std::size_t states = b.given.size();
    for (std::size_t p = 0; p < shapes.size(); ++p) updated[p].gradient = b.argument({}, shapes[p]);
    hlo::update(o, b.argument({}, {std::int64_t(hlo::step_scalars_of<double>(o, 0, 0.1).size())}), updated);
    for (const hlo::updated_parameter& p : updated) {
      b.result(p.weight);
      for (const hlo::tensor each : p.slots) b.result(each);
    }
    const compiled_module module = b.compile();

    arena<double> weights{std::size_t(size)}, slots{std::size_t(size * (o.slots() + 1))}, leaf{std::size_t(size)};
    arena<double> norms{std::size_t(weight_update<double, O>::norm_count(parameters))};
    double* slot[8] = {};
    for (int k = 0; k < o.slots(); ++k) slot[k] = slots.data() + k * size;
    for (std::size_t p = 0, at = 0; p < shapes.size(); ++p, at += std::size_t(o.slots()) + 1)
      std::copy(b.given[at].begin(), b.given[at].end(), weights.data() + parameters[p].begin);
    for (long t = 0; t < 3; ++t) {
      const double rate = o.learning_rate(t);
      std::fill_n(leaf.data(), size, 0.0);
      for (std::size_t p = 0; p < shapes.size(); ++p) {
        b.given[states + p] = random_numbers(std::size_t(parameters[p].elements), 50 + 10 * std::size_t(t) + p);
        for (std::size_t i = 0; i < b.given[states + p].size(); ++i)
          b.given[states + p][i] *= p == 1 && (i % 12 < 4 || i % 4 == 0) ? 0 : unit;
        std::copy(b.given[states + p].begin(), b.given[states + p].end(), leaf.data() + parameters[p].begin);
      }
      b.given.back() = hlo::step_scalars_of<double>(o, t, rate);
      const std::vector<numbers> got = module(b.given);
      std::copy(got.begin(), got.end(), b.given.begin());
      double* const leaves[] = {leaf.data()};
      const weight_update<double, O> update{o, rate, parameters, weights.data(), slot, norms.data()};
      const auto gradient = reduced(leaves, 1, 1);
      o.template with_rule<double>(t, rate,
                                   [&](const auto& rule) { update.run(rule, gradient, [&](auto&& f) { f(0L, size); }); });
    }
    for (std::size_t p = 0, at = 0; p < shapes.size(); ++p)
      for (int k = 0; k <= o.slots(); ++k, ++at) {
        const double* const own = (k == 0 ? weights.data() : slot[k - 1]) + parameters[p].begin;
        report(std::string(name) + (k == 0 ? " weights" : " slot") + (number == hlo::element::f64 ? " f64" : " f32"), b.given[at],
               numbers(own, own + b.given[at].size()), 10 * b.unit());
      }
  }
}

}  // namespace

int main() try {
  test_layer<activation<relu>, shape{3, 4}>();
  test_layer<activation<relu6>, shape{12}>({.low = -3, .high = 9});
  test_layer<activation<hard_sigmoid>, shape{12}>({.low = -5, .high = 5});
  test_layer<rescaling<-0.3_r, 1.25_r>, shape{12}>();
  test_layer<activation<hard_silu>, shape{12}>({.low = -5, .high = 5});
  test_layer<activation<leaky_relu<>>, shape{12}>();
  test_layer<activation<elu<>>, shape{12}>();
  test_layer<activation<selu>, shape{12}>();
  test_layer<activation<gelu>, shape{12}>({.low = -4, .high = 4});
  test_layer<activation<gelu_approximate>, shape{12}>({.low = -4, .high = 4});
  test_layer<activation<silu>, shape{12}>({.low = -4, .high = 4});
  test_layer<activation<sigmoid>, shape{12}>({.low = -8, .high = 8});
  test_layer<activation<tanh_activation>, shape{12}>({.low = -3, .high = 3});
  test_layer<activation<softplus>, shape{12}>({.low = -8, .high = 8});
  test_layer<activation<softsign>, shape{12}>({.low = -3, .high = 3});
  test<softmax, shape{2, 3, 4}>({.low = -3, .high = 3});
  test_layer<dense<4>, shape{7}>();
  test_layer<dense<3, no_bias>, shape{7}>();
  test_layer<conv2d<4, 3>, shape{6, 5, 3}>();
  test_layer<conv2d<4, 3, same_padding, no_bias>, shape{6, 5, 3}>();
  test_layer<conv2d<6, 3, kernel_size<3, 2>, stride<2>, same_padding, channel_groups<2>>, shape{7, 6, 4}>();
  test_layer<conv2d<4, 2, dilation<2>, channel_groups<4>>, shape{7, 6, 4}>();
  test_layer<conv2d<4, 3, stride<3>>, shape{8, 9, 2}>();
  test_layer<depthwise_conv2d<3, stride<2>, same_padding>, shape{7, 6, 4}>();
  test_layer<depthwise_conv2d<2, dilation<2>, depth_multiplier<3>, no_bias>, shape{7, 6, 2}>();
  test_layer<conv2d_transpose<3, 3, stride<2>, same_padding>, shape{4, 3, 2}>();
  test_layer<conv2d_transpose<3, 2, stride<3>>, shape{4, 3, 2}>();
  test_layer<conv2d_transpose<3, 3, dilation<2>, no_bias>, shape{4, 3, 2}>();
  // Gradients of kernels are products of patches.
  const stablehlo::platform_traits few_channels{.channels_of_convolved_images = 8};
  test_layer<conv2d<4, 3, stride<2>, same_padding, no_bias>, shape{6, 5, 3}>({}, few_channels);
  test_layer<conv2d<4, 3, kernel_size<3, 2>, dilation<2>>, shape{7, 6, 1}>({}, few_channels);
  test_layer<conv2d_transpose<3, 3, stride<2>, same_padding>, shape{4, 3, 2}>({}, few_channels);
  // Depthwise convolutions are computed element by element.
  const stablehlo::platform_traits by_element{.depthwise_by_element = true};
  test_layer<conv2d<4, 3, kernel_size<3, 2>, stride<2>, same_padding, channel_groups<4>>, shape{7, 6, 4}>({}, by_element);
  test_layer<conv2d<3, 2, dilation<2>, channel_groups<3>>, shape{7, 6, 3}>({}, by_element);
  test_layer<conv2d<3, 3, stride<3>, channel_groups<3>, no_bias>, shape{9, 8, 3}>({}, by_element);
  for (const bool by_window : {true, false}) {
    const stablehlo::platform_traits platform{.pools_by_reduce_window = by_window};
    test_layer<max_pool2d<2>, shape{5, 6, 3}>({}, platform);
    // Whole numbers, so that windows have equal elements.
    test_layer<max_pool2d<3>, shape{7, 6, 2}>({.low = 0, .high = 3, .whole = true}, platform);
  }
  test_layer<max_pool2d<3, stride<2>, same_padding>, shape{6, 7, 2}>();
  test_layer<average_pool2d<2>, shape{5, 6, 3}>();
  test_layer<average_pool2d<3, stride<2>, same_padding>, shape{6, 7, 2}>();
  test_layer<average_pool2d<3, stride<1>>, shape{6, 7, 2}>();
  test<global_average_pool2d, shape{3, 4, 2}>();
  test<global_max_pool2d, shape{3, 4, 2}>({.low = 0, .high = 4, .whole = true});
  test_layer<zero_padding2d<1, 2, 0, 3>, shape{3, 4, 2}>();
  test_layer<cropping2d<1, 0, 0, 3>, shape{3, 4, 2}>();
  test_layer<up_sampling2d<2>, shape{3, 4, 2}>();
  test_layer<up_sampling2d<2, sampling_size<3, 2>, bilinear_interpolation>, shape{3, 4, 2}>();
  test_layer<columns<1, 2>, shape{3, 4}>();
  test_layer<embedding<9, 4>, shape{3}>({.low = 0, .high = 9, .whole = true});
  test_layer<batch_norm<>, shape{3, 2, 4}>();
  test_layer<batch_norm<no_center, momentum<0.9_r>>, shape{6}>({.low = 2, .high = 3});
  test_layer<layer_norm<>, shape{3, 6}>();
  test_layer<layer_norm<no_scale>, shape{6}>();
  test<normalization, shape{3, 4}>({.weight_low = 0.1});
  test_layer<dropout<0.3_r>, shape{3, 7}>();
  test_layer<dropout<0.3_r, shape{1, 5, 1}>, shape{3, 5, 2}>();
  test<sum_of_branches, shape{3, 2}, shape{3, 2}, shape{3, 2}>();
  test<mean_of_branches, shape{3, 2}, shape{3, 2}>();
  test<difference_of_branches, shape{3, 2}, shape{3, 2}>();
  test<product_of_branches, shape{3, 2}, shape{3, 2}, shape{3, 2}>();
  test<largest_of_branches, shape{3, 2}, shape{3, 2}, shape{3, 2}>({.low = 0, .high = 3, .whole = true});
  test<stack_of_branches, shape{3, 2}, shape{3, 1}, shape{3, 4}>();

  test_loss<mean_squared_error>({3, 2}, -1, 1, truths::real);
  test_loss<mean_absolute_error>({6}, -1, 1, truths::real);
  test_loss<huber<0.3_r>>({6}, -1, 1, truths::real);
  test_loss<log_cosh>({6}, -3, 3, truths::real);
  test_loss<mean_absolute_percentage_error>({6}, -1, 1, truths::real);
  test_loss<mean_squared_logarithmic_error>({6}, 0, 2, truths::from_0_to_1);
  test_loss<given_gradient>({3, 2}, -1, 1, truths::real);
  test_loss<poisson>({6}, 0.1, 2, truths::from_0_to_1);
  test_loss<kl_divergence>({6}, 0, 1, truths::from_0_to_1);
  test_loss<hinge>({6}, -2, 2, truths::signs);
  test_loss<squared_hinge>({6}, -2, 2, truths::signs);
  test_loss<categorical_hinge>({6}, -1, 1, truths::one_hot);
  test_loss<cosine_similarity>({6}, -1, 1, truths::real);
  test_loss<binary_crossentropy<>>({6}, 0.01, 0.99, truths::signs);
  test_loss<binary_crossentropy<from_logits, label_smoothing<0.1_r>>>({6}, -4, 4, truths::signs);
  test_loss<binary_focal_crossentropy<>>({6}, 0.01, 0.99, truths::signs);
  test_loss<binary_focal_crossentropy<from_logits, apply_class_balancing, focal_gamma<1.5_r>>>({6}, -4, 4, truths::signs);
  test_loss<sparse_categorical_crossentropy<>>({6}, 0.01, 1, truths::real);
  test_loss<sparse_categorical_crossentropy<from_logits>>({6}, -4, 4, truths::real);
  test_loss<categorical_crossentropy<>>({6}, 0.01, 1, truths::one_hot);
  test_loss<categorical_crossentropy<from_logits, label_smoothing<0.1_r>>>({6}, -4, 4, truths::one_hot);
  test_loss<categorical_focal_crossentropy<>>({6}, 0.01, 1, truths::one_hot);
  test_loss<categorical_focal_crossentropy<from_logits, label_smoothing<0.1_r>>>({6}, -4, 4, truths::one_hot);
  test_joint<softmax, sparse_categorical_crossentropy<>, shape{6}>(-4, 4, truths::real);
  test_joint<softmax, categorical_crossentropy<label_smoothing<0.1_r>>, shape{6}>(-4, 4, truths::one_hot);
  test_joint<sigmoid, binary_crossentropy<>, shape{2, 3}>(-4, 4, truths::signs);

  test_metric<accuracy, label_kind::sparse>(6);
  test_metric<accuracy, label_kind::dense>(6);
  test_metric<accuracy, label_kind::sparse>(1);
  test_metric<accuracy, label_kind::dense>(1);
  test_metric<sparse_categorical_accuracy, label_kind::sparse>(6);
  test_metric<categorical_accuracy, label_kind::dense>(6);
  test_metric<binary_accuracy<0.3_r>, label_kind::dense>(6);
  test_metric<sparse_top_k_categorical_accuracy<3>, label_kind::sparse>(6);
  test_metric<top_k_categorical_accuracy<2>, label_kind::dense>(6);
  test_metric<true_positives<>, label_kind::dense>(6);
  test_metric<false_positives<decision_threshold<0.3_r>>, label_kind::sparse>(6);
  test_metric<true_negatives<class_id<2>>, label_kind::dense>(6);
  test_metric<false_negatives<top_k<2>>, label_kind::sparse>(6);
  test_metric<precision_score<top_k<3>, decision_threshold<0.2_r>>, label_kind::dense>(6);
  test_metric<recall<>, label_kind::sparse>(6);
  test_metric<auc<num_thresholds<20>>, label_kind::dense>(6);
  test_metric<auc<num_thresholds<7>, from_logits>, label_kind::sparse>(1, -3, 3);
  test_metric<f1_score<>, label_kind::dense>(5);
  test_metric<f1_score<decision_threshold<0.5_r>, macro_average>, label_kind::sparse>(6);
  test_metric<confusion_matrix<>, label_kind::sparse>(5);
  test_metric<confusion_matrix<>, label_kind::dense>(1);
  test_metric<sparse_categorical_accuracy, label_kind::sparse>(6, 0, 1, true);
  test_metric<binary_accuracy<>, label_kind::dense>(6, 0, 1, true);
  test_metric<sparse_top_k_categorical_accuracy<3>, label_kind::sparse>(6, 0, 1, true);
  test_metric<precision_score<top_k<2>>, label_kind::dense>(6, 0, 1, true);
  test_metric<recall<top_k<3>, decision_threshold<0.2_r>>, label_kind::sparse>(6, 0, 1, true);
  test_metric<auc<num_thresholds<20>>, label_kind::dense>(6, 0, 1, true);
  test_metric<f1_score<>, label_kind::dense>(5, 0, 1, true);
  test_metric<confusion_matrix<>, label_kind::sparse>(5, 0, 1, true);
  test_metric<confusion_matrix<>, label_kind::dense>(1, 0, 1, true);
  test_metric<r2_score, label_kind::dense>(3);
  test_metric<root_mean_squared_error, label_kind::dense>(4);
  test_metric<mean_squared_error, label_kind::dense>(4);
  test_metric<cosine_similarity, label_kind::dense>(4);
  for (const hlo::element number : number_types) bench_of(number).finish();

  test_optimizer(sgd{.learning_rate = 0.1});
  test_optimizer(sgd{.learning_rate = 0.1, .momentum = 0.9, .weight_decay = 0.01}, "sgd with momentum");
  test_optimizer(sgd{.learning_rate = exponential_decay{0.1, 2, 0.5}, .momentum = 0.9, .nesterov = true}, "sgd with nesterov");
  test_optimizer(adam{});
  test_optimizer(adam{.amsgrad = true, .clipvalue = 0.3}, "adam with amsgrad");
  test_optimizer(adamw{.global_clipnorm = 0.5});
  test_optimizer(adamax{});
  test_optimizer(nadam{.clipnorm = 0.5});
  test_optimizer(rmsprop{});
  test_optimizer(rmsprop{.momentum = 0.5, .centered = true}, "rmsprop, centred");
  test_optimizer(adagrad{});
  test_optimizer(adadelta{.learning_rate = 1});
  test_optimizer(ftrl{.learning_rate = 0.1, .l1_regularization_strength = 0.01});
  test_optimizer(ftrl{.learning_rate = 0.1, .learning_rate_power = -0.3}, "ftrl with power");
  test_optimizer(lion{.weight_decay = 0.1});
  test_optimizer(lamb{.weight_decay = 0.1});
  test_optimizer(adafactor{.learning_rate = 0.1});
  for (const double unit : {1e-25, 1e25}) {
    const double limit = std::min(unit / 10, 1.0);
    test_optimizer(adafactor{.learning_rate = 0.1, .clipvalue = 1e18}, "adafactor, tiny or huge gradients", unit);
    test_optimizer(adam{.clipnorm = limit}, "adam, clipped", unit);
    test_optimizer(adam{.global_clipnorm = limit}, "adam, clipped over all parameters", unit);
  }
  test_optimizer(ema{adam{}, 0.9});
  test_optimizer(ema{lamb{}, 0.9});
  test_optimizer(ema{adafactor{}, 0.9});
} catch (const std::exception& e) {
  std::printf("BAD %s\n", e.what());
}
