// The allocations of a pipeline: none, once it is warm.
#include <doctest/doctest.h>

#include <optional>
#include <strata/data/sources/from_range.hpp>
#include <strata/data/sources/from_tensor_slices.hpp>
#include <strata/data/views/batch.hpp>
#include <strata/data/views/check_finite.hpp>
#include <strata/data/views/ignore_errors.hpp>
#include <strata/data/views/map.hpp>
#include <strata/data/views/one_hot.hpp>
#include <strata/data/views/prefetch.hpp>
#include <strata/data/views/scale.hpp>
#include <strata/data/views/shuffle.hpp>
#include <thread>
#include <vector>

#include "count_allocations.hpp"
#ifndef STRATA_TEST_NEW_IS_TAKEN
using namespace strata;
using strata::test::allocations;

namespace {
auto samples_of(int n) {
  std::vector<int> y;
  for (int i = 0; i < n; ++i) y.push_back(i % 10);
  return data::from_tensor_slices(data::array<float, shape{5}>(std::vector<float>(std::size_t(5 * n))), y);
}
/// A function of x that blocks its first callers until `Threads` threads have called it, so that all of them allocate now.
template <int Threads>
auto after_meeting() {
  static std::atomic<int> arrived;
  arrived = 0;
  return [](auto x) {
    thread_local bool is_known = false;
    if (arrived < Threads && !is_known) is_known = true, ++arrived;
    while (arrived < Threads) std::this_thread::yield();
    if constexpr (requires { x(0); })
      return x(0);
    else
      return x;
  };
}
/// Allocations of the epochs after the first two.
long in_steady_state(auto&& view) {
  long before = 0, batches = 0;
  for (int epoch = 0; epoch < 6; ++epoch) {
    if (epoch == 2) before = allocations;
    for (const auto& b : view) batches += b.count > 0;
  }
  REQUIRE(batches == 6 * 32);
  return allocations - before;
}
}  // namespace

TEST_CASE("a pipeline allocates nothing once it is warm") {
  const long before = allocations;
  void* volatile probe = ::operator new(1);
  ::operator delete(probe);
  REQUIRE(allocations > before);  // the counter works

  CHECK(in_steady_state(samples_of(250) | data::batch<8>) == 0);
  CHECK(in_steady_state(samples_of(250) | data::scale(2) | data::check_finite | data::shuffle(1000) | data::batch<8>) == 0);
  CHECK(in_steady_state(samples_of(250) | data::one_hot<10> | data::shuffle(40) | data::batch<8, double>) == 0);
  CHECK(in_steady_state(samples_of(250) | data::shuffle(1000) | data::batch<8> | data::prefetch(3)) == 0);
}

TEST_CASE("nor with several threads") {
  CHECK(in_steady_state(samples_of(250) | data::map(after_meeting<3>(), data::parallel(3)) | data::batch<8>) == 0);
  CHECK(in_steady_state(samples_of(250) | data::shuffle(1000) | data::map(after_meeting<4>(), data::parallel(4)) |
                        data::ignore_errors | data::batch<8> | data::prefetch(2)) == 0);
  const auto numbers = [] {
    return [i = 0]() mutable { return i < 250 ? std::optional(static_cast<float>(i++)) : std::nullopt; };
  };
  // The allocations of the generator itself: its state, once per epoch.
  CHECK(in_steady_state(data::from_generator([numbers] { return numbers(); }) | data::shuffle(50) |
                        data::map(after_meeting<2>(), data::parallel(2)) | data::batch<8> | data::prefetch(2)) <= 4);
}
#endif
