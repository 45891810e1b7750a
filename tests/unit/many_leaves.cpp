// More leaves than are added up in one pass: the same tree, in one process or in many, each of which stores only its own leaves.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <exception>
#include <random>
#include <strata/communicators/in_process.hpp>
#include <strata/data.hpp>
#include <strata/distribute/synchronous_among.hpp>
#include <strata/strata.hpp>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "count_allocations.hpp"
#include "error_of.hpp"

using namespace strata;
using namespace strata::core;
using namespace strata::test;

namespace {
/// Combines the names of two sums; another order gives another name.
std::uint64_t joined(std::uint64_t a, std::uint64_t b) { return (a * 0x9E37'79B9'7F4A'7C15 ^ b) * 0xD6E8'FEB8'6659'FD93 + 1; }

template <class T, class Add>
T tree_over(std::vector<T> all, Add&& add) {
  const std::size_t n = all.size();
  for (std::size_t distance = 1; distance < n; distance *= 2)
    for (std::size_t l = 0; l + distance < n; l += 2 * distance) all[l] = add(all[l], all[l + distance]);
  return all[0];
}

std::vector<int> some_counts() {
  std::vector<int> counts;
  for (int n = 1; n <= 70; ++n) counts.push_back(n);
  for (const int n : {127, 128, 129, 500, 768, 1000, 1023, 1024}) counts.push_back(n);
  return counts;
}
}  // namespace

TEST_CASE("whatever the shares, their subtrees are added up as one process adds leaves") {
  for (const int leaves : some_counts())
    for (const int processes : {1, 2, 3, 7, 16, 17, 20, 40, 100, 1000, 1024}) {
      std::vector<std::uint64_t> names, sums;
      for (int l = 0; l < leaves; ++l) names.push_back(std::uint64_t(l) + 1);
      std::vector<leaf_range> nodes;
      int covered = 0;
      for (int r = 0; r < processes; ++r) {
        const detail::subtrees parts(share_of(leaves, r, processes));
        for (int k = 0; k < parts.count(); covered = parts[k++].end) {
          REQUIRE(parts[k].begin == covered);
          nodes.push_back(parts[k]);
          sums.push_back(tree_over(std::vector(names.begin() + parts[k].begin, names.begin() + parts[k].end), joined));
        }
      }
      REQUIRE(covered == leaves);
      add_in_tree([&](int i) { return nodes[std::size_t(i)]; }, int(nodes.size()),
                  [&](int a, int b) { sums[std::size_t(a)] = joined(sums[std::size_t(a)], sums[std::size_t(b)]); });
      CAPTURE(leaves);
      CAPTURE(processes);
      CHECK(sums[0] == tree_over(names, joined));
    }
}

TEST_CASE("sums over any number of leaves are those of the tree, also where they take the place of a leaf") {
  constexpr long size = 16 * 70, begin = 32;  // more than a block
  const auto value = [](int l, long i) {
    return std::exp2(float((l * 37 + int(i) * 11) % 41 - 20)) * ((l + i) % 3 ? 1.f : -1.1f);
  };
  for (const int count : some_counts()) {
    if (count < 15) continue;
    CAPTURE(count);
    for (const int into : {-1, 0, count / 2, count - 1}) {
      if (count > 100 && into > 0 && into < count - 1) continue;
      std::vector<arena<float>> leaves;
      std::vector<const float*> at;
      for (int l = 0; l < count; ++l) {
        leaves.emplace_back(std::size_t(size));
        for (long i = 0; i < size; ++i) leaves.back()[std::size_t(i)] = value(l, i);
        at.push_back(leaves.back().data());
      }
      arena<float> elsewhere{std::size_t(size)};
      arena<float>& to = into < 0 ? elsewhere : leaves[std::size_t(into)];
      sum_leaves(to.data(), at.data(), count, begin, size);
      bool same = true;
      for (long i = begin; i < size; i += count > 100 ? 97 : 1) {
        std::vector<float> terms, sums;
        for (int l = 0; l < count; ++l) terms.push_back(value(l, i));
        const float expected = tree_over(terms, [](float a, float b) { return a + b; });
        same = same && std::memcmp(&to[std::size_t(i)], &expected, sizeof expected) == 0;
      }
      CHECK(same);
    }
    std::vector<double> terms;
    for (int l = 0; l < count; ++l) terms.push_back(double(value(l, 1)) / 3);
    CHECK(sum_in_tree([&](int l) { return terms[std::size_t(l)]; }, 0, count) ==
          tree_over(terms, [](double a, double b) { return a + b; }));
  }
}

namespace {
using mlp = sequential<input<28, 28, 1>, flatten, dense<16, relu>, dropout<0.2_r>, dense<10, softmax>>;
using normalized = sequential<input<28, 28, 1>, flatten, dense<6>, batch_norm<>, activation<relu>, dense<10, softmax>>;

/// 150 = 90 + 60, so that some leaves of the last batch are empty, or short.
template <class Network>
std::vector<float> trained(const auto& strategy) {
  static const data::digits digits = data::synthetic_digits(150, 3);
  trainer model{Network{}, adam{.global_clipnorm = 0.5}, sparse_categorical_crossentropy{}, accuracy{}, strategy, seed(7)};
  const training_history past =
      model.fit(digits | data::shuffle(150) | data::batch<90>, epochs(2), validation(digits | data::batch<80>), verbose::off);
  const auto w = model.executor().parameters();
  std::vector<float> out(w.begin(), w.end());
  out.push_back(float(past["loss"].back()));
  out.push_back(float(past["val_accuracy"].back()));
  return out;
}

template <class Network>
void check_among(int processes, int leaves, int same_as) {
  CAPTURE(processes);
  CAPTURE(leaves);
  const std::vector<float> expected = trained<Network>(one_device{{.threads = 1, .leaves = same_as}});
  std::vector<std::string> failures(std::size_t(processes), "");
  std::vector<std::thread> threads;
  for (in_process& member : in_process::group(processes))
    threads.emplace_back([&, member] {
      std::string& failure = failures[std::size_t(member.rank())];
      try {
        const auto got = trained<Network>(synchronous_among{member, {.threads = 1, .leaves = leaves}});
        if (std::memcmp(got.data(), expected.data(), expected.size() * sizeof(float)) != 0) failure = "other bits";
      } catch (const std::exception& e) {
        failure = e.what();
      }
    });
  for (auto& t : threads) t.join();
  for (const auto& f : failures) CHECK(f == "");
}
}  // namespace

TEST_CASE("40 leaves: the parameters of one device, for any number of processes and threads") {
  const auto expected = trained<normalized>(one_device{{.threads = 1, .leaves = 40}});
  CHECK(trained<normalized>(one_device{{.threads = 3, .leaves = 40}}) == expected);
  check_among<normalized>(3, 40, 40);
  check_among<mlp>(20, 40, 40);
}

TEST_CASE("20 processes, without a number of leaves: 32, and the parameters of one device") {
  check_among<mlp>(20, 0, 32);
  check_among<normalized>(20, 0, 32);
}

#ifndef STRATA_TEST_NEW_IS_TAKEN
TEST_CASE("a process has room for the gradients of its own leaves") {
  using wide = program<sequential<input<28, 28, 1>, flatten, dense<256, relu>, dense<10, softmax>>,
                       sparse_categorical_crossentropy<>, sgd, type_list<>>;
  std::vector<in_process> all = in_process::group(8);
  const double gradient = double(layout_of_program<wide>.trainable * long(sizeof(float)));
  const auto gradients_of = [&](const auto& processes) {
    using communicator_type = std::remove_cvref_t<decltype(processes)>;
    synchronous_executor<wide, cpu, communicator_type> one(sgd{}, 1, {.threads = 1, .leaves = 64}, processes);
    const long before = bytes_allocated;
    one.prepare(64, purpose::training);
    return double(bytes_allocated - before) / gradient;
  };
  CHECK(gradients_of(detail::alone{}) > 64);
  const double own = 8, added_up = 1, to_be_added = 1, sum = 1;
  CHECK(gradients_of(all[3]) < own + added_up + to_be_added + sum + 2);
}
#endif

TEST_CASE("no more leaves or processes than there can be, and no negative numbers") {
  const auto with = [](const auto& strategy) {
    return error_of([&] { trainer{mlp{}, adam{}, sparse_categorical_crossentropy{}, strategy}; });
  };
  CHECK(with(one_device{{.threads = 1, .leaves = 1024}}) == "no error");
  CHECK(contains(with(one_device{{.threads = 1, .leaves = 1025}}), "leaves is 1025, but a batch has 1 to 1024 of them"));
  CHECK(contains(with(one_device{{.threads = 1, .leaves = -1}}), "leaves is -1"));
  CHECK(with(one_device{{.threads = -2}}) == "compute_options: threads is -2: it must be at least 1, or 0 for all cores");
  CHECK(with(one_device{{.threads = 1, .micro_batch = -5}}) ==
        "compute_options: micro_batch is -5: it must be at least 1, or 0 for as many samples as fit into the cache");
  struct crowd : detail::alone {
    static constexpr int size() { return 1025; }
  };
  CHECK(contains(with(synchronous_among{crowd{}, {.threads = 1}}),
                 "1025 processes cannot share the leaves of a batch: there are at most 1024"));
}
