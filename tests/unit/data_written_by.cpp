// Batches that are written by the threads of a training: the same ones, and only if no user function runs.
#include <doctest/doctest.h>

#include <cstdint>
#include <strata/data.hpp>
#include <strata/strata.hpp>
#include <utility>
#include <vector>
using namespace strata;
using namespace strata::core;

namespace {

constexpr int size = 600;
using classifier = sequential<input<size>, dense<3, softmax>>;

auto digits_of(std::size_t count) {
  std::vector<std::uint8_t> x(count * size);
  std::vector<int> y(count);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::uint8_t(philox{3}(i)[0]);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = int(i % 3);
  return data::from_tensor_slices(data::array<std::uint8_t, shape{size}>(std::move(x)), y);
}
auto pipeline() { return digits_of(100) | data::shuffle(50, {.seed = 4}) | data::scale(1. / 255) | data::batch<32>; }

template <class V>
constexpr bool is_shared = data::detail::has_written_by<V>;

/// A user-defined array, whose row() may do anything.
struct own_array {
  using value_type = float;
  static constexpr data::row_properties properties{};
  static constexpr shape extents = classifier::input_shape;
  std::vector<float> zeros = std::vector<float>(std::size_t{extents.size()});
  const float* row(std::size_t) const { return zeros.data(); }
  std::size_t size() const { return 32; }
};

/// Batches that record the current writers, and whether there were any when a pass began.
template <class Batches>
struct watched : Batches {
  explicit watched(Batches batches) : Batches(std::move(batches)) {}
  row_choice rows;
  row_writers writers;
  std::vector<bool> passes;  // whether others write its rows

  void only_rows(row_choice which) { Batches::only_rows(rows = std::move(which)); }
  void written_by(row_writers who) { Batches::written_by(writers = std::move(who)); }
  void set_epoch(int epoch) {
    passes.push_back(static_cast<bool>(writers));
    Batches::set_epoch(epoch);
  }
  void resume_at(data_position from) {
    passes.push_back(static_cast<bool>(writers));
    Batches::resume_at(from);
  }
};

/// Evaluates a source during the training.
template <class Model, class Source>
struct evaluates_after_each_epoch {
  Model& model;
  Source& source;
  void on_epoch_end(training_state&) { model.evaluate(source); }
};
template <class Model, class Source>
evaluates_after_each_epoch(Model&, Source&) -> evaluates_after_each_epoch<Model, Source>;

/// All elements and labels of a pass.
std::vector<float> pass(auto& batches) {
  std::vector<float> all;
  batches.set_epoch(2);
  for (const samples<float>& batch : batches) {
    all.insert(all.end(), batch.x(), batch.x() + batch.count * size);
    all.insert(all.end(), batch.labels(), batch.labels() + batch.count);
  }
  return all;
}

}  // namespace

TEST_CASE("each row is written once, by any thread") {
  auto batches = pipeline();
  const std::vector<float> expected = pass(batches);
  std::vector<std::size_t> counts;
  batches.written_by([&](std::size_t count, const auto& write) {
    counts.push_back(count);
    for (std::size_t end = count; end > 0;) {  // parts of other sizes, the last ones first
      const std::size_t begin = end > 7 ? end - 7 : 0;
      write(begin, end);
      end = begin;
    }
  });
  CHECK(pass(batches) == expected);
  CHECK(counts == std::vector<std::size_t>{32, 32, 32, 4});

  batches.only_rows([](int count) { return row_range{count / 2, count}; });
  counts.clear();
  pass(batches);
  CHECK(counts == std::vector<std::size_t>{16, 16, 16, 2});

  for (int rows : {0, 1}) {  // which no two threads can share
    batches.only_rows([rows](int count) { return row_range{count / 2, count / 2 + rows}; });
    counts.clear();
    pass(batches);
    CHECK(counts.empty());
  }

  batches.written_by({});
  batches.only_rows({});
  CHECK(pass(batches) == expected);
}

TEST_CASE("what the user's functions make is written by the threads that the user asks for") {
  const auto made = data::range(40) | data::map([](std::int64_t i) { return std::pair(float(i), int(i)); });
  CHECK(is_shared<decltype(pipeline())>);
  CHECK(is_shared<decltype(pipeline() | data::take(2))>);
  CHECK_FALSE(is_shared<decltype(made | data::batch<32>)>);
  CHECK_FALSE(is_shared<decltype(made | data::scale(2) | data::batch<32>)>);
  CHECK_FALSE(is_shared<decltype(pipeline() | data::prefetch(2))>);  // its thread writes during a step

  using memory = data::array<float, shape{size}>;
  using file = data::mapped_array<float, shape{size}>;
  constexpr auto of = []<class... X>(X... x) { return data::from_tensor_slices(std::move(x)...) | data::batch<32>; };
  CHECK(is_shared<decltype(of(memory(), memory()))>);
  CHECK(is_shared<decltype(of(memory()))>);
  CHECK_FALSE(is_shared<decltype(of(own_array()))>);
  CHECK_FALSE(is_shared<decltype(of(memory(), own_array()))>);
  CHECK_FALSE(is_shared<decltype(of(std::declval<file>()))>);  // it detects the order in which rows are read
}

TEST_CASE("a batch of a few bytes is not worth a second thread") {
  auto batches = data::from_tensor_slices(std::vector<float>(64), std::vector<int>(64)) | data::batch<32>;
  int calls = 0;
  batches.written_by([&](std::size_t count, const auto& write) {
    ++calls;
    write(0, count);
  });
  for ([[maybe_unused]] const auto& batch : batches) {
  }
  CHECK(calls == 0);
}

TEST_CASE("two streams over one source: each has the rows and the threads that it was given") {
  watched source(pipeline());
  const auto write_all = [](std::size_t count, const auto& write) { write(0, count); };
  const auto rows_from = [](int begin) { return [begin](int count) { return row_range{begin, count}; }; };
  detail::stream_over<float, decltype(source)> outer(source, rows_from(1), write_all);
  for (int pass = 0; pass < 3; ++pass) {
    if (pass == 2)
      outer.resume(0, data_position{0, 32}, 1);
    else
      outer.start(pass);
    REQUIRE(source.rows);
    CHECK(source.rows(32).begin == 1);
    CHECK(source.writers);
    {
      detail::stream_over<float, decltype(source)> inner(source, rows_from(2));
      inner.start(0);
      CHECK(source.rows(32).begin == 2);
      CHECK_FALSE(source.writers);
    }
    CHECK_FALSE(source.rows);
    CHECK_FALSE(source.writers);
  }
  CHECK(source.passes == std::vector<bool>{true, false, true, false, true, false});
}

TEST_CASE("fit and evaluate lend their threads to a source, and take them back") {
  trainer model{classifier{}, sgd{}, sparse_categorical_crossentropy{}, one_device{{.threads = 2}}};
  watched source(pipeline());
  validation held_out{watched{pipeline()}};
  model.fit(source, epochs(2), held_out, verbosity::off);
  CHECK(source.passes == std::vector<bool>(2, true));
  CHECK(held_out.source.passes == std::vector<bool>(2, true));
  CHECK_FALSE(source.writers);
  CHECK_FALSE(held_out.source.writers);

  model.evaluate(source);
  CHECK(source.passes == std::vector<bool>(3, true));
  CHECK_FALSE(source.writers);

  evaluates_after_each_epoch again{model, source};
  model.fit(source, epochs(2), again, verbosity::off);
  CHECK(source.passes == std::vector<bool>(7, true));

  model.predict(source);
  CHECK_FALSE(source.passes.back());

  std::vector<int> labels(64);
  labels[40] = 3;  // of the classes 0, 1 and 2
  const data::array<float, shape{size}> zeros(std::vector<float>(64 * size));
  watched damaged(data::from_tensor_slices(zeros, labels) | data::batch<32>);
  CHECK_THROWS_AS(model.fit(damaged, verbosity::off), strata_error);
  CHECK(damaged.passes == std::vector<bool>{true});
  CHECK_FALSE(damaged.writers);
}

TEST_CASE(
    "a source outlives the threads of the training that wrote its batches, and training is the same for any number of them") {
  std::vector<float> weights[3];
  for (int threads : {1, 2, 3}) {
    auto batches = pipeline();
    auto untouched = pipeline();
    {
      trainer model{classifier{}, sgd{}, sparse_categorical_crossentropy{}, one_device{{.threads = threads}}};
      model.fit(batches, epochs(2), verbosity::off);
      model.evaluate(batches);
      const auto parameters = model.parameters();
      weights[threads - 1].assign(parameters.begin(), parameters.end());
    }
    CHECK(pass(batches) == pass(untouched));
  }
  CHECK(weights[0] == weights[1]);
  CHECK(weights[0] == weights[2]);
}
