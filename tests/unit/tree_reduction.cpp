// Sums over processes have the bits of one process, however they are cut, sent and shared; and no more bytes are sent than
// needed.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <random>
#include <strata/cpu/engine/host_arithmetic.hpp>
#include <strata/exchange/gradient_buckets.hpp>
#include <strata/exchange/tree_reduction.hpp>
#include <vector>

#include "count_allocations.hpp"
#include "error_of.hpp"
#include "fake_machines.hpp"
#include "larger.hpp"
using namespace strata;
using namespace strata::core;
using strata::test::among_machines;
using strata::test::contains;
using strata::test::traffic;
using numbers = std::vector<float>;

namespace {
struct alignas(64) block {
  float values[16];
};
/// Leaves with elements whose sum has other bits in any other order.
struct some_leaves {
  std::vector<std::vector<block>> data;
  std::vector<float*> at;

  some_leaves(int count, long size, unsigned seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> exponent(-20, 20);
    for (int l = 0; l < count; ++l) {
      data.emplace_back(std::size_t(size + 15) / 16);
      at.push_back(data.back()[0].values);
      for (long i = 0; i < size; ++i) at.back()[i] = std::exp2(exponent(random)) * (random() % 2 ? 1.f : -1.f);
    }
  }
};
numbers sum_of(const some_leaves& leaves, long size) {
  std::vector<block> sum(std::size_t(size + 15) / 16);
  sum_leaves(sum[0].values, leaves.at.data(), int(leaves.at.size()), 0, size);
  const float* first = sum[0].values;
  return {first, first + size};
}

/// [0, size) cut at multiples of 16, the last range first; groups are numbered from the end.
std::vector<gradient_bucket> cut(long size, int pieces, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<long> at{0, size};
  for (int i = 1; i < pieces; ++i) at.push_back(long(random() % unsigned(size / 16)) * 16);
  std::ranges::sort(at);
  at.erase(std::unique(at.begin(), at.end()), at.end());
  std::vector<gradient_bucket> buckets;
  for (std::size_t i = at.size() - 1; i > 0; --i)
    buckets.push_back({at[i - 1], at[i], int(i) * 3, detail::lasting("gradients of piece " + std::to_string(i))});
  return buckets;
}

/// Runs a step: threads take leaves and report one group after the other as passed, in descending order.
template <class Sum, class C>
float* step(Sum& sum, C& c, thread_team& team, const some_leaves& leaves, const std::vector<gradient_bucket>& buckets) {
  const int count = int(leaves.at.size());
  const leaf_range own = share_of(count, c.rank(), c.size());
  sum.begin(c, leaves.at.data() + own.begin, count);
  team.for_tasks(own.size(), [&](int, int) {
    for (int group = buckets.front().group + 2; group >= 0; --group) sum.passed(c, group);
  });
  return sum.finish(c, team);
}

bool same_bits(const float* a, const numbers& b) { return std::memcmp(a, b.data(), b.size() * sizeof(float)) == 0; }
}  // namespace

namespace {
void check_bits(const std::vector<std::vector<int>>& machines, const std::vector<int>& counts, const std::vector<int>& cuts) {
  unsigned seed = 0;
  for (const auto& of_ranks : machines)
    for (const int count : counts)
      for (const int pieces : cuts) {
        ++seed;
        CAPTURE(of_ranks.size());
        CAPTURE(of_ranks.back());
        CAPTURE(count);
        CAPTURE(pieces);
        const long size = 16 * long(1 + seed * 7919 % 600);
        const some_leaves leaves(count, size, seed);
        const numbers expected = sum_of(leaves, size);
        const auto buckets = cut(size, pieces, seed);
        traffic sent;
        std::atomic<int> wrong{0};
        const auto failures = among_machines(of_ranks, sent, [&](auto c) {
          thread_team team(1 + int(seed + unsigned(c.rank())) % 2);
          tree_reduction<float, test::fake_machines> sum;
          sum.prepare(c, buckets, count);
          for (int again = 0; again < 2; ++again) wrong += !same_bits(step(sum, c, team, leaves, buckets), expected);
        });
        for (const auto& f : failures) CHECK(f == "");
        CHECK(wrong == 0);
      }
}
}  // namespace

TEST_CASE("any leaves, processes, machines, threads and buckets: the bits of one process") {
  check_bits({{0},
              {0, 1},
              {0, 0},
              {0, 1, 2},
              {0, 0, 1, 1},
              {0, 1, 0, 1},
              {0, 0, 1, 2},
              {0, 0, 0, 0, 7},
              {5, 5, 5, 3, 3, 3},
              {1, 1, 2, 2, 3, 3}},
             {1, 2, 4, 6, 8, 13, 16}, {1, 2, 9});
}

TEST_CASE("so do more leaves than are added up in one pass, and more processes") {
  std::vector<int> far, four_each;
  for (int r = 0; r < 20; ++r) far.push_back(r), four_each.push_back(r / 4);
  check_bits({{0, 1, 2}, {0, 0, 1, 1}, far, four_each}, {20, 32, 40, 100}, {3});
}

TEST_CASE("more messages than a communicator holds are no deadlock") {
  const long size = 16 * 200;
  const some_leaves leaves(6, size, 1);
  const numbers expected = sum_of(leaves, size);
  const auto buckets = cut(size, 150, 1);
  REQUIRE(buckets.size() > 70);
  traffic sent;
  std::atomic<int> wrong{0};
  for (const auto& f : among_machines({0, 0, 0, 0}, sent, [&](auto c) {
         thread_team team(1);
         tree_reduction<float, test::fake_machines> sum;
         sum.prepare(c, buckets, 6);
         for (int again = 0; again < 20; ++again) wrong += !same_bits(step(sum, c, team, leaves, buckets), expected);
       }))
    CHECK(f == "");
  CHECK(wrong == 0);
}

TEST_CASE("between machines each number travels once, whatever the number of processes") {
  const long size = 16 * norm_piece;
  const some_leaves leaves(8, size, 1);
  const auto bytes_between = [&](const std::vector<int>& machines) {
    traffic sent;
    for (const auto& f : among_machines(machines, sent, [&](auto c) {
           thread_team team(1);
           tree_reduction<float, test::fake_machines> sum;
           sum.prepare(c, cut(size, 1, 1), 8);
           sum.begin(c, leaves.at.data() + share_of(8, c.rank(), c.size()).begin, 8);
           sum.finish(c, team);
         }))
      CHECK(f == "");
    return sent.between_machines.load();
  };
  const long once = size * long(sizeof(float));
  CHECK(bytes_between({0, 1}) == 2 * once);        // from each to the other
  CHECK(bytes_between({0, 0, 1, 1}) == 2 * once);  // no more
  CHECK(bytes_between({0, 0, 0, 0, 1, 1, 1, 1}) == 2 * once);
  CHECK(bytes_between({0, 0, 1, 1, 2, 2, 3, 3}) == 6 * once);  // 2 (M - 1) / M from each of M machines
  CHECK(bytes_between({0, 1, 0, 1}) == 4 * once);              // ranks of a machine are not consecutive: all send to all
  CHECK(bytes_between({0, 0, 1, 2}) == 5 * once);              // machines of different sizes: the same
}

TEST_CASE("rounded to bfloat16: half the bytes, the same bits everywhere, and what is rounded away comes later") {
  const long size = 4 * norm_piece;
  for (const std::vector<int>& machines :
       {std::vector<int>{0, 1, 2, 3}, std::vector<int>{0, 0, 1, 1}, std::vector<int>{0, 1, 2}}) {
    CAPTURE(machines.size());
    CAPTURE(machines[1]);
    const int steps = 64;
    const some_leaves leaves(8, size, 3);
    const numbers expected = sum_of(leaves, size);
    long bytes[2] = {};
    for (const bool rounds : {false, true})
      for (const int threads : {1, 2}) {
        traffic sent;
        std::vector<numbers> last(machines.size()), total(machines.size(), numbers(leaves.data[0].size() * 16));
        for (const auto& f : among_machines(machines, sent, [&](auto c) {
               thread_team team(threads);
               const auto buckets = cut(size, 3, 4);
               tree_reduction<float, test::fake_machines> sum;
               sum.prepare(c, buckets, 8, {.rounds = rounds});
               for (int s = 0; s < steps; ++s) {
                 const float* const got = step(sum, c, team, leaves, buckets);
                 last[std::size_t(c.rank())].assign(got, got + size);
                 for (long i = 0; i < size; ++i) total[std::size_t(c.rank())][std::size_t(i)] += got[i] / float(steps);
               }
             }))
          CHECK(f == "");
        bytes[rounds] = sent.bytes;
        for (const numbers& of_rank : last) CHECK(same_bits(of_rank.data(), last[0]));
        CHECK(same_bits(last[0].data(), expected) == !rounds);
        // A single sum is off by the rounding of its largest term; the mean of many by that, divided by their number.
        double worst = 0;
        for (std::size_t i = 0; i < std::size_t(size); ++i) {
          double terms = 0;
          for (const float* leaf : leaves.at) terms += std::abs(double(leaf[i]));
          worst = test::larger(worst, std::abs(double(total[0][i]) - double(expected[i])) / terms);
        }
        CHECK(worst < 0.05 / steps);
      }
    CHECK(bytes[1] * 2 == bytes[0]);
  }
}

TEST_CASE("rounding: to nearest, ties to even; nan and infinity stay, and leave no residue") {
  const float from[] = {1.f, 1.f + 0x1p-8f, 1.f + 3 * 0x1p-8f, 3.4e38f, INFINITY, NAN, 0x1p-130f, -1.f - 0x1p-9f};
  const float to[] = {1.f, 1.f, 1.f + 4 * 0x1p-8f, INFINITY, INFINITY, NAN, 0x1p-130f, -1.f};
  float residue[8] = {};
  std::uint16_t sent[8];
  float got[8];
  round_with_residue(from, residue, sent, 8);
  expand_rounded(sent, got, 8);
  for (int i = 0; i < 8; ++i) {
    CAPTURE(i);
    CHECK((got[i] == to[i] || (std::isnan(got[i]) && std::isnan(to[i]))));
    CHECK(residue[i] == (std::isfinite(to[i]) ? from[i] - to[i] : 0.f));
  }
}

TEST_CASE("who waits says for which layers") {
  const some_leaves leaves(2, 64, 1);
  const auto buckets = cut(64, 2, 3);
  REQUIRE(buckets.size() == 2);
  traffic sent;
  const auto failures = among_machines(
      {0, 1}, sent,
      [&](auto c) {
        thread_team team(1);
        tree_reduction<float, test::fake_machines> sum;
        sum.prepare(c, buckets, 2);
        if (c.rank() == 0) step(sum, c, team, leaves, buckets);
      },
      std::chrono::milliseconds(200));
  CHECK(contains(failures[0], "gradients of piece 2: process 0 has waited 200 ms for process 1"));
}

TEST_CASE("an error while gradients are being computed comes when the step ends, and a new sum can be prepared") {
  const some_leaves leaves(4, 640, 1);
  const numbers expected = sum_of(leaves, 640);
  const auto buckets = cut(640, 6, 3);
  REQUIRE(buckets.size() > 2);
  tree_reduction<float, test::fake_machines> sums[2];
  traffic sent;
  const auto late = among_machines(
      {0, 1}, sent,
      [&](auto c) {
        auto& sum = sums[c.rank()];
        thread_team team(2);
        sum.prepare(c, buckets, 4, {.rounds = true});
        if (c.rank() == 0) return void(step(sum, c, team, leaves, buckets));
        sum.begin(c, leaves.at.data() + 2, 4);  // and is gone
      },
      std::chrono::milliseconds(200));
  CHECK(contains(late[0], "gradients of piece"));
  std::atomic<int> wrong{0};
  for (const auto& f : among_machines({0, 1}, sent, [&](auto c) {
         auto& sum = sums[c.rank()];
         thread_team team(2);
         sum.prepare(c, buckets, 4);
         wrong += !same_bits(step(sum, c, team, leaves, buckets), expected);
       }))
    CHECK(f == "");
  CHECK(wrong == 0);
}

#ifndef STRATA_TEST_NEW_IS_TAKEN
TEST_CASE("a sum allocates nothing") {
  const long size = 16 * 300;
  const some_leaves leaves(8, size, 1);
  const auto buckets = cut(size, 20, 1);
  traffic sent;
  std::atomic<int> at_it{0};
  std::atomic<long> before{0}, after{0};
  for (const auto& f : among_machines({0, 0, 1, 1}, sent, [&](auto c) {
         thread_team team(1);
         tree_reduction<float, test::fake_machines> sum;
         sum.prepare(c, buckets, 8, {.rounds = true});
         const auto meet = [&](int arrivals) {
           ++at_it;
           while (at_it < arrivals) std::this_thread::yield();
         };
         for (int warm = 0; warm < 3; ++warm) step(sum, c, team, leaves, buckets);
         meet(4);
         if (c.rank() == 0) before = test::allocations.load();
         meet(8);
         for (int s = 0; s < 10; ++s) step(sum, c, team, leaves, buckets);
         meet(12);
         if (c.rank() == 0) after = test::allocations.load();
         meet(16);
       }))
    CHECK(f == "");
  CHECK(after - before == 0);
}
#endif
