// What every communicator that meets through a key_value_store must do, with a thread for each process.
#pragma once
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <strata/concepts/communicator.hpp>
#include <strata/distribute/control/key_value_store.hpp>
#include <string>
#include <thread>
#include <vector>

#include "error_of.hpp"

namespace strata::test {
using namespace std::chrono_literals;

/// f(communicator) in a thread for each.
template <class Communicator, class F>
void among(int size, std::chrono::milliseconds timeout, F&& f) {
  in_process_store store;
  std::vector<std::thread> threads;
  for (int r = 0; r < size; ++r)
    threads.emplace_back([&, r] {
      Communicator c(store, r, size, {.timeout = timeout});
      f(c);
    });
  for (auto& t : threads) t.join();
}

/// Bytes arrive as they were; several messages from one place may be under way.
template <class Communicator>
void check_arrival() {
  among<Communicator>(3, 10s, [](Communicator& c) {
    constexpr std::size_t bytes = 70'000;
    auto out = c.allocate(bytes), in = c.allocate(bytes * 6);
    for (int round = 0; round < 50; ++round) {
      std::memset(out.data(), 40 * c.rank() + round, bytes);
      for (int r = 0; r < c.size(); ++r)
        for (int twice = 0; r != c.rank() && twice < 2; ++twice) {
          c.receive(in, bytes * std::size_t(2 * r + twice), bytes, r);
          c.send(out, 0, bytes, r);
        }
      c.wait("a round");
      for (int r = 0; r < c.size(); ++r)
        for (int twice = 0; r != c.rank() && twice < 2; ++twice) {
          const std::byte* got = in.data() + bytes * std::size_t(2 * r + twice);
          if (got[0] != std::byte(40 * r + round) || got[bytes - 1] != got[0]) FAIL_CHECK("wrong byte");
        }
    }
  });
}

/// wait_received waits for the receives that began before the mark, also if later ones are done at once.
template <class Communicator>
void check_marks() {
  std::atomic<bool> waits{false};
  among<Communicator>(3, 10s, [&](Communicator& c) {
    auto memory = c.allocate(64);
    const auto receive = [&](std::size_t place, int from) { c.receive(memory, place, 1, from); };
    if (c.rank() > 0) {
      memory.data()[0] = std::byte(7);
      if (c.rank() == 1)
        while (!waits) std::this_thread::sleep_for(1ms);
      if (c.rank() == 1) std::this_thread::sleep_for(50ms);
      for (int i = 0; i < (c.rank() == 1 ? 1 : 3); ++i) c.send(memory, 0, 1, 0);
      c.wait("messages");
      return;
    }
    for (int i = 0; i < 2; ++i) {  // so that the third one has come, too
      receive(1, 2);
      c.wait("early");
      std::this_thread::sleep_for(50ms);
    }
    receive(0, 1);
    const auto mark = c.begun();
    receive(1, 2);
    waits = true;
    c.wait_received("late", mark);
    CHECK(memory.data()[0] == std::byte(7));
    c.wait("all");
  });
}

/// What was sent arrives though the sender has ended.
template <class Communicator>
void check_ended_sender() {
  for (int i = 0; i < 20; ++i)
    among<Communicator>(2, 10s, [](Communicator& c) {
      auto memory = c.allocate(300'000);
      if (c.rank() == 0) {
        std::memset(memory.data(), 7, 300'000);
        c.send(memory, 0, 300'000, 1);
        CHECK(error_of<communication_error>([&] { c.wait("the last"); }) == "no error");
      } else {
        c.receive(memory, 0, 300'000, 0);
        CHECK(error_of<communication_error>([&] { c.wait("the last"); }) == "no error");
        CHECK(memory.data()[299'999] == std::byte(7));
      }
    });
}

/// After a time-out every wait ends at once, with the same words, and memory may go.
template <class Communicator>
void check_time_out() {
  std::atomic<bool> done{false};
  among<Communicator>(2, 2s, [&](Communicator& c) {
    if (c.rank() == 1) {
      auto late = c.allocate(100'000);
      while (!done) std::this_thread::sleep_for(1ms);
      error_of<communication_error>([&] {
        c.send(late, 0, 100'000, 0);
        c.wait("too late");
      });  // into memory that is gone
      return;
    }
    std::string why;
    {
      auto memory = c.allocate(100'000);
      c.receive(memory, 0, 100'000, 1);
      why = error_of<communication_error>([&] { c.wait("gradients"); });
      CHECK(contains(why, "gradients: process 0 lost or waited in vain for process 1"));
    }
    done = true;
    auto memory = c.allocate(100);
    const auto began = std::chrono::steady_clock::now();
    CHECK(error_of<communication_error>([&] { c.wait("metrics"); }) == why);
    CHECK(error_of<communication_error>([&] {
            c.receive(memory, 0, 100, 1);
            c.wait("metrics");
          }) != "no error");
    CHECK(std::chrono::steady_clock::now() - began < 1s);
  });
}

/// Another thread ends a wait, with its reason.
template <class Communicator>
void check_interruption() {
  among<Communicator>(2, 20s, [](Communicator& c) {
    auto memory = c.allocate(100);
    const auto began = std::chrono::steady_clock::now();
    std::thread other([&] {
      std::this_thread::sleep_for(200ms);
      c.interrupt("worker 7 is dead");
    });
    c.receive(memory, 0, 100, 1 - c.rank());
    CHECK(error_of<communication_error>([&] { c.wait("gradients"); }) != "no error");
    other.join();
    CHECK(std::chrono::steady_clock::now() - began < 15s);  // not 20
    CHECK(error_of<communication_error>([&] { c.wait("gradients"); }) != "no error");
  });
}

}  // namespace strata::test
