// needs: protozero
// Tables of which a batch reads few rows: which rows are sent, and that servers compute the same as from whole gradients.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <strata/optimizers/adam.hpp>
#include <strata/optimizers/ftrl.hpp>
#include <strata/optimizers/lamb.hpp>
#include <strata/optimizers/lion.hpp>
#include <strata/optimizers/rmsprop.hpp>
#include <strata/optimizers/sgd.hpp>
#include <strata/parameter_server/parameter_executor.hpp>
#include <strata/parameter_server/parameter_rows.hpp>
#include <strata/parameter_server/parameter_store.hpp>
#include <strata/parameter_server/snapshot_codec.hpp>
#include <strata/strata.hpp>
#include <string>
#include <vector>
using namespace strata;
using namespace strata::core;

namespace {
using one_word = sequential<input<1>, embedding<8, 16>, flatten, dense<2, softmax>>;
using one_word_program = program<one_word, sparse_categorical_crossentropy<>, sgd, type_list<>>;
using numbers = std::vector<std::uint32_t>;

long padded(long size) { return (size + 15) / 16 * 16; }

/// Tables of some widths in an arena with other parameters between them.
struct example {
  std::vector<row_table> tables;
  std::vector<parameter_range> trained;
  long size = 0;
  int rows = std::numeric_limits<int>::max();  // the least number of rows of a table

  void add_table(int its_rows, int width) {
    tables.push_back({size, its_rows, width, 0});
    rows = std::min(rows, its_rows);
    add(long(its_rows) * width);
  }
  void add(long elements, penalty regularizer = {}) {
    trained.push_back({size, size + padded(elements), regularizer});
    size = trained.back().end;
  }
};

example three_tables() {
  example e;
  e.add_table(90, 7);
  e.add(50, {.l1 = 0.01, .l2 = 0.1});
  e.add_table(70, 1);
  e.add_table(200, 33);
  e.add(200);
  return e;
}

struct random_numbers {
  std::mt19937 engine;
  std::uint32_t below(std::uint32_t n) { return std::uint32_t(engine() % n); }
  float number() { return float(below(2001)) / 1000 - 1; }
  numbers rows_of(const example& e, std::uint32_t most) {
    numbers rows(below(most + 1));
    for (std::uint32_t& row : rows) row = below(std::uint32_t(e.rows));
    detail::keep_each_once(rows);
    return rows;
  }
};

/// Reads a message as the service does, and checks that it does not read beyond the end.
struct message_of_bytes {
  std::string bytes;
  std::size_t at = 0;
  void operator()(void* to, std::size_t count) {
    REQUIRE(count <= bytes.size() - at);
    if (count > 0) std::memcpy(to, bytes.data() + at, count);
    at += count;
  }
};
std::string bytes_of(const auto& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof values[0]};
}
}  // namespace

TEST_CASE("the rows that samples name: in order, each once") {
  numbers rows{5, 0, 16777215, 5, 3, 0};
  detail::keep_each_once(rows);
  CHECK(rows == numbers{0, 3, 5, 16777215});
  rows.clear(), detail::keep_each_once(rows);
  CHECK(rows.empty());
}

TEST_CASE("each element of a shard is in the rest, or in the piece of one row, wherever shards are cut") {
  const example e = three_tables();
  for (const int count : {1, 2, 5, 40, 1000}) {
    CAPTURE(count);
    std::vector<int> seen(std::size_t(e.size), 0);
    for (const parameter_shard& place : detail::partition(e.size, sizeof(float), fixed_shards_partitioner{count}, 2)) {
      const shard_contents contents(place, e.tables);
      for (const element_run& r : contents.rest()) {
        REQUIRE((r.begin >= 0 && r.begin < r.end && r.end <= place.size()));
        for (long i = r.begin; i < r.end; ++i) ++seen[std::size_t(place.begin + i)];
      }
      for (std::uint32_t row = 0; row < 200; ++row) {
        const numbers one{row};
        const auto pieces = contents.pieces_of(one);
        REQUIRE(pieces.empty() == !contents.has_any(one));
        for (const element_run& piece : pieces)
          for (long i = piece.begin; i < piece.end; ++i) {
            const long element = place.begin + i;
            const auto is_of = [&](const row_table& t) {
              return element >= t.begin && (element - t.begin) / t.width == row && row < std::uint32_t(t.rows);
            };
            REQUIRE(std::ranges::count_if(e.tables, is_of) == 1);
            ++seen[std::size_t(element)];
          }
      }
      REQUIRE(contents.has_tables() == (count_elements(contents.rest()) < place.size()));
    }
    CHECK(seen == std::vector<int>(seen.size(), 1));
  }
}

TEST_CASE("slices around pieces hold them and the rest, and lie where a vector may begin") {
  const example e = three_tables();
  random_numbers random{std::mt19937(1)};
  for (int round = 0; round < 50; ++round)
    for (const parameter_shard& place : detail::partition(e.size, sizeof(float), fixed_shards_partitioner{5}, 1)) {
      const shard_contents contents(place, e.tables);
      const auto pieces = contents.pieces_of(random.rows_of(e, 30));
      long at = -1, covered = 0;
      const auto slices = contents.slices_around(pieces);
      for (const element_run& s : slices) {
        REQUIRE((s.begin > at && s.begin < s.end && s.end <= place.size()));
        REQUIRE((s.begin % slice_alignment == 0 && s.end % slice_alignment == 0));
        at = s.end, covered += s.size();
      }
      const auto holds = [&](const element_run& r) {
        return std::ranges::any_of(slices, [&](const element_run& s) { return s.begin <= r.begin && r.end <= s.end; });
      };
      REQUIRE(std::ranges::all_of(pieces, holds));
      REQUIRE(std::ranges::all_of(contents.rest(), holds));
      const long most = count_elements(contents.rest()) + count_elements(pieces);
      REQUIRE(covered <= most + 32 * long(pieces.size() + contents.rest().size()));
    }
}

namespace {
/// A rule that shrinks weights towards zero, even without a gradient, although its slots are zero.
struct shrinking_rule {
  static constexpr int slots = 0;
  float rate;
  template <class V>
  void operator()(V& w, reduced_gradient<V> gradient) const {
    w -= detail::product(gradient.value(), rate);
    w -= detail::product(w, rate) * rate;
  }
};
struct shrinking : sgd {
  template <class T, class F>
  void with_rule(long, double rate, F&& f) const {
    f(shrinking_rule{float(rate)});
  }
};

/// One store whose workers send the rows of tables that they have read, and one whose workers send everything.
template <class Optimizer>
struct two_stores {
  using store_type = parameter_store<float, Optimizer>;
  example e = three_tables();
  std::vector<parameter_shard> shards;
  std::vector<shard_contents> contents;
  int workers;
  parameter_store_options options;
  std::unique_ptr<store_type> by_rows, whole;

  two_stores(const Optimizer& rules, int n, staleness_policy staleness)
      : shards(takes_norms(rules) ? partition_between(e.trained, sizeof(float), fixed_shards_partitioner{6}, 1)
                                  : detail::partition(e.size, sizeof(float), fixed_shards_partitioner{6}, 1)),
        contents(contents_of(shards, e.tables)),
        workers(n),
        options{.staleness = staleness, .workers = std::vector<std::string>(std::size_t(n), "worker")} {
    whole = make(rules);
    options.tables = e.tables;
    by_rows = make(rules);
    random_numbers random{std::mt19937(3)};
    std::vector<float> weights(std::size_t(e.size), 0.0f);
    for (float& w : weights) w = random.number();
    weights[3] = 1e-41f, weights[700] = -0.0f;
    for (store_type* store : {by_rows.get(), whole.get()}) {
      for (std::uint32_t k = 0; k < shards.size(); ++k) {
        message_of_bytes message{bytes_of(std::vector(weights.begin() + shards[k].begin, weights.begin() + shards[k].end))};
        REQUIRE(store->assign(0, 1, k, true, message.bytes.size(), message).why == detail::refusal::none);
      }
    }
  }
  std::unique_ptr<store_type> make(const Optimizer& rules, const std::vector<std::string>& saved = {}) const {
    auto store = std::make_unique<store_type>(rules, e.trained, shards, options);
    if (std::size_t next = 0; !saved.empty())
      REQUIRE(detail::restore_snapshot(*store, [&]() -> std::string_view { return saved[next++]; }));
    for (int w = 0; w < workers; ++w) store->join({.rank = w, .incarnation = 1});
    return store;
  }
  /// Restarts the store with rows from its snapshot.
  void restart(const Optimizer& rules) {
    std::vector<std::string> saved;
    detail::save_snapshot(*by_rows, [&](std::string_view section) { saved.emplace_back(section); });
    by_rows = make(rules, saved);
  }

  std::vector<parameter_answer<float>> answers;
  auto keep() {
    return [this](parameter_answer<float> a) { answers.push_back(std::move(a)); };
  }
  std::vector<float> pulled(store_type& store) {
    std::vector<float> weights;
    for (std::uint32_t k = 0; k < shards.size(); ++k) {
      answers.clear();
      store.pull(0, 1, k, true, this, keep());
      REQUIRE(answers.size() == 1);
      weights.insert(weights.end(), answers[0].weights.get(), answers[0].weights.get() + answers[0].count);
    }
    return weights;
  }
  bool are_equal() { return bytes_of(pulled(*by_rows)) == bytes_of(pulled(*whole)); }

  /// Pushes a gradient of these rows and of everything outside tables, in several parts.
  void push(const push_request& p, const numbers& rows, int parts, random_numbers& random) {
    for (std::uint32_t k = 0; k < shards.size(); ++k) {
      auto runs = contents[k].pieces_of(rows);
      runs.insert(runs.begin(), contents[k].rest().begin(), contents[k].rest().end());
      push_request some = p;
      some.rows = contents[k].rows_among(rows);
      std::string few, all;
      for (int part = 0; part < parts; ++part) {
        std::vector<float> gradient(std::size_t(shards[k].size()), 0.0f), packed(std::size_t(count_elements(runs)));
        for (const element_run& r : runs)
          for (long i = r.begin; i < r.end; ++i) gradient[std::size_t(i)] = random.below(9) == 0 ? -0.0f : random.number();
        detail::pack<float>(gradient.data(), runs, packed.data());
        all += bytes_of(gradient), few += bytes_of(packed);
      }
      message_of_bytes of_rows{few}, of_all{all};
      by_rows->push(some, k, this, few.size(), of_rows, keep());
      whole->push(p, k, this, all.size(), of_all, keep());
      REQUIRE(of_rows.at == few.size());
    }
  }
};

template <class Optimizer>
void check_equal_bits(const Optimizer& rules) {
  CAPTURE(Optimizer::name);
  random_numbers random{std::mt19937(7)};
  {
    two_stores<Optimizer> s(rules, 2, asynchronous{});
    for (int step = 0; step < 40; ++step) {
      if (step == 20) s.restart(rules);
      s.push({step % 2, 1, step, 0.1, 3, 1}, random.rows_of(s.e, 20), 1, random);
      REQUIRE(s.are_equal());
    }
  }
  for (const int workers : {1, 2, 3}) {
    two_stores<Optimizer> s(rules, workers, synchronous{});
    for (int step = 0; step < 15; ++step) {
      const int leaves = step == 7 ? 4 : step == 9 ? 1 : 8;  // fewer than there are workers
      for (int w = 0; w < workers; ++w) {
        const int parts = detail::subtrees(share_of(leaves, w, workers)).count();
        s.push({w, 1, step, 0.1, 12, leaves}, parts > 0 ? random.rows_of(s.e, 20) : numbers{}, parts, random);
      }
      REQUIRE(s.are_equal());
    }
  }
}
}  // namespace

TEST_CASE("rows give the bits of whole gradients: rows that no worker has read have one of zero, which changes some of them") {
  check_equal_bits(sgd{});
  check_equal_bits(sgd{.weight_decay = 0.01});
  check_equal_bits(sgd{.clipvalue = 0.1});
  check_equal_bits(sgd{.momentum = 0.9});
  check_equal_bits(sgd{.momentum = 0.9, .nesterov = true});
  check_equal_bits(adam{});
  check_equal_bits(adam{.amsgrad = true, .weight_decay = 0.01});
  check_equal_bits(rmsprop{.momentum = 0.5, .centered = true});
  check_equal_bits(lion{});
  check_equal_bits(ftrl{.l1_regularization_strength = 0.01});
  check_equal_bits(shrinking{});
  check_equal_bits(sgd{.clipnorm = 0.1});
  check_equal_bits(lamb{});
}

TEST_CASE("a pull of rows gives these, the answer of a push what is no table, and a pull everything") {
  two_stores<sgd> s(sgd{}, 1, asynchronous{});
  random_numbers random{std::mt19937(5)};
  const std::vector<float> all = s.pulled(*s.by_rows);
  CHECK(all.size() == std::size_t(s.e.size));
  const numbers rows{0, 1, 17, 69};
  std::size_t elements = 0;
  for (std::uint32_t k = 0; k < s.shards.size(); ++k) {
    s.answers.clear();
    s.by_rows->pull_rows(0, 1, k, s.contents[k].rows_among(rows), &s, s.keep());
    REQUIRE(s.answers.size() == 1);
    REQUIRE(s.answers[0].why == detail::refusal::none);
    const float* at = s.answers[0].weights.get();
    for (const element_run& piece : s.contents[k].pieces_of(rows))
      for (long i = piece.begin; i < piece.end; ++i, ++elements) REQUIRE(*at++ == all[std::size_t(s.shards[k].begin + i)]);
    REQUIRE(at == s.answers[0].weights.get() + s.answers[0].count);
  }
  CHECK(elements == rows.size() * (7 + 1 + 33));

  s.answers.clear();
  s.push({0, 1, 0, 0.1, 1, 1}, rows, 1, random);
  for (std::uint32_t k = 0; k < s.shards.size(); ++k) {
    const parameter_answer<float>&of_rows = s.answers[2 * k], &of_all = s.answers[2 * k + 1];
    REQUIRE(of_rows.count == count_elements(s.contents[k].rest()));
    REQUIRE(of_all.count == s.shards[k].size());
    std::vector<float> rest(std::size_t(of_rows.count));
    detail::pack(of_all.weights.get(), s.contents[k].rest(), rest.data());
    REQUIRE(rest == std::vector<float>(of_rows.weights.get(), of_rows.weights.get() + of_rows.count));
  }
}

TEST_CASE("rows out of range, in disorder or repeated, and gradients of any other length, change nothing") {
  for (const bool sync : {false, true}) {
    two_stores<sgd> s(sgd{}, 1, sync ? staleness_policy{synchronous{}} : staleness_policy{asynchronous{}});
    const std::vector<float> before = s.pulled(*s.by_rows);
    const std::uint32_t shard = std::uint32_t(s.shards.size() - 1);
    const shard_contents& contents = s.contents[shard];
    const auto push = [&](const numbers& rows, const std::string& bytes) {
      message_of_bytes message{bytes};
      s.answers.clear();
      push_request p{0, 1, 0, 0.1, 1, 1};
      p.rows = rows;
      s.by_rows->push(p, shard, &s, bytes.size(), message, s.keep());
      REQUIRE(s.answers.size() == 1);
      REQUIRE(message.at <= bytes.size());
      return s.answers[0].text;
    };
    const auto pull = [&](const numbers& rows) {
      s.answers.clear();
      s.by_rows->pull_rows(0, 1, shard, rows, &s, s.keep());
      REQUIRE(s.answers.size() == 1);
      return s.answers[0].text;
    };
    // The shard has the last rows of one table.
    REQUIRE(contents.has_tables());
    std::uint32_t first = 0;
    while (!contents.has_any(numbers{first})) ++first;
    REQUIRE((first > 0 && first < 190));
    const std::string values(std::size_t(count_elements(contents.rest()) + 2 * 33) * sizeof(float), '\0');
    for (const auto& [rows, why] : std::map<numbers, std::string>{
             {{191, 190}, "row 190 after row 191: rows must be in ascending order, each once"},
             {{195, 195}, "row 195 after row 195: rows must be in ascending order, each once"},
             {{first - 1, 195}, "the shard has no part of row " + std::to_string(first - 1)},
             {{195, 200}, "the shard has no part of row 200"},
             {{195, std::numeric_limits<std::uint32_t>::max()}, "the shard has no part of row 4294967295"}}) {
      CHECK(push(rows, values) == why);
      CHECK(pull(rows) == why);
    }
    const numbers right{195, 199};
    for (std::size_t length = 0; length < values.size() + 9; ++length)
      if (length != values.size()) {
        const std::string why =
            std::to_string(length) + " bytes for shard " + std::to_string(shard) + " instead of " + std::to_string(values.size());
        REQUIRE(push(right, (values + values).substr(0, length)) == why);
      }
    random_numbers random{std::mt19937(11)};
    for (int k = 0; k < 2000; ++k) {
      numbers rows = right;
      for (int flips = 0; flips < 3; ++flips) rows[random.below(2)] ^= 1u << random.below(32);
      push(rows, values.substr(8));
      pull(rows);
    }
    s.answers.clear();
    s.by_rows->pull_rows(0, 2, shard, right, &s, s.keep());
    s.by_rows->pull_rows(0, 1, 1000, right, &s, s.keep());
    REQUIRE(s.answers.size() == 2);
    CHECK(s.answers[0].why == detail::refusal::fenced);
    CHECK(s.answers[1].text == "server 0 has no shard 1000");
    CHECK(s.pulled(*s.by_rows) == before);
    CHECK(push(right, values) == "");
  }
}

TEST_CASE("the rows of a table with a regularizer do not travel one by one: its penalty takes them all") {
  using words = embedding<500, 4>;
  using regular = embedding<500, 4, embeddings_regularizer<l2<0.1_r>>>;
  using three = concat<branch<words, flatten>, branch<regular, flatten>, branch<words, flatten>>;
  using net = sequential<input<3>, three, dense<2, softmax>>;
  using tables = travelling_tables<program<net, sparse_categorical_crossentropy<>, adam, type_list<>>>;
  static_assert(tables::all.size() == 3 && tables::count == 2);
  static_assert(tables::value[0].begin == tables::all[0].begin && tables::value[1].begin == tables::all[2].begin);
  using dense_only = sequential<input<3>, dense<2, softmax>>;
  static_assert(travelling_tables<program<dense_only, sparse_categorical_crossentropy<>, adam, type_list<>>>::count == 0);
}

namespace {
/// Servers in this process that never change their parameters; the table is elements 0 to 127.
template <class T>
struct kept_here {
  std::shared_ptr<std::vector<T>> weights = std::make_shared<std::vector<T>>();

  int rank() const { return 0; }
  int size() const { return 1; }
  bool is_synchronous() const { return false; }
  static void announce_error(const std::string&) {}
  double communicating() const { return 0; }
  double waiting() const { return 0; }
  void assign(const T* from, bool) { weights->assign(from, from + layout_of_program<one_word_program>.size); }
  long pull(T* to, std::int64_t) {
    std::ranges::copy(*weights, to);
    return 0;
  }
  void pull_rows(std::span<const std::uint32_t> rows, T* to) {
    for (const auto row : rows) std::copy_n(weights->data() + 16 * row, 16, to + 16 * row);
  }
  long push(pushed_gradient<T>&, T* to) {
    std::copy(weights->begin() + 128, weights->end(), to + 128);
    return 0;
  }
};
}  // namespace

TEST_CASE("between two steps parameters, predictions and losses are those of the newest rows") {
  const kept_here<float> servers;
  parameter_executor<one_word_program, kept_here> worker(sgd{}, 1, servers, {.threads = 1});
  for (const purpose why : {purpose::training, purpose::inference}) worker.prepare(1, why);
  const float three = 3, five = 5;
  const std::int32_t label = 0;
  const samples<float> read{&three, &label, 1}, other{&five, &label, 1};
  const auto another_worker_changes_row_5 = [&] {
    for (int i = 0; i < 16; ++i) (*servers.weights)[std::size_t(16 * 5 + i)] += 0.02f * float(i);
  };
  worker.train_step(read);
  another_worker_changes_row_5();
  CHECK(worker.parameters()[16 * 5 + 1] == (*servers.weights)[16 * 5 + 1]);

  float before[2], after[2];
  worker.predict(other, before);
  worker.train_step(read);
  another_worker_changes_row_5();
  worker.predict(other, after);
  CHECK(before[0] != after[0]);

  const double loss = worker.evaluate_step(other)[0].mean();
  CHECK(loss == doctest::Approx(-std::log(double(after[0]))));
  worker.train_step(read);
  another_worker_changes_row_5();
  CHECK(worker.evaluate_step(other)[0].mean() != doctest::Approx(loss));
}
