// Threads that share numbered tasks: each task once, its own first, and no thread waits for one that is late.
#include <doctest/doctest.h>

#include <atomic>
#include <strata/cpu/engine/team.hpp>
#include <thread>
#include <vector>

#include "repetitions.hpp"
using namespace strata;
using namespace strata::core;
using strata::test::repetitions;

TEST_CASE("every task is done once, by a thread of the team, whatever their numbers are") {
  for (int size : {1, 2, 3, 7}) {
    thread_team team(size);
    for (int count : {0, 1, 2, 3, 6, 7, 8, 64, 1'000}) {
      std::vector<std::atomic<int>> times(static_cast<std::size_t>(count));
      std::atomic<bool> strangers = false;
      for (int phase = 0; phase < 20; ++phase)
        team.for_tasks(count, [&](int task, int rank) {
          ++times[std::size_t(task)];
          if (rank < 0 || rank >= size) strangers = true;
        });
      bool once = true;
      for (const auto& each : times) once = once && each == 20;
      CAPTURE(size);
      CAPTURE(count);
      CHECK(once);
      CHECK_FALSE(strangers);
    }
  }
}

TEST_CASE("each thread begins with the same task in every phase, however late it leaves the one before") {
  constexpr int size = 4;
  thread_team team(size);
  for (int phase = 0; phase < 100; ++phase) {
    team.for_tasks(phase % 7, [](int, int) {});
    std::atomic<int> begun = 0;
    std::atomic<bool> own = true;
    team.for_tasks(size, [&](int task, int rank) {
      if (task != rank) own = false;
      for (++begun; begun < size;) std::this_thread::yield();  // so that no thread takes a second task
    });
    CHECK(own);
  }
}

TEST_CASE("phases follow each other more often than tickets can count") {
  thread_team team(3);
  long tasks = 0;
  for (int phase = 0; phase < 70'000; ++phase) {
    std::atomic<int> done = 0;
    team.for_tasks(3, [&](int, int) { done.fetch_add(1, std::memory_order_relaxed); });
    tasks += done;
  }
  CHECK(tasks == 3 * 70'000);
}

TEST_CASE("a team may end at any moment after its last phase") {
  std::atomic<int> tasks = 0;
  int expected = 0;
  for (int i = 0; i < repetitions(8'000, 500); ++i) {
    thread_team team(3);
    for (int phase = 0; phase < i % 3; ++phase) team.for_tasks(3, [&](int, int) { ++tasks; });
    expected += 3 * (i % 3);
  }
  CHECK(tasks == expected);
}

TEST_CASE("the only task is the caller's") {
  thread_team team(4);
  const std::thread::id caller = std::this_thread::get_id();
  team.for_tasks(1, [&](int, int rank) {
    CHECK(rank == 0);
    CHECK(std::this_thread::get_id() == caller);
  });
}

TEST_CASE("a thread that is held up in a task leaves the rest of its share to the others") {
  constexpr int size = 3, count = 30;
  thread_team team(size);
  std::atomic<int> done = 0;
  std::atomic<bool> taken = false;
  team.for_tasks(count, [&](int, int) {
    if (!taken.exchange(true))  // until all other tasks are done
      while (done < count - 1) std::this_thread::yield();
    ++done;
  });
  CHECK(done == count);
}
