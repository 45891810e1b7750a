// A key-value store: all values of a numbered series of keys at once, and the indices of those that are missing.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <strata/communicators/key_value_store.hpp>
#include <string>
#include <thread>
#include <vector>

#include "error_of.hpp"
using namespace strata;
using namespace strata::core;
using strata::test::error_of;
using namespace std::chrono_literals;

TEST_CASE("all values of a numbered series are returned together, once the last one is set, and no others") {
  in_process_store store;
  for (const int i : {3, 0, 1}) store.set("of " + std::to_string(i), std::string(std::size_t(i), 'v'));
  for (const char* other : {"of", "of ", "of 4", "of 01", "of 1 ", "off 2"}) store.set(other, "another");
  std::atomic<bool> is_complete = false;
  std::thread last([&] {
    std::this_thread::sleep_for(100ms);
    is_complete = true;
    store.set("of 2", "vv");
  });
  CHECK(store.get_all("of ", 4, 60s) == std::vector<std::string>{"", "v", "vv", "vvv"});
  CHECK(is_complete);
  last.join();
  CHECK(store.get_all("nothing ", 0, 60s).empty());
}

TEST_CASE("missing values are named; of many, only some") {
  in_process_store store;
  store.set("of 1", "");
  const std::string why = error_of<missing_values>([&] { store.get_all("of ", 4, 20ms); });
  CHECK(why == "no process has set 'of 0', 'of 2', 'of 3' within 20 ms");
  std::vector<int> numbers(1000);
  std::iota(numbers.begin(), numbers.end(), 24);
  const missing_values many("of ", numbers, 1000, 7s);
  CHECK(many.indices() == "24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39 and 984 more");
  CHECK(many.first() == 24);
  numbers.resize(missing_values::most_named);
  CHECK(missing_values("of ", numbers, 1000, 7s).what() == std::string(many.what()));
  CHECK(std::string(many.what()).starts_with("no process has set 'of 24', 'of 25', "));
  CHECK(std::string(many.what()).ends_with("'of 39' and 984 more within 7000 ms"));
}

TEST_CASE("a store that fails at once is not asked for the rest") {
  struct broken final : key_value_store {
    int asked = 0;
    void set(const std::string&, const std::string&) override {}
    std::string get(const std::string&, std::chrono::milliseconds) override {
      ++asked;
      throw communication_error("the store is gone");
    }
  } store;
  CHECK(error_of<communication_error>([&] { store.get_all("of ", 4, 60s); }) == "the store is gone");
  CHECK(store.asked == 1);
}
