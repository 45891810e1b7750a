// Embeddings: kernels, whole trainings, the same bits under every strategy, and inputs that are not row numbers.
#include <doctest/doctest.h>

#include <cstring>
#include <limits>
#include <strata/communicators/in_process.hpp>
#include <strata/distribute/mirrored.hpp>
#include <strata/distribute/synchronous_among.hpp>
#include <strata/strata.hpp>
#include <strata/train/weights_file.hpp>
#include <thread>
#include <vector>

#include "error_of.hpp"
#include "gradient_check.hpp"
#include "scratch_folder.hpp"

using namespace strata;
using namespace strata::core;
using namespace strata::test;

namespace {

template <class T>
bool same_bits(std::span<const T> a, std::span<const T> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

/// Forward and backward of seven samples, in micro-batches of a given size.
template <class Backend, class Operation, class T, shape In>
struct kernel_results {
  static constexpr int count = 7, numbers = count * In.size(), width = Operation::output_shape(In).value.last();
  static constexpr int rows = Operation::parameters(In)[0].extents[0];
  using P = std::conditional_t<sizeof(T) == 4, precision::f32, precision::f64>;
  using K = kernel<Backend, Operation, P, In>;
  std::vector<T> y = std::vector<T>(numbers * width, T(NAN)), dw = std::vector<T>(rows * width, T(NAN));

  explicit kernel_results(int micro_batch) {
    std::vector<T> x = random_numbers<T>(numbers, 1);
    for (T& number : x) number = std::floor((number + 1) / 2 * rows);
    const std::vector<T> w = random_numbers<T>(rows * width, 2), dy = random_numbers<T>(numbers * width, 3);
    for (int first = 0; first < count; first += micro_batch) {
      const std::ptrdiff_t at = std::ptrdiff_t(first) * In.size();
      operands<T> o;
      o.count = std::min(micro_batch, count - first);
      o.x[0] = x.data() + at, o.w[0] = w.data(), o.dw[0] = dw.data();
      o.y = y.data() + at * width, o.dy = dy.data() + at * width;
      o.adds_dw = first > 0;
      K::forward(o);
      K::backward(o);
    }
  }
  template <class Other>
  bool equals(const Other& o) const {
    return same_bits<T>(y, o.y) && same_bits<T>(dw, o.dw);
  }
};

template <class T, embedding_settings S, shape In>
void check_kernel() {
  CAPTURE(S.width);
  const kernel_results<reference, lookup<S>, T, In> expected(7);
  for (const int micro_batch : {1, 3, 7}) {
    CHECK(expected.equals(kernel_results<reference, lookup<S>, T, In>(micro_batch)));
    CHECK(expected.equals(kernel_results<cpu, lookup<S>, T, In>(micro_batch)));
  }
}

using flat = sequential<input<6>, embedding<13, 5>, flatten, dense<3, softmax>>;
using two_tables =
    sequential<input<3, 2>, flatten,
               concat<branch<embedding<9, 4, embeddings_regularizer<l2<0.05_r>>>>, branch<embedding<7, 17>, layer_norm<>>>,
               dropout<0.25_r>, global_average_pool1d, dense<5, relu>, dense<3, softmax>>;
// Categories beside numbers; no branch reads the third column.
using tabular =
    sequential<input<8>,
               concat<branch<columns<0, 2>, embedding<9, 4>, flatten>, branch<columns<3, 4>, dense<3, tanh_activation>>,
                      branch<columns<7, 1>, embedding<6, 2, embeddings_regularizer<l2<0.05_r>>>, flatten>>,
               dense<5, relu>, dense<3, softmax>>;
using largest = sequential<input<4>, embedding<6, 3>, global_max_pool1d, dense<3, softmax>>;

template <class Network>
using program_of = program<Network, sparse_categorical_crossentropy<>, adam, type_list<accuracy>>;

/// Sentences of two words. The first word determines the class: its number modulo 3.
struct sentences {
  std::vector<float> x;
  std::vector<int> labels;
  explicit sentences(int count) {
    for (int n = 0; n < count; ++n) {
      const int word = n * 7 % 11;
      x.insert(x.end(), {float(word), float(n % 5)});
      labels.push_back(word % 3);
    }
  }
  auto view() const { return data::from_tensor_slices(data::array<float, shape{2}>(x), labels); }
};
using two_words = sequential<input<2>, embedding<12, 8>, flatten, dense<3, softmax>>;

auto make_trainer(const auto& strategy) {
  return trainer{two_words{}, adam{.learning_rate = 0.05}, sparse_categorical_crossentropy{}, accuracy{}, strategy};
}

}  // namespace

TEST_CASE_TEMPLATE("the fast kernel has the bits of the plain loops, whatever the micro-batch", T, float, double) {
  check_kernel<T, embedding_settings{5, 1}, shape{3}>();
  check_kernel<T, embedding_settings{11, 7}, shape{1}>();
  check_kernel<T, embedding_settings{3, 16}, shape{2, 3}>();
  check_kernel<T, embedding_settings{20, 67}, shape{2, 2, 2}>();
  check_kernel<T, embedding_settings{1, 128}, shape{4}>();
}

TEST_CASE_TEMPLATE("gradients of whole networks", Backend, reference, cpu) {
  check_gradients<flat, sparse_categorical_crossentropy<>, Backend>(5, 40);
  check_gradients<two_tables, sparse_categorical_crossentropy<>, Backend>(5, 40);
  check_gradients<tabular, sparse_categorical_crossentropy<>, Backend>(5, 40);
  check_gradients<largest, sparse_categorical_crossentropy<>, Backend>(5, 40);
}

TEST_CASE_TEMPLATE("the bits do not depend on who computes", Network, flat, two_tables, tabular) {
  using P = program_of<Network>;
  const auto trained = [](compute_options how) {
    synchronous_executor<P, cpu> executor(adam{.learning_rate = 0.01}, 5, how);
    executor.prepare(24, purpose::training);
    std::uint64_t key = 0;
    for (const int size : {24, 24, 7, 24, 1}) executor.train_step(random_batch<P>(size, ++key).view());
    const std::span<const float> w = executor.parameters();
    return std::vector<float>(w.begin(), w.end());
  };
  const auto one = trained({.threads = 1, .leaves = 4});
  CHECK(same_bits<float>(one, trained({.threads = 2, .leaves = 4})));
  CHECK(same_bits<float>(one, trained({.threads = 4, .leaves = 4, .micro_batch = 1})));
  CHECK(same_bits<float>(one, trained({.threads = 3, .leaves = 4, .micro_batch = 5})));
  CHECK_FALSE(same_bits<float>(one, trained({.threads = 1, .leaves = 2})));
  // One thread and one leaf: each parameter is updated as soon as its gradient is known.
  CHECK(same_bits<float>(trained({.threads = 1, .leaves = 1}), trained({.threads = 2, .leaves = 1})));
}

TEST_CASE("every strategy learns the same table") {
  const sentences data(66);
  const auto trained = [&](const auto& strategy) {
    auto model = make_trainer(strategy);
    const training_history past = model.fit(data.view() | data::shuffle(66) | data::batch<16>, epochs(20), verbosity::off);
    CHECK(past["accuracy"].back() == 1);
    const std::span<const float> w = model.parameters();
    return std::vector<float>(w.begin(), w.end());
  };
  const auto expected = trained(one_device{{.threads = 1, .leaves = 4}});
  for (const int threads : {2, 4}) CHECK(same_bits<float>(expected, trained(one_device{{.threads = threads, .leaves = 4}})));
  CHECK(same_bits<float>(expected, trained(mirrored{cpus(3), {.leaves = 4}})));
  // Processes are threads here.
  std::vector<std::vector<float>> tables(3);
  std::vector<std::thread> processes;
  for (in_process& member : in_process::group(3))
    processes.emplace_back(
        [&, member] { tables[std::size_t(member.rank())] = trained(synchronous_among{member, {.threads = 1, .leaves = 4}}); });
  for (std::thread& process : processes) process.join();
  for (const auto& table : tables) CHECK(same_bits<float>(expected, table));
}

TEST_CASE("a row that no sample reads moves as its optimizer says for a gradient of zero") {
  const sentences data(60);
  const auto row_11 = [&](const auto& optimizer, int steps) {  // words are 0 to 10
    trainer model{two_words{}, optimizer, sparse_categorical_crossentropy{}, one_device{{.threads = 1}}};
    const std::vector<float> before(model.parameters().begin() + 88, model.parameters().begin() + 96);
    for (int i = 0; i < steps; ++i) model.train_step({data.x.data(), data.labels.data(), 60});
    const std::vector<float> after(model.parameters().begin() + 88, model.parameters().begin() + 96);
    return std::pair(before, after);
  };
  const auto [a, b] = row_11(adam{}, 3);
  CHECK(a == b);
  const auto [c, d] = row_11(sgd{.learning_rate = 0.5, .weight_decay = 0.1}, 1);
  for (std::size_t i = 0; i < c.size(); ++i) CHECK(d[i] == doctest::Approx(c[i] * 0.95));

  const auto moves_on = [&](const auto& optimizer) {  // for a row that has been read once
    trainer model{two_words{}, optimizer, sparse_categorical_crossentropy{}, one_device{{.threads = 1}}};
    sentences with_11(60);
    std::ranges::fill(with_11.x, 11.f);
    model.train_step({with_11.x.data(), with_11.labels.data(), 60});
    const std::vector<float> before(model.parameters().begin() + 88, model.parameters().begin() + 96);
    model.train_step({data.x.data(), data.labels.data(), 60});
    return !std::equal(before.begin(), before.end(), model.parameters().begin() + 88);
  };
  CHECK(moves_on(adam{}));
  CHECK(moves_on(sgd{.momentum = 0.9}));
  CHECK(!moves_on(sgd{}));
}

TEST_CASE_TEMPLATE("other precisions", Precision, precision::f64, precision::mixed_bf16) {
  using T = typename Precision::value_type;
  const sentences data(66);
  trainer model{two_words{}, adam{.learning_rate = 0.05}, sparse_categorical_crossentropy{}, accuracy{}, Precision{}};
  const std::vector<T> x(data.x.begin(), data.x.end());
  const auto source = data::from_tensor_slices(data::array<T, shape{2}>(x), data.labels);
  CHECK(model.fit(source | data::batch<16, T>, epochs(20), verbosity::off)["accuracy"].back() == 1);
}

TEST_CASE("weights files, summary and views know the layer as Keras does") {
  const scratch_folder folder("embedding");
  const auto file = folder / "model.safetensors";
  auto model = make_trainer(one_device{}), other = make_trainer(one_device{});
  const sentences data(30);
  model.fit(data.view() | data::batch<16>, verbosity::off);
  model.save_weights(file);
  CHECK(safetensors_file(file)["embedding/embeddings"].extents == tensor_extents{12, 8});
  other.load_weights(file);
  CHECK(same_bits(model.parameters(), other.parameters()));
  CHECK(summary(model).find("embedding (Embedding)") != std::string::npos);
  CHECK(parameter_names_of<two_tables>() ==
        std::vector<std::string>{"embedding/embeddings", "embedding_1/embeddings", "layer_normalization/gamma",
                                 "layer_normalization/beta", "dense/kernel", "dense/bias", "dense_1/kernel", "dense_1/bias"});
}

TEST_CASE("the table starts within 0.05 of zero") {
  const auto model = make_trainer(one_device{});
  const auto table = model.parameters().first(96);
  for (const float w : table) CHECK(std::abs(w) <= 0.05f);
  CHECK(std::ranges::max(table) > 0.04f);
  CHECK(std::ranges::min(table) < -0.04f);
}

TEST_CASE("a number that is no row is refused before anything is computed") {
  auto model = make_trainer(one_device{{.threads = 2}});
  const std::vector<float> before(model.parameters().begin(), model.parameters().end());
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinite = std::numeric_limits<float>::infinity();
  for (const float wrong : {-1.f, 0.5f, 12.f, 3e9f, -1e-30f, nan, -nan, infinite, -infinite}) {
    CAPTURE(wrong);
    sentences data(40);
    data.x[2 * 37 + 1] = wrong;
    const auto source = data.view() | data::batch<16>;
    const auto refused = [&](const std::string& sample, auto&& f) {
      const std::string expected = "sample " + sample + " has the number " + strata::detail::formatted("%.9g", double(wrong)) +
                                   " in element 1, but embedding has 12 rows: it takes whole numbers from 0 to 11";
      CHECK(error_of(f) == expected);
    };
    std::vector<float> out(40 * 3);
    refused("37", [&] { model.evaluate(source); });
    refused("37", [&] { model.predict(source); });
    refused("37", [&] { model.predict(data.view() | data::skip(8) | data::batch<16>); });
    refused("37", [&] { model.predict(data.x, out); });
    refused("37", [&] { model.train_step({data.x.data(), data.labels.data(), 40}); });
    CHECK(same_bits<float>(before, model.parameters()));
    auto fitted = make_trainer(one_device{{.threads = 2}});
    refused("37", [&] { fitted.fit(source, verbosity::off); });
  }
  sentences data(40);
  data.x[5] = -0.f;
  data.x[7] = 11;
  CHECK(model.evaluate(data.view() | data::batch<16>)["loss"] > 0);
  CHECK(error_of([&] {
          data.labels[3] = 3, model.train_step({data.x.data(), data.labels.data(), 40});
        }).starts_with("sample 3 has the label 3"));
}

TEST_CASE("of two tables the smaller one decides, and is called as in the summary") {
  using P = program_of<two_tables>;
  std::vector<float> x(3 * 6, 6.f);
  x[6 + 4] = 7, x[12] = 8;
  const auto check = [&](row_range rows) { refuse_other_rows<P>({x.data(), 3}, rows, detail::sample_names(100)); };
  CHECK(error_of([&] { check({0, 1}); }) == "no error");
  CHECK(error_of([&] { check({0, 3}); }) ==
        "sample 101 has the number 7 in element 4, but embedding_1 has 7 rows: it takes whole numbers from 0 to 6");
  using columns_of_it = program_of<tabular>;
  std::vector<float> row{8, 0, 100, 0.5F, -1, 6, 9, 5, 3, 8, 0, 0, 0, 0, 0, 6};
  const auto check_columns = [&] { refuse_other_rows<columns_of_it>({row.data(), 2}, {0, 2}); };
  CHECK(error_of(check_columns) ==
        "sample 1 has the number 6 in element 7, but embedding_1 has 6 rows: it takes whole numbers from 0 to 5");
  row[15] = 0;
  CHECK(error_of(check_columns) == "no error");
  row[9] = 8.5F;
  CHECK(error_of(check_columns) ==
        "sample 1 has the number 8.5 in element 1, but embedding has 9 rows: it takes whole numbers from 0 to 8");
  using none = program_of<sequential<input<6>, dense<3, softmax>>>;
  CHECK(error_of([&] { refuse_other_rows<none>({x.data(), 3}, {0, 3}); }) == "no error");
}
