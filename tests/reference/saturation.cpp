// Networks that end in sigmoid or softmax and a crossentropy, with logits far beyond what a probability can hold: predictions,
// loss and gradients against the recordings. The loss must be computed from the logits, whatever precedes the last activation.
#include <strata/strata.hpp>

#include "recorded.hpp"
#include "unit/gradient_check.hpp"

using namespace strata;
using namespace strata::core;
using namespace strata::test;

namespace {

constexpr int batch = 8, classes = 3;

template <class Activation>
using dense_net = sequential<input<5>, dense<classes, Activation>>;
template <class Activation>
using conv2d_net = sequential<input<4, 4, 2>, conv2d<classes, 3, Activation>>;
template <class Activation>
using global_pool_net = sequential<input<4, 4, 2>, conv2d<classes, 3>, global_average_pool2d, activation<Activation>>;
/// The loss reads a view of the activation's output.
template <class Activation>
using conv2d_flatten_net = sequential<input<4, 4, 2>, conv2d<classes, 3, Activation>, flatten>;
template <class Activation>
using one_window_net =
    sequential<input<3, 3, 2>, conv2d<classes, 3, Activation>, reshape<classes, 1>, reshape<-1, classes>, flatten>;
template <class Activation>
using batch_norm_net = sequential<input<5>, dense<classes, no_bias>, batch_norm<>, activation<Activation>>;
template <class Activation>
using add_net = sequential<input<5>, add<branch<dense<classes>>, branch<dense<classes>>>, activation<Activation>>;

template <class Network, class Loss, class Backend, class Precision>
void check(recording& recorded, const std::string& name) {
  using T = typename Precision::value_type;
  using P = program<Network, Loss, keep_gradient, type_list<>, Precision>;
  constexpr double tolerance = tolerance_of<T>;
  INFO(name << " on " << std::string(Backend::name) << ", " << sizeof(T) << " bytes");

  const std::vector<T> x = recorded.tensor<T>(name + "/x"), truth = recorded.tensor<T>(name + "/truth");
  std::vector<std::int32_t> labels;
  for (std::size_t i = 0; i < truth.size(); ++i)
    if (truth[i] == 1) labels.push_back(std::int32_t(i % classes));
  constexpr bool sparse = Loss::labels == label_kind::sparse;
  const samples<T> all{x.data(), {sparse ? labels.data() : nullptr, sparse ? nullptr : truth.data()}, batch};

  synchronous_executor<P, Backend> executor(keep_gradient{}, 1, {.threads = 1, .leaves = 2, .micro_batch = 2});
  executor.prepare(batch, purpose::training);
  std::vector<std::string> names = parameter_names_of<Network>();
  const auto slots = std::span(layout_of_program<P>.slots, names.size());
  for (std::size_t s = 0; s < slots.size(); ++s) {
    if (!slots[s].what.trainable) continue;
    if (const auto at = names[s].find("batch_normalization"); at != std::string::npos) names[s].replace(at, 19, "batch_norm");
    std::ranges::copy(recorded.tensor<T>(name + "/initial/" + names[s]), executor.parameters().begin() + slots[s].offset);
  }
  executor.parameters_changed();

  const double loss = executor.train_step(all)[0].mean();
  compare<double>("loss", {&loss, 1}, recorded.tensor(name + "/loss"), tolerance);
  for (std::size_t s = 0; s < slots.size(); ++s)
    if (slots[s].what.trainable)
      compare<T>(names[s], executor.slots().subspan(std::size_t(slots[s].offset), std::size_t(slots[s].what.extents.size())),
                 recorded.tensor(name + "/gradient/" + names[s]), tolerance);
  if constexpr (!infers_differently<P>) {  // batch_norm infers from its moving statistics
    std::vector<T> predictions(truth.size());
    executor.predict(all, predictions.data());
    compare<T>("predictions", predictions, recorded.tensor(name + "/predictions"), tolerance);
  }
}

template <class Network, class Loss>
void check(recording& recorded, const std::string& name) {
  check<Network, Loss, reference, precision::f64>(recorded, name);
  check<Network, Loss, cpu, precision::f64>(recorded, name);
  check<Network, Loss, cpu, precision::f32>(recorded, name);
}

}  // namespace

TEST_CASE("a crossentropy is computed from the logits, whatever stands before the last activation") {
  recording recorded("saturation");
  check<dense_net<sigmoid>, binary_crossentropy<>>(recorded, "dense_sigmoid");
  check<conv2d_net<sigmoid>, binary_crossentropy<>>(recorded, "conv2d_sigmoid");
  check<global_pool_net<sigmoid>, binary_crossentropy<>>(recorded, "global_pool_sigmoid");
  check<batch_norm_net<sigmoid>, binary_crossentropy<>>(recorded, "batch_norm_sigmoid");
  check<add_net<sigmoid>, binary_crossentropy<>>(recorded, "add_sigmoid");
  check<conv2d_flatten_net<sigmoid>, binary_crossentropy<>>(recorded, "conv2d_flatten_sigmoid");
  check<one_window_net<softmax>, sparse_categorical_crossentropy<>>(recorded, "one_window_softmax");
  check<one_window_net<softmax>, categorical_crossentropy<>>(recorded, "one_window_softmax");
  check<dense_net<softmax>, sparse_categorical_crossentropy<>>(recorded, "dense_softmax");
  check<dense_net<softmax>, categorical_crossentropy<>>(recorded, "dense_softmax");
  check<global_pool_net<softmax>, categorical_crossentropy<>>(recorded, "global_pool_softmax");
  check<batch_norm_net<softmax>, sparse_categorical_crossentropy<>>(recorded, "batch_norm_softmax");
  check<add_net<softmax>, sparse_categorical_crossentropy<>>(recorded, "add_softmax");
  recorded.leave_out("batch_norm_sigmoid/predictions"), recorded.leave_out("batch_norm_softmax/predictions");
  CHECK(recorded.forgotten() == "");
}

TEST_CASE_TEMPLATE("the logit is 40 and the truth 0: the loss is 40, its gradient 1", T, float, double) {
  using P = program<sequential<input<1>, dense<1, sigmoid>>, binary_crossentropy<>, keep_gradient, type_list<>,
                    std::conditional_t<sizeof(T) == 4, precision::f32, precision::f64>>;
  for (const T logit : {T(40), T(-40)}) {
    const T one = 1, truth = logit < 0 ? T(1) : T(0);
    synchronous_executor<P, cpu> executor(keep_gradient{}, 1, {.threads = 1});
    executor.prepare(1, purpose::training);
    executor.parameters()[0] = logit;
    CHECK(executor.train_step({&one, &truth, 1})[0].mean() == 40);
    CHECK(executor.slots()[0] == (logit < 0 ? T(-1) : T(1)));
  }
}
