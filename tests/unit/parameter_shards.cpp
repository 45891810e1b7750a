// needs: protozero
// Partitioners, and how one parameter server handles the requests of several workers, without a network.
#include <doctest/doctest.h>

#include <atomic>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <sstream>
#include <strata/cpu/engine/host_arithmetic.hpp>
#include <strata/optimizers/adam.hpp>
#include <strata/optimizers/lamb.hpp>
#include <strata/optimizers/sgd.hpp>
#include <strata/parameter_server/parameter_shards.hpp>
#include <strata/parameter_server/parameter_snapshots.hpp>
#include <strata/parameter_server/parameter_store.hpp>
#include <string>
#include <thread>
#include <tools/reduced.hpp>
#include <vector>

#include "error_of.hpp"
#include "scratch_folder.hpp"
using namespace strata;
using namespace strata::core;
using namespace strata::control;
using strata::test::error_of;

TEST_CASE("shards are slices in order, at multiples of slice_alignment, balanced by bytes") {
  for (const long size : {16L, 17L, 160L, 4'000L, 300'000L, 1'000'003L})
    for (const int wanted : {1, 2, 3, 7, 64})
      for (const int servers : {1, 2, 3, 5}) {
        CAPTURE(size);
        CAPTURE(wanted);
        CAPTURE(servers);
        const auto shards = detail::partition(size, 4, fixed_shards_partitioner{wanted}, servers);
        std::vector<long> load(std::size_t(servers), 0);
        long at = 0, largest = 0;
        for (const parameter_shard& s : shards) {
          REQUIRE(s.begin == at);
          REQUIRE(s.begin % slice_alignment == 0);
          REQUIRE(s.size() > 0);
          REQUIRE(s.size() * 4 <= largest_shard_bytes);
          load[std::size_t(s.server)] += s.size();
          largest = std::max(largest, s.size());
          at = s.end;
        }
        REQUIRE(at == size);
        if (size >= 16L * wanted && size * 4 <= largest_shard_bytes) REQUIRE(shards.size() == std::size_t(wanted));
        const auto [least, most] = std::ranges::minmax(load);
        REQUIRE(most - least <= largest + slice_alignment);
      }
}

TEST_CASE("shards for norms cut no parameter") {
  for (const int wanted : {1, 2, 3, 7, 64})
    for (const int servers : {1, 2, 5}) {
      CAPTURE(wanted);
      CAPTURE(servers);
      std::vector<parameter_range> parameters;
      long size = 0;
      for (const long elements : {5000L, 16L, 16L, 400'000L, 32L, 90'000L, 90'000L, 90'000L, 16L, 1600L}) {
        parameters.push_back({size, size + elements});
        size += elements;
      }
      const auto shards = partition_between(parameters, 4, fixed_shards_partitioner{wanted}, servers);
      long at = 0;
      std::size_t next = 0;  // parameter
      for (const parameter_shard& s : shards) {
        REQUIRE(s.begin == at);
        REQUIRE(s.size() > 0);
        REQUIRE((s.server >= 0 && s.server < servers));
        const std::size_t first = next;
        while (next < parameters.size() && parameters[next].end <= s.end) ++next;
        REQUIRE(next > first);
        REQUIRE(parameters[next - 1].end == s.end);
        REQUIRE((s.size() * 4 <= largest_shard_bytes || next == first + 1));
        at = s.end;
      }
      REQUIRE(at == size);
      if (wanted == 64) REQUIRE(shards.size() >= 5);
      CHECK(bytes_of_largest(shards, 4) == 1'600'000);
      CHECK(bytes_of_largest(std::span(shards).first(1), 4) == std::size_t(largest_shard_bytes));
    }
  const parameter_range one{0, 16};
  CHECK(partition_between({&one, 1}, 4, fixed_shards_partitioner{3}, 2).size() == 1);
  CHECK(error_of([&] { partition_between({&one, 1}, 4, fixed_shards_partitioner{0}, 2); }) ==
        "parameter_server: the partitioner returned 0 shards; at least one is needed");
}

TEST_CASE("partitioners count as those of TensorFlow, over all parameters") {
  CHECK(fixed_shards_partitioner{3}(1 << 20) == 3);
  CHECK(min_size_partitioner{}(100 << 20) == 1);
  CHECK(min_size_partitioner{.min_shard_bytes = 1000, .max_shards = 8}(999) == 1);
  CHECK(min_size_partitioner{.min_shard_bytes = 1000, .max_shards = 8}(4999) == 4);
  CHECK(min_size_partitioner{.min_shard_bytes = 1000, .max_shards = 8}(1 << 20) == 8);
  CHECK(max_size_partitioner{.max_shard_bytes = 1000}(1000) == 1);
  CHECK(max_size_partitioner{.max_shard_bytes = 1000}(4001) == 5);
  CHECK(max_size_partitioner{.max_shard_bytes = 1000, .max_shards = 3}(4001) == 3);
  CHECK(max_size_partitioner{.max_shard_bytes = 0}(std::numeric_limits<long>::max() / 2) == std::numeric_limits<int>::max());
  CHECK(detail::partition(160, 4, [](long bytes) { return int(bytes / 64); }, 2).size() == 10);
  CHECK(error_of([] { detail::partition(160, 4, fixed_shards_partitioner{0}, 2); }) ==
        "parameter_server: the partitioner returned 0 shards; at least one is needed");
  CHECK(error_of([] { detail::partition(160, 4, fixed_shards_partitioner{}, 0); }) ==
        "parameter_server: the cluster has no ps, so no process would keep the parameters");
  const char* const no_parameters = "parameter_server: the network has no trained parameters, so the servers would keep nothing";
  CHECK(error_of([] { detail::partition(0, 4, fixed_shards_partitioner{}, 2); }) == no_parameters);
  CHECK(error_of([] { partition_between({}, 4, fixed_shards_partitioner{}, 2); }) == no_parameters);
}

namespace {
constexpr long size = 64;

member worker(int rank, std::uint64_t incarnation) {
  return {.rank = rank, .host = "node" + std::to_string(rank), .pid = 100 + rank, .incarnation = incarnation};
}

/// One server of two shards, on which workers have joined as incarnations 1, 2, ...
template <class Optimizer = sgd>
struct bench {
  using store_type = parameter_store<float, Optimizer>;
  std::vector<parameter_shard> shards;
  store_type store;

  explicit bench(int workers, staleness_policy staleness = {}, Optimizer rules = {},
                 std::chrono::milliseconds timeout = std::chrono::seconds(60), long n = size)
      : shards{{0, n, 0}, {n, 2 * n, 0}, {2 * n, 3 * n, 1}},
        store(rules, std::vector<parameter_range>{{0, 3 * n}}, shards,
              {staleness, names(workers), 0, 0, timeout, std::chrono::milliseconds(0)}) {
    for (int w = 0; w < workers; ++w) store.join(worker(w, std::uint64_t(w) + 1));
  }
  /// A server with all given shards, and one worker.
  bench(Optimizer rules, const std::vector<parameter_range>& parameters, std::vector<parameter_shard> all)
      : shards(std::move(all)), store(rules, parameters, shards, {asynchronous{}, names(1)}) {
    store.join(worker(0, 1));
  }
  static std::vector<std::string> names(int workers) {
    std::vector<std::string> out;
    for (int w = 0; w < workers; ++w) out.push_back("worker " + std::to_string(w));
    return out;
  }
  static auto reader(const std::vector<float>& values) {
    return [&values, at = std::size_t(0)](void* to, std::size_t bytes) mutable {
      if (bytes > 0) std::memcpy(to, reinterpret_cast<const std::byte*>(values.data()) + at, bytes);
      at += bytes;
    };
  }
  parameter_answer<float> assign(const std::vector<float>& w, std::uint32_t shard = 0, bool initial = true) {
    return store.assign(0, 1, shard, initial, w.size() * sizeof(float), reader(w));
  }
  /// The place for an answer; empty until there is one.
  using mailbox = std::shared_ptr<std::optional<parameter_answer<float>>>;
  static auto into(const mailbox& box) {
    return [box](parameter_answer<float> a) { *box = std::move(a); };
  }
  mailbox push(push_request p, const std::vector<float>& g, std::uint32_t shard = 0) {
    auto box = std::make_shared<std::optional<parameter_answer<float>>>();
    store.push(p, shard, box.get(), g.size() * sizeof(float), reader(g), into(box));
    return box;
  }
  mailbox pull(int worker, std::uint64_t incarnation, std::uint32_t shard = 0) {
    auto box = std::make_shared<std::optional<parameter_answer<float>>>();
    store.pull(worker, incarnation, shard, false, box.get(), into(box));
    return box;
  }
};

std::vector<float> all(float value, long n = size) { return std::vector<float>(std::size_t(n), value); }
push_request of(int worker, std::int64_t step, double rate = 1, int samples = 1) {
  return {worker, std::uint64_t(worker) + 1, step, rate, samples, 1};
}
}  // namespace

TEST_CASE("a repeated push is applied once, to each shard by itself") {
  bench b(1);
  b.assign(all(10)), b.assign(all(20), 1);
  CHECK(*b.push(of(0, 0), all(1))->value().weights == 9);
  for (int again = 0; again < 3; ++again) {
    const auto a = b.push(of(0, 0), all(1));
    CHECK(*a->value().weights == 9);
    CHECK(a->value().version == 1);
  }
  CHECK(*b.push(of(0, 0), all(1), 1)->value().weights == 19);
  CHECK(*b.push(of(0, 1), all(1))->value().weights == 8);
  CHECK(*b.push(of(0, 0), all(1))->value().weights == 8);  // late
}

TEST_CASE("a process that has been replaced, or never joined, changes nothing; its successor begins anew") {
  bench b(2);
  b.assign(all(10));
  b.push(of(1, 5), all(1));
  b.store.join(worker(1, 77));
  CHECK(b.push(of(1, 6), all(1))->value().why == detail::refusal::fenced);
  CHECK(b.pull(1, 2)->value().why == detail::refusal::fenced);
  CHECK(b.pull(1, 77)->value().version == 1);
  CHECK(*b.push({1, 77, 0, 1, 1, 1}, all(1))->value().weights == 8);
  CHECK(b.push({1, 78, 0, 1, 1, 1}, all(1))->value().why == detail::refusal::fenced);
  b.store.leave(1, 77);
  CHECK(b.push({1, 77, 1, 1, 1, 1}, all(1))->value().why == detail::refusal::fenced);
  CHECK(*b.pull(0, 1)->value().weights == 8);
}

TEST_CASE("a gradient with nan or infinity is refused with the name of its worker, and changes nothing") {
  for (const staleness_policy policy : {staleness_policy(asynchronous{}), staleness_policy(synchronous{})}) {
    bench b(2, policy);
    b.assign(all(10));
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
      std::vector<float> g = all(1);
      g.back() = bad;
      const auto a = b.push(of(1, 0, 1, 2), g);
      REQUIRE(a->has_value());
      CHECK(a->value().why == detail::refusal::invalid);
      CHECK(a->value().text ==
            "the gradient of worker 1 (rank 1, node1, pid 101) for shard 0 in step 0 has nan or infinity, and is not applied");
    }
    CHECK(*b.pull(0, 1)->value().weights == 10);
  }
}

TEST_CASE("requests that make no sense are refused and change nothing") {
  bench b(2);
  CHECK(b.push(of(0, 0), all(1))->value().text == "a gradient for shard 0, which has no weights");
  CHECK(b.assign(all(10, size - 1)).why == detail::refusal::invalid);
  CHECK(b.store.assign(1, 2, 0, true, size * sizeof(float), [](void*, std::size_t) { FAIL("read"); }).text ==
        "only worker 0 assigns weights");
  b.assign(all(10));
  const auto refused = [&](push_request p, std::size_t bytes, std::uint32_t shard) {
    bool answered = false;
    b.store.push(
        p, shard, &b, bytes, [](void*, std::size_t) { FAIL("read"); },
        [&](parameter_answer<float> a) {
          answered = true;
          CHECK(a.why != detail::refusal::none);
          CHECK(a.weights == nullptr);
        });
    CHECK(answered);
  };
  constexpr std::size_t right = size * sizeof(float);
  for (const std::size_t bytes : {std::size_t(0), right - 1, right + 1, 2 * right, std::numeric_limits<std::size_t>::max()})
    refused(of(0, 0), bytes, 0);
  for (const std::uint32_t shard : {2u, 3u, 1000u, std::numeric_limits<std::uint32_t>::max()}) refused(of(0, 0), right, shard);
  refused(of(0, -1), right, 0);
  refused(of(0, 0, 1, 0), right, 0);
  refused(of(0, 0, 1, -5), right, 0);
  refused(of(0, 0, std::numeric_limits<double>::quiet_NaN()), right, 0);
  refused(of(0, 0, std::numeric_limits<double>::infinity()), right, 0);
  refused({-1, 0, 0, 1, 1, 1}, right, 0);
  refused({2, 3, 0, 1, 1, 1}, right, 0);
  refused({0, 1, 0, 1, 1, 0}, right, 0);
  refused({0, 1, 0, 1, 1, max_leaves + 1}, right, 0);
  CHECK(b.pull(0, 1)->value().version == 0);
  CHECK(*b.pull(0, 1)->value().weights == 10);
}

TEST_CASE("the first assignment counts, others on demand; a pull waits for it") {
  bench b(2);
  const auto early = b.pull(1, 2), forgotten = b.pull(0, 1);
  CHECK(!early->has_value());
  CHECK(b.store.forget(0, forgotten.get()));
  CHECK(!b.store.forget(0, forgotten.get()));
  b.assign(all(10));
  CHECK(*early->value().weights == 10);
  CHECK(!forgotten->has_value());
  b.assign(all(11));
  CHECK(*b.pull(0, 1)->value().weights == 10);
  b.assign(all(12), 0, false);
  CHECK(*b.pull(0, 1)->value().weights == 12);
  CHECK(*early->value().weights == 10);
}

TEST_CASE("an answer keeps its weights, and is never half of one update and half of the next") {
  constexpr long many = 1 << 15;
  bench b(3, {}, sgd{}, std::chrono::seconds(60), many);
  b.assign(all(0, many));
  const auto first = b.push(of(0, 0), all(1, many));
  std::atomic<bool> mixed = false, over = false;
  std::thread reader([&] {
    while (!over) {
      const auto a = b.pull(0, 1);
      const float* const w = a->value().weights.get();
      for (long i = 0; i < many; ++i)
        if (w[i] != float(-a->value().version)) mixed = true;
    }
  });
  std::vector<std::thread> writers;
  for (int w : {1, 2})
    writers.emplace_back([&, w] {
      for (int step = 0; step < 200; ++step) b.push(of(w, step), all(1, many));
    });
  for (auto& w : writers) w.join();
  over = true;
  reader.join();
  CHECK(!mixed);
  CHECK(first->value().weights.get()[many - 1] == -1);
  CHECK(b.pull(0, 1)->value().version == 401);
}

TEST_CASE("optimizers keep their state on the server: a shard is updated as the whole") {
  bench<adam> b(1, {}, adam{.learning_rate = 0.1, .weight_decay = 0.01});
  b.assign(all(1));
  arena<float> w(size), m(size), v(size), g(size);
  std::ranges::fill(w.span(), 1.0f);
  float* slots[] = {m.data(), v.data(), nullptr};
  const adam rules{.learning_rate = 0.1, .weight_decay = 0.01};
  for (int step = 0; step < 5; ++step) {
    std::vector<float> gradient(size);
    std::iota(gradient.begin(), gradient.end(), float(step) - 20);
    b.push(of(0, step, 0.1, 3), gradient);
    std::ranges::copy(gradient, g.data());
    float* leaves[] = {g.data()};
    const parameter_range whole[] = {{0, size}};
    rules.with_rule<float>(step, 0.1, [&](const auto& rule) {
      if constexpr (std::remove_cvref_t<decltype(rule)>::slots == 2)
        weight_update<float, adam>{rules, 0.1, whole, w.data(), slots}.apply(rule, reduced(leaves, 1, 3), 0, size);
    });
  }
  const auto a = b.pull(0, 1);
  CHECK(std::memcmp(a->value().weights.get(), w.data(), size * sizeof(float)) == 0);
}

namespace {
/// Checks that three pushes to shards of whole parameters have the bits of three updates of the whole arena.
template <class Optimizer>
void check_whole_parameters(const Optimizer& rules) {
  std::vector<parameter_range> parameters;
  long n = 0;
  for (const auto& [elements, regularizer] :
       {std::pair{3000L, penalty{}}, {40L, {}}, {2000L, {0.01, 0.02}}, {16L, {}}, {1100L, {}}}) {
    const long end = n + (elements + 15) / 16 * 16;
    parameters.push_back({n, end, regularizer, elements});
    n = end;
  }
  bench<Optimizer> b(rules, parameters, partition_between(parameters, sizeof(float), fixed_shards_partitioner{4}, 1));
  REQUIRE(b.shards.size() >= 3);
  const auto fill = [&](std::vector<float>& to, std::uint64_t key) {
    for (const parameter_range& p : parameters)
      for (long i = p.begin; i < p.begin + p.elements; ++i)
        to[std::size_t(i)] = float(philox{key}.uniform(std::uint64_t(i))) - 0.4f;
  };
  const auto part = [](const std::vector<float>& of, const parameter_shard& s) {
    return std::vector(of.begin() + s.begin, of.begin() + s.end);
  };
  std::vector<float> start = all(0, n), gradient = all(0, n);
  fill(start, 1);
  const auto elements = std::size_t(n);
  arena<float> w(elements), slots(2 * elements), g(elements);
  std::ranges::copy(start, w.data());
  for (std::uint32_t k = 0; k < b.shards.size(); ++k) b.assign(part(start, b.shards[k]), k);
  arena<double> norms(std::size_t(weight_update<float, Optimizer>::norm_count(parameters)));
  for (int step = 0; step < 3; ++step) {
    fill(gradient, 2 + std::uint64_t(step));
    for (std::uint32_t k = 0; k < b.shards.size(); ++k) b.push(of(0, step, 0.1, 3), part(gradient, b.shards[k]), k);
    std::ranges::copy(gradient, g.data());
    float *at[] = {slots.data(), slots.data() + n, nullptr}, *leaves[] = {g.data()};
    rules.template with_rule<float>(step, 0.1, [&](const auto& rule) {
      const weight_update<float, Optimizer> update{rules, 0.1, parameters, w.data(), at, norms.data()};
      update.run(rule, reduced(leaves, 1, 3), [&](auto&& pass) { pass(0, n); });
    });
  }
  CHECK(std::memcmp(w.data(), start.data(), std::size_t(n) * sizeof(float)) != 0);
  for (std::uint32_t k = 0; k < b.shards.size(); ++k) {
    const parameter_shard& s = b.shards[k];
    CHECK(std::memcmp(b.pull(0, 1, k)->value().weights.get(), w.data() + s.begin, std::size_t(s.size()) * sizeof(float)) == 0);
  }
}
}  // namespace

TEST_CASE("norms of whole parameters: the bits of one device") {
  check_whole_parameters(lamb{.weight_decay = 0.01});
  check_whole_parameters(lamb{.clipnorm = 0.5});
  check_whole_parameters(sgd{.clipnorm = 0.5});
}

TEST_CASE("bounded staleness: who is too far ahead waits for the slowest, but not for one that has left or is gone") {
  for (const bool dies : {false, true}) {
    bench b(3, bounded_staleness{2});
    b.assign(all(0));
    CHECK(b.push(of(0, 0), all(1))->has_value());
    CHECK(b.push(of(0, 1), all(1))->has_value());
    const auto third = b.push(of(0, 2), all(1));
    CHECK(!third->has_value());
    b.push(of(1, 0), all(1));
    CHECK(!third->has_value());
    if (dies)
      b.store.lose(2, 3, 1);
    else
      b.push(of(2, 0), all(1));
    CHECK(third->has_value());
    const auto fourth = b.push(of(0, 3), all(1));
    CHECK(!fourth->has_value());
    b.store.leave(1, 2);
    b.store.leave(2, 3);
    CHECK(fourth->has_value());
    b.store.join(worker(1, 9));  // a late one begins at the step of the slowest
    CHECK(b.push({1, 9, 0, 1, 1, 1}, all(1))->has_value());
    CHECK(b.push({1, 9, 1, 1, 1, 1}, all(1))->has_value());
  }
}

TEST_CASE("synchronous: all workers, the order of their arrival is nothing, and each counts once") {
  std::vector<float> expected;
  for (const auto& order : {std::vector{0, 1, 2}, std::vector{2, 1, 0}, std::vector{1, 1, 2, 1, 0}}) {
    bench b(3, synchronous{});
    b.assign(all(1));
    std::vector<bench<>::mailbox> answers;
    for (const int w : order) {
      for (const auto& a : answers) CHECK(!a->has_value());
      const int subtree_count = detail::subtrees(share_of(8, w, 3)).count();
      std::vector<float> sums(std::size_t(subtree_count) * size);
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = 1.0f / float(3 * i + std::size_t(w) + 1);
      answers.push_back(b.push({w, std::uint64_t(w) + 1, 0, 0.1, 64, 8}, sums));
    }
    for (const auto& a : answers) {
      REQUIRE(a->has_value());
      CHECK(a->value().version == 1);
      const std::vector<float> w(a->value().weights.get(), a->value().weights.get() + size);
      if (expected.empty()) expected = w;
      CHECK(w == expected);
    }
    CHECK(b.push({0, 1, 0, 0.1, 64, 8}, std::vector<float>(std::size_t(detail::subtrees(share_of(8, 0, 3)).count()) * size))
              ->value()
              .version == 1);
    CHECK(b.push({0, 1, 5, 0.1, 64, 8}, std::vector<float>(std::size_t(detail::subtrees(share_of(8, 0, 3)).count()) * size))
              ->value()
              .text == "worker 0 pushes step 5, but the servers are at step 1");
  }
  bench b(1, synchronous{});
  b.assign(all(1));
  for (const std::int64_t step : {0, 1}) CHECK(b.push(of(0, step), all(1))->value().version == step + 1);
  CHECK(b.push(of(0, 1), all(1))->value().version == 2);  // again
  CHECK(b.push(of(0, 0), all(1))->value().text == "worker 0 pushes step 0, but the servers are at step 2");
}

TEST_CASE("synchronous: workers that read other batches, that leave or are gone, are named") {
  const auto begin = [](bench<>& b) {
    b.assign(all(1));
    return b.push({0, 1, 0, 0.1, 64, 2}, all(1));
  };
  {
    bench b(2, synchronous{});
    begin(b);
    CHECK(b.push({1, 2, 0, 0.1, 32, 2}, all(1))->value().text ==
          "worker 1 and worker 0 do not read the same batches: 32 and 64 samples in 2 and 2 leaves in step 0");
  }
  {
    bench b(2, synchronous{});
    const auto waits = begin(b);
    b.store.leave(1, 2);
    CHECK(waits->value().text == "worker 1 (rank 1, node1, pid 101) has left before step 0");
  }
  {
    bench b(2, synchronous{}, sgd{}, std::chrono::seconds(60));
    const auto waits = begin(b);
    b.store.announce(1, 2, "a label is wrong");
    b.store.announce(1, 77, "of another process");
    b.store.tick();
    CHECK(!waits->has_value());  // its program may go on
    b.store.lose(1, 2, 1);
    REQUIRE(waits->has_value());
    CHECK(waits->value().text == "worker 1 (rank 1, node1, pid 101) ends because of an error: a label is wrong");
    CHECK(b.store.trouble_of(1) == waits->value().text);
    CHECK(b.store.trouble_of(0) == "");
  }
  {
    bench b(2, synchronous{});
    const auto waits = begin(b);
    b.store.join(worker(1, 2));  // again
    b.store.lose(1, 2, 1);       // the first connection, late
    b.store.tick();
    CHECK(!waits->has_value());
    b.store.lose(1, 2, 2);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    b.store.tick();
    CHECK(waits->value().text == "worker 1 (rank 1, node1, pid 101) is gone: it did not push step 0");
  }
  {
    bench b(2, synchronous{}, sgd{}, std::chrono::milliseconds(10));
    const auto waits = begin(b);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    b.store.tick();
    CHECK(waits->value().text == "worker 1 (rank 1, node1, pid 101) has kept step 0 of worker 0 waiting for 0 s");
  }
}

TEST_CASE("a snapshot is written beside the pushes: a worker does not wait for the disk") {
  bench<adam> b(1);
  b.assign(all(10));
  int sections = 0;
  detail::save_snapshot(b.store, [&](std::string_view) {
    b.push(of(0, sections), all(1));  // would wait without end for a shard that is locked
    ++sections;
  });
  CHECK(sections >= 4);
  CHECK(b.store.changes() > sections);
}

TEST_CASE(
    "snapshots: the newest that is whole counts, one of another training is refused, and pushes in it are not applied again") {
  const test::scratch_folder folder("parameter-snapshots");
  const snapshot_options each{.folder = folder.path, .updates = 1};
  bench<adam> b(2);
  parameter_snapshots snapshots(each, 0, "program");
  const auto value = [](auto& server, std::uint32_t shard = 0) { return *server.pull(0, 1, shard)->value().weights; };
  b.assign(all(10)), b.assign(all(20), 1);
  snapshots.save_when_due(b.store);
  b.push(of(0, 0), all(1)), b.push(of(1, 7), all(2)), b.push(of(0, 0), all(1), 1);
  snapshots.save_when_due(b.store);
  const auto saved = folder.read("ps_0.snapshot");
  const float then = value(b), other = value(b, 1);
  b.push(of(0, 1), all(1)), b.push(of(1, 8), all(5));
  const float later = value(b);

  {
    bench<adam> again(2);
    REQUIRE(parameter_snapshots(each, 0, "program").restore(again.store));
    CHECK(value(again) == then);
    CHECK(value(again, 1) == other);
    CHECK(again.push(of(1, 7), all(2))->value().version == 2);  // not a second time
    CHECK(again.push(of(0, 1), all(1))->value().version == 3);
    again.push(of(1, 8), all(5));
    CHECK(value(again) == later);  // the optimizer has its state
  }
  bench<adam> fresh(2);
  CHECK(error_of([&] { parameter_snapshots(each, 0, "another").restore(fresh.store); }) ==
        (folder / "ps_0.snapshot").string() + " belongs to another training: it has 'program', this process 'another'");
  CHECK(!parameter_snapshots(each, 1, "program").restore(fresh.store));
  CHECK(!parameter_snapshots().restore(fresh.store));
  bench<adam> more(3);
  CHECK(error_of([&] { parameter_snapshots(each, 0, "program").restore(more.store); }).find("its shards are different") !=
        std::string::npos);
  CHECK(!more.pull(0, 1)->has_value());

  // With damage at each byte, and with each length, the whole old state is restored, never a part of the new one.
  int whole = 0;
  for (std::size_t at = 0; at < saved.size(); at += 1 + at / 16) {
    for (const bool cut : {false, true}) {
      auto damaged = saved;
      if (cut)
        damaged.resize(at);
      else
        damaged[at] ^= 0x10;
      folder.write("ps_0.snapshot", damaged);
      bench<adam> again(2);
      REQUIRE(parameter_snapshots(each, 0, "program").restore(again.store));
      whole += value(again) == 10 && value(again, 1) == 20;
    }
  }
  CAPTURE(saved.size());
  CHECK(whole > 100);
  folder.write("ps_0.previous.snapshot", "no snapshot");
  bench<adam> nothing(2);
  CHECK(!parameter_snapshots(each, 0, "program").restore(nothing.store));
  snapshots.remove();
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path), {}) == 1);  // the damaged file is kept
  CHECK(std::filesystem::exists(folder / "ps_0.damaged.snapshot"));
}

TEST_CASE("snapshots: arrays are no part of a message, so they may be larger than one") {
  bench<adam> b(1);
  b.assign(all(10)), b.assign(all(20), 1);
  std::vector<std::string> sections;
  detail::save_snapshot(b.store, [&](std::string_view section) { sections.emplace_back(section); });
  b.store.for_each_shard([&](std::size_t k, auto& shard, auto&, auto&) {
    REQUIRE(sections.size() > 3 * k + 3);
    CHECK(sections[3 * k + 2] == detail::bytes_of(std::as_const(shard).weights()));
    CHECK(sections[3 * k + 3] == detail::bytes_of(std::as_const(shard).slots()));
  });
}

TEST_CASE("snapshots: a folder that has the name of one is reported, with what the server does instead") {
  const test::scratch_folder folder("parameter-folder");
  const snapshot_options each{.folder = folder.path, .updates = 1};
  bench<adam> b(2);
  parameter_snapshots snapshots(each, 0, "program");
  b.assign(all(10)), b.assign(all(20), 1);
  snapshots.save_when_due(b.store);
  const auto restored = [&] {
    std::ostringstream text;
    std::streambuf* const before = std::clog.rdbuf(text.rdbuf());
    bench<adam> again(2);
    const bool found = parameter_snapshots(each, 0, "program").restore(again.store);
    std::clog.rdbuf(before);
    return std::pair(found, text.str());
  };
  CHECK(restored() == std::pair(true, std::string()));
  const auto newest = folder / "ps_0.snapshot", previous = folder / "ps_0.previous.snapshot";
  std::filesystem::rename(newest, previous);
  std::filesystem::create_directory(newest);
  const std::string unread = "cannot read " + newest.string() + ": Is a directory";
  CHECK(restored() == std::pair(true, unread + "; the parameters are those of " + previous.string() + '\n'));
  CHECK(std::filesystem::is_directory(folder / "ps_0.damaged.snapshot"));  // it no longer blocks the next snapshot
  CHECK(restored() == std::pair(true, std::string()));
  std::filesystem::create_directory(newest);
  std::filesystem::remove(previous);
  CHECK(restored() == std::pair(false, unread + "; no snapshot is left to continue from\n"));
}

TEST_CASE("snapshots: a file of malformed messages is named") {
  const test::scratch_folder folder("parameter-malformed");
  detail::section_writer write(folder / "ps_0.snapshot");
  for (const auto section : {"strata parameter server, snapshot 4\nprogram", "no message", "end"}) write(section);
  write.commit();
  bench b(1);
  CHECK(error_of([&] {
          parameter_snapshots({.folder = folder.path}, 0, "program").restore(b.store);
        }).starts_with((folder / "ps_0.snapshot").string() + ": malformed snapshot of a server: "));
}

TEST_CASE("a process that has been replaced does not come back") {
  bench b(2);
  CHECK(b.store.join(worker(1, 77)) > 0);
  CHECK(b.store.join(worker(1, 2)) == -1);
  CHECK(b.store.join(worker(1, 77)) > 0);
}

TEST_CASE("two processes that join as the same worker at once: the later one may push") {
  bench b(2);
  b.assign(all(0)), b.assign(all(0), 1);
  for (std::uint64_t round = 0; round < 800; ++round) {
    const std::uint64_t names[] = {100 + 2 * round, 101 + 2 * round};
    long connections[2] = {};
    std::atomic<int> ready = 0;
    const auto join = [&](std::size_t i) {
      for (++ready; ready < 2;) std::this_thread::yield();
      connections[i] = b.store.join(worker(1, names[i]));
    };
    std::thread other(join, 1);
    join(0);
    other.join();
    const std::uint64_t later = names[connections[1] > connections[0]];
    for (const std::uint32_t shard : {0u, 1u}) REQUIRE(b.push({1, later, 0, 1, 1, 1}, all(1), shard)->value().text == "");
  }
}

TEST_CASE("a server that is started again after the chief has left waits for who still trains; another run begins anew") {
  const test::scratch_folder folder("parameter-over");
  const snapshot_options each{.folder = folder.path, .updates = 1};
  bench b(2);
  b.assign(all(10)), b.assign(all(20), 1);
  b.store.leave(0, 1);
  parameter_snapshots(each, 0, "program").save_when_due(b.store);
  for (const std::uint64_t run : {0u, 7u}) {
    bench<>::store_type again(sgd{}, std::vector<parameter_range>{{0, 3 * size}}, b.shards,
                              {.workers = bench<>::names(2), .run = run});
    REQUIRE(parameter_snapshots(each, 0, "program").restore(again));
    CHECK(again.chief_has_left() == (run == 0));
    CHECK(again.has_had_members() == (run == 0));
    CHECK(!again.is_deserted());
    again.join(worker(1, 2));
    again.leave(1, 2);
    CHECK(again.is_deserted());
  }
}

TEST_CASE("synchronous: a server that is started again answers a repeated push with the metric sums of the step") {
  const auto store = [] {
    return bench<>::store_type(sgd{}, std::vector<parameter_range>{{0, size}}, {{0, size, 0}},
                               {.staleness = synchronous{}, .workers = {"worker 0"}, .metric_sums_width = 2});
  };
  const test::scratch_folder folder("parameter-metric-sums");
  const std::vector<float> weights = all(1);
  const std::vector<float> gradient = all(1);
  const std::vector<double> metric_sums{3, 4};
  std::optional<parameter_answer<float>> answer;
  const auto respond = [&](parameter_answer<float> a) { answer = std::move(a); };
  const auto push = [&](auto& to) {
    push_request p{0, 1, 0, 1, 1, 1};
    p.metric_sums = metric_sums;
    to.push(p, 0, &answer, gradient.size() * sizeof(float), bench<>::reader(gradient), respond);
    REQUIRE(answer->why == detail::refusal::none);
    return answer->metric_sums;
  };
  auto first = store(), again = store();
  first.join(worker(0, 1));
  first.assign(0, 1, 0, true, weights.size() * sizeof(float), bench<>::reader(weights));
  REQUIRE(push(first) == metric_sums);
  parameter_snapshots({.folder = folder.path, .updates = 1}, 0, "program").save_when_due(first);
  REQUIRE(parameter_snapshots({.folder = folder.path}, 0, "program").restore(again));
  again.join(worker(0, 1));
  CHECK(push(again) == metric_sums);
  again.pull(0, 1, 0, false, &answer, respond);
  CHECK(answer->metric_sums.empty());
}

TEST_CASE("a snapshot that could not be written is tried again, and what a killed server left is removed") {
  const test::scratch_folder folder("parameter-unwritten");
  folder.write("ps_0.new.snapshot", "half of a snapshot");
  folder.write("ps_1.new.snapshot", "of another server");
  bench b(1);
  parameter_snapshots snapshots({.folder = folder.path, .every = std::chrono::milliseconds(1)}, 0, "program");
  CHECK(!snapshots.restore(b.store));
  CHECK(!std::filesystem::exists(folder / "ps_0.new.snapshot"));
  CHECK(std::filesystem::exists(folder / "ps_1.new.snapshot"));
  b.assign(all(10)), b.assign(all(20), 1);
  const auto save = [&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    snapshots.save_when_due(b.store);
    return std::filesystem::is_regular_file(folder / "ps_0.snapshot");
  };
  folder.write("ps_0.new.snapshot/in", "a folder");
  CHECK(!save());
  CHECK(std::filesystem::exists(folder / "ps_0.new.snapshot/in"));
  std::filesystem::remove_all(folder / "ps_0.new.snapshot");
  CHECK(save());
  CHECK(!std::filesystem::exists(folder / "ps_0.new.snapshot"));
}

TEST_CASE("snapshots: a damaged newest one never takes the place of the good one before it") {
  const test::scratch_folder folder("parameter-damaged");
  const snapshot_options each{.folder = folder.path, .updates = 1};
  {
    bench b(1);
    parameter_snapshots snapshots(each, 0, "program");
    b.assign(all(10)), b.assign(all(20), 1);
    snapshots.save_when_due(b.store);
    b.push(of(0, 0), all(1)), b.push(of(0, 0), all(1), 1);
    snapshots.save_when_due(b.store);
  }
  auto damaged = folder.read("ps_0.snapshot");
  damaged.resize(damaged.size() / 2);
  folder.write("ps_0.snapshot", damaged);
  bench again(1);
  parameter_snapshots snapshots(each, 0, "program");
  REQUIRE(snapshots.restore(again.store));
  again.push(of(0, 0), all(1)), again.push(of(0, 0), all(1), 1);
  snapshots.save_when_due(again.store);
  CHECK(folder.read("ps_0.damaged.snapshot") == damaged);
  // The state after a kill between the two renames of the next snapshot.
  std::filesystem::remove(folder / "ps_0.snapshot");
  bench last(1);
  std::filesystem::rename(folder / "ps_0.previous.snapshot", folder / "ps_0.snapshot");
  CHECK(parameter_snapshots(each, 0, "program").restore(last.store));
}

TEST_CASE("snapshots: two servers that use the same ones at once: the later is told which process has them") {
  const test::scratch_folder folder("parameter-held");
  parameter_snapshots first({.folder = folder.path}, 0, "program"), second({.folder = folder.path}, 0, "program"),
      other({.folder = folder.path}, 1, "program");
  first.hold();
  CHECK_NOTHROW(other.hold());
  const std::string words = error_of([&] { second.hold(); });
  CHECK(words.starts_with((folder / "ps_0.snapshot").string() + " is in use by process " + std::to_string(::getpid()) + " on "));
  CHECK(words.ends_with(": give each training a folder of its own"));
  {
    const parameter_snapshots ended = std::move(first);
  }
  CHECK_NOTHROW(second.hold());
}
