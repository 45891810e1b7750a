// Waiting connections: which of them make room, and which one is next.
#include <doctest/doctest.h>

#include <cstddef>
#include <strata/net/connection_queue.hpp>
#include <string>

using namespace std::chrono_literals;
using queue = strata::detail::connection_queue<int>;

namespace {
const std::chrono::steady_clock::time_point start{};

std::string numbers(queue& q) {
  std::string all;
  for (const auto& e : q) all += std::to_string(e.connection) + ' ';
  return all;
}
}  // namespace

TEST_CASE("of one address 64 wait, and the oldest of them makes room, but not in its first 250 ms") {
  queue q;
  q.add(-1, "other", start);
  for (int i = 0; i < 64; ++i) q.add(i, "one", start);
  q.add(64, "one", start + 249ms);
  CHECK(q.size() == 66);
  q.add(65, "one", start + 250ms);
  CHECK(q.size() == 66);
  CHECK(numbers(q).starts_with("-1 1 2 "));
}

TEST_CASE("512 wait, and the oldest of all makes room, but not in its first 250 ms") {
  queue q;
  for (int i = 0; i < 512; ++i) q.add(i, std::to_string(i), start);
  CHECK(q.is_full(start + 249ms));
  CHECK(!q.is_full(start + 250ms));
  q.add(512, "new", start + 250ms);
  CHECK(q.size() == 512);
  CHECK(numbers(q).starts_with("1 2 "));
  q.close_older_than(5s, start + 5s);
  CHECK(numbers(q) == "512 ");
}

TEST_CASE("the oldest connection of the address that has the fewest is the next one") {
  queue q;
  for (int i = 0; i < 9; ++i) q.add(i, i == 4 || i == 6 ? "rare" : i == 8 ? "new" : "flood", start);
  const auto count = [](const std::string& address) { return std::size_t(address == "flood" ? 32 : address == "rare" ? 1 : 0); };
  CHECK(q.take_of_fewest(count).connection == 8);
  CHECK(q.take_of_fewest(count).connection == 4);
  CHECK(q.take_of_fewest(count).connection == 6);
  CHECK(q.take_of_fewest(count).connection == 0);
  CHECK(q.close_oldest());
  CHECK(numbers(q) == "2 3 5 7 ");
}
