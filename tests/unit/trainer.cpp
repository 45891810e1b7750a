// fit, evaluate, predict: options, callbacks, and their errors for bad data.
#include <doctest/doctest.h>

#include <limits>
#include <memory>
#include <ranges>
#include <strata/data.hpp>
#include <strata/strata.hpp>
#include <strata/train/weights_file.hpp>
#include <utility>
#include <vector>

#include "error_of.hpp"
#include "gradient_check.hpp"
#include "scratch_folder.hpp"

using namespace strata;
using namespace strata::core;
using namespace strata::test;

namespace {

using net = sequential<input<4>, dense<8, relu>, dense<3, softmax>>;

/// Three clouds of points that a small network separates.
struct clouds {
  std::vector<float> x;
  std::vector<int> labels;
  explicit clouds(int count) : x(random_numbers<float>(std::size_t(count) * 4, 11)) {
    for (int n = 0; n < count; ++n) {
      labels.push_back(n % 3);
      x[std::size_t(n) * 4 + std::size_t(n % 3)] += 3;
    }
  }
  auto view() const { return data::from_tensor_slices(data::array<float, shape{4}>(x), labels); }
};

auto make_trainer(std::uint64_t s = 1) {
  return trainer{net{},   adam{.learning_rate = 0.02}, sparse_categorical_crossentropy{}, accuracy{},
                 seed(s), one_device{{.threads = 2}}};
}

}  // namespace

TEST_CASE("fit learns, evaluate and predict agree with it") {
  const clouds data(90);
  auto model = make_trainer();
  const training_history past = model.fit(data.view() | data::shuffle(90, {.seed = 1}) | data::batch<16>, epochs(30),
                                          validation(data.view() | data::batch<32>), verbosity::off);
  CHECK(past.size() == 30);
  CHECK(past["accuracy"].back() > 0.95);
  CHECK(past["loss"].back() < past["loss"].front());

  const logs seen = model.evaluate(data.view() | data::batch<32>);
  CHECK(seen["loss"] == past["val_loss"].back());
  CHECK(seen["accuracy"] == past["val_accuracy"].back());
  const auto [loss_again, accuracy_again] = model.evaluate(data.x, data.labels);
  CHECK(loss_again == doctest::Approx(seen["loss"]));
  CHECK(accuracy_again == seen["accuracy"]);

  const auto constant = data.view() | data::shuffle(9) | data::batch<32>;  // readers use a copy, so it is unchanged
  CHECK(model.evaluate(constant)["accuracy"] == seen["accuracy"]);
  CHECK(model.predict(constant).size() == 90);

  const auto predicted = model.predict(data.view() | data::batch<7>);
  CHECK(predicted.size() == 90);
  int right = 0;
  double loss = 0;
  for (std::size_t n = 0; n < 90; ++n) {
    const auto row = predicted.row(n);
    right += std::ranges::max_element(row) - row.begin() == data.labels[n];
    loss -= std::log(double(row[std::size_t(data.labels[n])]));
  }
  CHECK(right / 90.0 == doctest::Approx(seen["accuracy"]));
  CHECK(loss / 90 == doctest::Approx(seen["loss"]).epsilon(1e-5));

  std::vector<float> out(90 * 3);
  model.predict(std::span<const float>(data.x), std::span<float>(out));
  CHECK(out == predicted.values);
}

namespace {
/// A source as a user might write it, which owns a file and so cannot be copied.
struct only_one : std::ranges::view_base {
  using value_type = samples<float>;
  static constexpr int batch_size = 32;
  static constexpr shape sample_shape{4}, target_shape{};
  static constexpr label_kind labels = label_kind::sparse;

  decltype(clouds(0).view() | data::batch<32>) batches = clouds(90).view() | data::batch<32>;
  std::unique_ptr<int> file = std::make_unique<int>();

  auto begin() { return batches.begin(); }
  auto end() { return batches.end(); }
};
}  // namespace

TEST_CASE("a named pipeline that ends in prefetch is used for everything, as often as one likes") {
  const auto run = [](auto&& train, auto&& test) {
    auto model = make_trainer();
    training_history past = model.fit(train, epochs(2), validation(test), verbosity::off);
    const auto option = validation(test);
    for (int k = 0; k < 2; ++k) past = model.fit(train, epochs(2), option, verbosity::off);
    const logs seen = model.evaluate(test);
    CHECK(seen["loss"] == past["val_loss"].back());
    past = model.fit(test, epochs(2), validation(test), verbosity::off);
    CHECK(past["val_loss"].back() == model.evaluate(test)["loss"]);
    CHECK(model.predict(test).size() == 90);
    return model.evaluate(test)["loss"];
  };
  const clouds data(90);
  auto train = data.view() | data::shuffle(90) | data::batch<16>;
  auto test = data.view() | data::batch<32>;
  const double expected = run(train, test);
  auto ahead = train | data::prefetch();
  auto test_ahead = test | data::prefetch();
  CHECK(run(ahead, test_ahead) == expected);
  const auto fixed = train | data::prefetch(2);
  const auto fixed_test = test | data::prefetch(data::autotune);
  CHECK(run(fixed, fixed_test) == expected);
  auto tuned = test | data::prefetch(data::autotune);
  CHECK(run(train, tuned) == expected);
  CHECK(run(train, only_one{}) == expected);
}

TEST_CASE("a network in double takes batches of float") {
  const clouds data(60);
  const auto weights = [&](auto batch) {
    trainer model{net{}, sgd{}, sparse_categorical_crossentropy{}, accuracy{}, precision::f64{}};
    const training_history past = model.fit(data.view() | batch, validation(data.view() | batch), verbosity::off);
    CHECK(model.evaluate(data.view() | batch)["loss"] == past["val_loss"].back());
    const auto predicted = model.predict(data.view() | batch).values;
    std::vector<double> all(model.parameters().begin(), model.parameters().end());
    all.insert(all.end(), predicted.begin(), predicted.end());
    return all;
  };
  CHECK(weights(data::batch<16>) == weights(data::batch<16, double>));

  const std::vector<float> x(48), y(12, 0.3F);  // dense targets are converted, too
  const auto targets = data::from_tensor_slices(data::array<float, shape{4}>(x), y);
  trainer model{sequential<input<4>, dense<1>>{}, sgd{}, mean_squared_error{}, precision::f64{}};
  CHECK(model.fit(targets | data::batch<12>, verbosity::off)["loss"].back() == doctest::Approx(double(0.3F) * double(0.3F)));
}

TEST_CASE("the seed decides") {
  const clouds data(60);
  const auto weights = [&](std::uint64_t s) {
    auto model = make_trainer(s);
    model.fit(data.view() | data::shuffle(60, {.seed = 3}) | data::batch<16>, epochs(2), verbosity::off);
    return std::vector<float>(model.parameters().begin(), model.parameters().end());
  };
  CHECK(weights(4) == weights(4));
  CHECK(weights(4) != weights(5));
}

TEST_CASE("steps_per_epoch takes the data up where it was left") {
  const clouds data(40);  // batches of 16, 16, 8
  auto model = make_trainer();
  std::vector<long> steps;
  struct count_steps {
    std::vector<long>& steps;
    void on_epoch_end(training_state& s) { steps.push_back(s.step); }
  };
  model.fit(data.view() | data::batch<16>, epochs(3), steps_per_epoch(2), count_steps{steps}, verbosity::off);
  CHECK(steps == std::vector<long>{2, 4, 6});

  auto other = make_trainer();
  other.fit(data.view() | data::batch<16>, epochs(2), verbosity::off);
  CHECK(std::ranges::equal(model.parameters(), other.parameters()));
}

TEST_CASE("callbacks see every hook, may stop, and may change the learning rate") {
  const clouds data(48);
  struct recorder_of_hooks {
    std::string& seen;
    void on_train_begin(training_state&) { seen += 'T'; }
    void on_epoch_begin(training_state&) { seen += '('; }
    void on_batch_end(training_state& s) { seen += s.loss > 0 ? 'b' : '?'; }
    void on_epoch_end(training_state& s) {
      seen += s.values.contains("val_loss") ? ')' : ']';
      s.new_learning_rate = s.learning_rate / 2;
      if (s.epoch == 2) s.stop_training = true;
    }
    void on_train_end(training_state&) { seen += 'E'; }
  };
  std::string seen;
  auto model = make_trainer();
  const training_history past = model.fit(data.view() | data::batch<16>, epochs(10), recorder_of_hooks{seen},
                                          validation(data.view() | data::batch<16>), verbosity::off);
  CHECK(seen == "T(bbb)(bbb)(bbb)E");
  CHECK(past.size() == 3);
  CHECK(model.learning_rate() == doctest::Approx(0.02 / 8));
}

TEST_CASE("a callback cannot call fit of the trainer that runs it") {
  trainer model{sequential<input<28, 28, 1>, flatten, dense<10, softmax>>{}, sgd{}, sparse_categorical_crossentropy{}, seed(1)};
  const auto digits = data::synthetic_digits(64, 1);
  struct fit_again {
    decltype(model)& of;
    std::string said;
    void on_epoch_end(training_state&) {
      said = error_of([&] { of.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1), verbosity::off); });
    }
  } callback{model, ""};
  model.fit(digits | data::batch<32>, epochs(2), callback, verbosity::off);
  CHECK(callback.said == "fit: a callback calls fit of the trainer that runs it; it may call train_step, evaluate and predict");
  CHECK(error_of([&] { model.fit(digits | data::batch<32>, epochs(1), verbosity::off); }) == "no error");
}

TEST_CASE("weights go through a file") {
  const clouds data(48);
  const test::scratch_folder folder("trainer");
  const auto path = folder / "weights.safetensors";
  auto model = make_trainer(1), other = make_trainer(2);
  model.fit(data.view() | data::batch<16>, epochs(1), verbosity::off);
  model.save_weights(path);
  other.load_weights(path);
  CHECK(std::ranges::equal(model.parameters(), other.parameters()));
  CHECK(model.evaluate(data.view() | data::batch<16>) == other.evaluate(data.view() | data::batch<16>));
}

TEST_CASE("bad data give one clear error") {
  clouds data(48);
  auto model = make_trainer();
  const auto fit = [&] { model.fit(data.view() | data::batch<16>, epochs(1), verbosity::off); };

  data.labels[20] = 3;
  CHECK(error_of(fit) == "sample 20 has the label 3, but the network has 3 classes: labels must be 0 to 2");
  CHECK(error_of([&] { model.evaluate(data.view() | data::batch<16>); }).starts_with("sample 20 has the label 3"));
  data.labels[20] = -1;
  CHECK(error_of(fit).starts_with("sample 20 has the label -1"));
  data.labels[20] = 2;

  data.x[17 * 4 + 2] = std::numeric_limits<float>::quiet_NaN();
  CHECK(error_of(fit) == std::string("epoch 1, step 2: the loss is nan, because element 2 of the input of sample 17 is nan") +
                             strata::detail::after_bad_step);
  CHECK(error_of([&] {
          std::vector<float> out(5);
          model.predict(std::span<const float>(data.x), out);
        }).starts_with("predict: "));
}

TEST_CASE("a message about a sample of a shuffled epoch names its row") {
  clouds data(48);
  const auto refused = [&](auto batches) {
    const auto said = [&] { return error_of([&] { make_trainer().fit(batches(data.view()), epochs(1), verbosity::off); }); };
    data.labels[20] = 3;
    CHECK(said() == "sample 20 has the label 3, but the network has 3 classes: labels must be 0 to 2");
    data.labels[20] = 2;
    const float x = std::exchange(data.x[18 * 4 + 2], std::numeric_limits<float>::quiet_NaN());
    CHECK(said().find("because element 2 of the input of sample 18 is nan; weights") != std::string::npos);
    data.x[18 * 4 + 2] = x;
  };
  refused([](auto all) { return all | data::shuffle(48) | data::batch<16>; });
  refused([](auto all) { return all | data::shuffle(48) | data::batch<16> | data::prefetch(2); });
  refused([](auto all) { return all | data::shuffle(48) | data::batch<16> | data::take(3) | data::repeat(2); });
  refused([](auto all) { return all | data::shuffle(48) | data::repeat(2) | data::batch<20>; });
  refused([](auto all) { return all | data::skip(2) | data::shuffle(5) | data::batch<5> | data::skip(1); });
  refused(
      [](auto all) { return all | data::shard(2, 0) | data::shuffle(48) | data::batch<5> | data::cache | data::prefetch(1); });
}

TEST_CASE("a stream is not read again for a message") {
  int begun = 0;
  const auto samples = [&begun] {
    ++begun;
    return std::vector<std::pair<std::array<float, 4>, int>>(20, {{1, 2, 3, 4}, 7});
  };
  const auto said = [&](auto batches) { return error_of([&] { make_trainer().fit(batches, verbosity::off); }); };
  const std::string end = " has the label 7, but the network has 3 classes: labels must be 0 to 2";
  CHECK(said(data::from_generator(samples) | data::batch<4>) == "sample 0" + end);
  CHECK(said(data::from_generator(samples) | data::shuffle(9) | data::batch<4>) ==
        "sample 0 of this epoch, whose order is shuffled," + end);
  CHECK(said(data::from_generator(samples) | data::cache | data::shuffle(9) | data::batch<4>) ==
        "sample 0 of this epoch, whose order is shuffled," + end);
  CHECK(begun == 3);
}

TEST_CASE("a message about a row of x and y names it") {
  clouds data(48);
  auto model = make_trainer();
  data.x[17 * 4 + 2] = std::numeric_limits<float>::infinity();
  const auto text = error_of([&] { model.fit(data.x, data.labels, epochs(1), verbosity::off); });
  CHECK(text.find("because element 2 of the input of sample 17 is inf; weights") != text.npos);
}

TEST_CASE("after a nan in the data, weights and a new optimizer train on") {
  clouds data(48);
  auto model = make_trainer(), other = make_trainer();
  const std::vector<float> weights(model.parameters().begin(), model.parameters().end());
  const auto fit = [&](auto& one) { return one.fit(data.view() | data::batch<16>, epochs(2), verbosity::off); };
  const float x = std::exchange(data.x[2], std::numeric_limits<float>::quiet_NaN());
  CHECK(error_of([&] { fit(model); }).ends_with(strata::detail::after_bad_step));
  data.x[2] = x;
  CHECK(error_of([&] { fit(model); }) ==
        std::string("epoch 1, step 1: the loss is nan, although all inputs are finite: an earlier fit may have left weights or "
                    "moments that are not; otherwise lower the learning rate, or clip the gradient (clipnorm, global_clipnorm)") +
            strata::detail::after_bad_step);
  model.set_parameters(weights);
  model.reset_optimizer();
  CHECK(fit(model)["loss"] == fit(other)["loss"]);
  CHECK(std::ranges::equal(model.parameters(), other.parameters()));
}

TEST_CASE("numbers of epochs and steps are not negative") {
  const clouds data(48);
  auto model = make_trainer();
  auto batches = data.view() | data::batch<16>;
  CHECK(error_of([&] { model.fit(batches, epochs(-3), verbosity::off); }) == "fit: epochs(-3): it must be at least 0");
  CHECK(error_of([&] { model.fit(batches, initial_epoch(-1), verbosity::off); }) ==
        "fit: initial_epoch(-1): it must be at least 0");
  CHECK(error_of([&] { model.fit(batches, steps_per_epoch(-2), verbosity::off); }) ==
        "fit: steps_per_epoch(-2): it must be at least 0");
  CHECK(model.fit(batches, epochs(0), verbosity::off).empty());
}

TEST_CASE("no layer hides a nan pixel") {
  std::vector<float> x = random_numbers<float>(20 * 12 * 12, 3);
  x[7 * 144 + 70] = std::numeric_limits<float>::quiet_NaN();
  const auto source =
      data::from_tensor_slices(data::array<float, shape{12, 12, 1}>(x), std::vector<int>(20, 1)) | data::batch<20>;
  const auto message = [&](auto network) {
    return error_of([&] {
      trainer model{network, adam{}, sparse_categorical_crossentropy{}};
      auto batches = source;
      model.fit(batches, verbosity::off);
    });
  };
  using fused_pooling = sequential<input<12, 12, 1>, conv2d<4, 3, relu>, max_pool2d<2>, flatten, dense<3, softmax>>;
  using winograd = sequential<input<12, 12, 1>, conv2d<16, 3, relu>, max_pool2d<2>, conv2d<16, 3, same_padding, relu>,
                              max_pool2d<2>, flatten, dense<3, softmax>>;
  using unfused = sequential<input<12, 12, 1>, conv2d<4, 3, stride<2>, relu>, max_pool2d<3, same_padding>, global_average_pool2d,
                             dense<3, softmax>>;
  for (const std::string& text : {message(fused_pooling{}), message(winograd{}), message(unfused{})})
    CHECK(text.starts_with("epoch 1, step 1: the loss is nan, because element 70 of the input of sample 7 is nan; weights"));
}

namespace {
/// An optimizer whose rule uses a slot that slots() does not count.
struct forgetful {
  static constexpr auto name = "forgetful";
  learning_rate_schedule learning_rate = 1e-2;
  double weight_decay = 0, clipnorm = 0, clipvalue = 0, global_clipnorm = 0;

  static int slots() { return 0; }
  static void validate() {}
  template <class T>
  struct rule {
    static constexpr int slots = 1;
    template <class V>
    void operator()(V& weight, reduced_gradient<V> gradient, V& speed) const {
      speed = gradient.value();
      weight -= speed;
    }
  };
  template <class T>
  static void with_rule(long, double, auto&& f) {
    f(rule<T>{});
  }
};
}  // namespace

TEST_CASE("an optimizer whose rule takes other slots than it keeps is refused") {
  CHECK(error_of([] { trainer bad{net{}, forgetful{}, sparse_categorical_crossentropy{}}; }) ==
        "forgetful: slots() is 0, but its rule takes 1 arrays of state");
}

TEST_CASE("a learning rate that is too high is named") {
  const clouds data(48);
  trainer model{net{}, sgd{.learning_rate = 1e30}, sparse_categorical_crossentropy{}};
  CHECK(error_of([&] { model.fit(data.view() | data::batch<16>, epochs(9), verbosity::off); }).find("lower the learning rate") !=
        std::string::npos);
  CHECK(error_of([] { trainer bad{net{}, adam{.beta_1 = 1}, sparse_categorical_crossentropy{}}; }).find("beta_1") !=
        std::string::npos);
}

TEST_CASE("a batch that lacks something is refused before anything changes") {
  const clouds data(48);
  auto model = make_trainer();
  auto source = data.view() | data::batch<16>;
  const samples<float> batch = *std::ranges::begin(source);
  model.train_step(batch);
  const std::vector<float> before(model.parameters().begin(), model.parameters().end());
  const auto refused = [&](const samples<float>& bad) { return error_of([&] { model.train_step(bad); }); };
  CHECK(refused({batch.x(), batch.labels(), 0}) == "a batch of 0 samples: a step needs at least one");
  CHECK(refused({batch.x(), batch.labels(), -1}) == "a batch of -1 samples: a step needs at least one");
  CHECK(refused({nullptr, batch.labels(), 16}) == "the batch has no inputs");
  CHECK(refused({batch.x(), 16}) == "the batch has no labels, which the loss needs");
  CHECK(refused({batch.x(), batch.x(), 16}) == "the batch has no labels, which the loss needs");
  CHECK(std::ranges::equal(model.parameters(), before));
}

TEST_CASE("a training loop of one's own") {
  const clouds data(48);
  auto a = make_trainer(), b = make_trainer();
  auto source = data.view() | data::batch<16>;
  a.fit(source, epochs(1), verbosity::off);
  for (const samples<float>& batch : source) CHECK(b.train_step(batch)[0].count == 16);
  CHECK(std::ranges::equal(a.parameters(), b.parameters()));
}
