// Small networks on an embedding against the recordings: one step in detail, ten steps of each optimizer. Also
// compares rows that no batch reads.
#include <strata/strata.hpp>

#include "recorded.hpp"
#include "some_optimizer.hpp"

using namespace strata;
using namespace strata::core;
using namespace strata::test;

namespace {

constexpr int steps = 10, batch = 6, length = 7, classes = 4;

template <class Middle, class... Options>
using net = sequential<input<length>, embedding<11, 5, Options...>, Middle, dense<classes, softmax>>;

template <class Network, class Backend, class Precision>
class embedding_check {
  using T = typename Precision::value_type;
  using P = program<Network, sparse_categorical_crossentropy<>, some_optimizer, type_list<>, Precision>;
  static constexpr const auto& layout = layout_of_program<P>;
  static constexpr double tolerance = tolerance_of<T>;

  recording& recorded_;
  std::string name_;
  std::vector<T> rows_;
  std::vector<std::int32_t> labels_;

  samples<T> batch_number(int n) const { return {rows_.data() + n * batch * length, labels_.data() + n * batch, batch}; }

  synchronous_executor<P, Backend> start(const some_optimizer& optimizer) {
    synchronous_executor<P, Backend> executor(optimizer, 1, {.threads = 1, .leaves = 2, .micro_batch = 2});
    executor.prepare(batch, purpose::training);
    for (const parameter_slot& s : std::span(layout.slots, std::size_t(layout.count)))
      std::ranges::copy(recorded_.tensor<T>(name_ + "/initial/" + s.what.name), executor.parameters().begin() + s.offset);
    executor.parameters_changed();
    return executor;
  }
  void expect(std::span<const T> arena, const std::string& where) {
    for (const parameter_slot& s : std::span(layout.slots, std::size_t(layout.count)))
      compare<T>(where + s.what.name, arena.subspan(std::size_t(s.offset), std::size_t(s.what.extents.size())),
                 recorded_.tensor(where + s.what.name), tolerance);
  }

 public:
  embedding_check(recording& recorded, std::string name)
      : recorded_(recorded), name_(std::move(name)), rows_(recorded.tensor<T>("rows")), labels_(recorded.integers("labels")) {}

  void run() {
    INFO(name_ << " on " << Backend::name << ", " << sizeof(T) << " bytes");
    auto one = start(keep_gradient{});
    std::vector<T> predictions(batch * classes);
    one.predict(batch_number(0), predictions.data());
    compare<T>("predictions", predictions, recorded_.tensor(name_ + "/predictions"), tolerance);
    one.train_step(batch_number(0));
    expect(one.slots(), name_ + "/gradient/");

    ten_steps("adam", adam{});
    ten_steps("sgd", sgd{.learning_rate = 0.1});
    ten_steps("momentum", sgd{.learning_rate = 0.1, .momentum = 0.9});
    ten_steps("rmsprop", rmsprop{});
    ten_steps("decayed", sgd{.learning_rate = 0.1, .weight_decay = 0.05});
  }

 private:
  void ten_steps(const std::string& optimizer, const some_optimizer& o) {
    auto executor = start(o);
    std::vector<double> losses;
    for (int n = 0; n < steps; ++n) losses.push_back(executor.train_step(batch_number(n))[0].mean());
    const std::string where = name_ + '/' + optimizer + '/';
    compare<double>(where + "losses", losses, recorded_.tensor(where + "losses"), tolerance);
    expect(executor.parameters(), where);
  }
};

template <class Network>
void check(recording& recorded, const std::string& name) {
  embedding_check<Network, reference, precision::f64>(recorded, name).run();
  embedding_check<Network, cpu, precision::f64>(recorded, name).run();
  embedding_check<Network, cpu, precision::f32>(recorded, name).run();
}

}  // namespace

TEST_CASE("embeddings train as in Keras") {
  recording recorded("embedding");
  check<net<flatten>>(recorded, "flat");
  check<net<flatten, embeddings_regularizer<l2<0.0625_r>>>>(recorded, "penalised");
  check<net<global_average_pool1d>>(recorded, "mean");
  check<net<global_max_pool1d>>(recorded, "max");
  CHECK(recorded.forgotten() == "");
}
