// A network on categories and numbers in one input against the recording: one step in detail, ten steps of Adam.
#include <strata/strata.hpp>

#include "recorded.hpp"
#include "some_optimizer.hpp"

using namespace strata;
using namespace strata::core;
using namespace strata::test;

namespace {

constexpr int steps = 10, batch = 6, features = 8, classes = 4;

using net = sequential<input<features>,
                       concat<branch<columns<0, 2>, embedding<9, 4>, flatten>, branch<columns<3, 4>, dense<3, tanh_activation>>,
                              branch<columns<7, 1>, embedding<6, 2>, flatten>>,
                       dense<classes, softmax>>;

template <class Backend, class Precision>
class columns_check {
  using T = typename Precision::value_type;
  using P = program<net, sparse_categorical_crossentropy<>, some_optimizer, type_list<>, Precision>;
  static constexpr double tolerance = tolerance_of<T>;

  recording& recorded_;
  std::vector<T> samples_;
  std::vector<std::int32_t> labels_;

  samples<T> batch_number(int n) const { return {samples_.data() + n * batch * features, labels_.data() + n * batch, batch}; }

  /// Calls f(a name such as dense/kernel, offset and size in the arena) for each parameter.
  static void for_each_parameter(auto&& f) {
    static constexpr const auto& layout = layout_of_program<P>;
    const std::vector<std::string> names = parameter_names_of<net>();
    for (std::size_t i = 0; i < names.size(); ++i)
      f(names[i], std::size_t(layout.slots[i].offset), std::size_t(layout.slots[i].what.extents.size()));
  }
  synchronous_executor<P, Backend> start(const some_optimizer& optimizer) {
    synchronous_executor<P, Backend> executor(optimizer, 1, {.threads = 1, .leaves = 2, .micro_batch = 2});
    executor.prepare(batch, purpose::training);
    for_each_parameter([&](const std::string& name, std::size_t offset, std::size_t) {
      std::ranges::copy(recorded_.tensor<T>("initial/" + name), executor.parameters().data() + offset);
    });
    executor.parameters_changed();
    return executor;
  }
  void expect(std::span<const T> arena, const std::string& where) {
    for_each_parameter([&](const std::string& name, std::size_t offset, std::size_t size) {
      compare<T>(where + name, arena.subspan(offset, size), recorded_.tensor(where + name), tolerance);
    });
  }

 public:
  explicit columns_check(recording& recorded)
      : recorded_(recorded), samples_(recorded.tensor<T>("samples")), labels_(recorded.integers("labels")) {}

  void run() {
    INFO(Backend::name << ", " << sizeof(T) << " bytes");
    auto one = start(keep_gradient{});
    std::vector<T> predictions(batch * classes);
    one.predict(batch_number(0), predictions.data());
    compare<T>("predictions", predictions, recorded_.tensor("predictions"), tolerance);
    one.train_step(batch_number(0));
    expect(one.slots(), "gradient/");

    auto trained = start(adam{});
    std::vector<double> losses;
    for (int n = 0; n < steps; ++n) losses.push_back(trained.train_step(batch_number(n))[0].mean());
    compare<double>("losses", losses, recorded_.tensor("losses"), tolerance);
    expect(trained.parameters(), "trained/");
  }
};

}  // namespace

TEST_CASE("columns of one input train as slices of it in Keras") {
  recording recorded("columns");
  columns_check<reference, precision::f64>(recorded).run();
  columns_check<cpu, precision::f64>(recorded).run();
  columns_check<cpu, precision::f32>(recorded).run();
  CHECK(recorded.forgotten() == "");
}
