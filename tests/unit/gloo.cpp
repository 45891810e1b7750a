// needs: gloo
// Messages over TCP between threads of one process, and how waiting ends when something goes wrong.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <strata/distribute/communicators/gloo.hpp>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "error_of.hpp"
#include "stopped_time.hpp"
using namespace strata;
using strata::test::contains;
using strata::test::error_of;
using namespace std::chrono_literals;
using std::chrono::steady_clock;

namespace {
/// f(communicator) in a thread for each.
template <class F>
void among(int size, std::chrono::milliseconds timeout, F&& f) {
  in_process_store store;
  std::vector<std::thread> threads;
  for (int r = 0; r < size; ++r)
    threads.emplace_back([&, r] {
      gloo_communicator c(store, r, size, {.timeout = timeout});
      f(c);
    });
  for (auto& t : threads) t.join();
}
}  // namespace

TEST_CASE("bytes arrive as they were; several messages from one place may be under way") {
  among(3, 10s, [](gloo_communicator& c) {
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

TEST_CASE("what was sent arrives though the sender has ended") {
  for (int i = 0; i < 20; ++i)
    among(2, 10s, [](gloo_communicator& c) {
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

TEST_CASE("after a time-out every wait ends at once, with the same words, and memory may go") {
  std::atomic<bool> done{false};
  among(2, 2s, [&](gloo_communicator& c) {
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
    const auto began = steady_clock::now();
    CHECK(error_of<communication_error>([&] { c.wait("metrics"); }) == why);
    CHECK(error_of<communication_error>([&] {
            c.receive(memory, 0, 100, 1);
            c.wait("metrics");
          }) != "no error");
    CHECK(steady_clock::now() - began < 1s);
  });
}

TEST_CASE("no time passes for a wait while another process does what takes long") {
  test::check_stopped_time<gloo_communicator>(1s, "process 1: no answer within 1000 ms");
}

TEST_CASE("another thread ends a wait, with its reason") {
  among(2, 20s, [](gloo_communicator& c) {
    auto memory = c.allocate(100);
    const auto began = steady_clock::now();
    std::thread other([&] {
      std::this_thread::sleep_for(200ms);
      c.interrupt("worker 7 is dead");
    });
    c.receive(memory, 0, 100, 1 - c.rank());
    CHECK(error_of<communication_error>([&] { c.wait("gradients"); }) != "no error");
    other.join();
    CHECK(steady_clock::now() - began < 15s);  // not 20
    CHECK(error_of<communication_error>([&] { c.wait("gradients"); }) != "no error");
  });
}

TEST_CASE("one that never comes, and a host that is none") {
  in_process_store store;
  const auto began = steady_clock::now();
  CHECK(contains(error_of<communication_error>([&] { gloo_communicator(store, 0, 2, {.timeout = 300ms}); }),
                 "process 0 of 2 (127.0.0.1) could not connect to the others"));
  CHECK(contains(
      error_of<communication_error>([&] { gloo_communicator(store, 0, 2, {.host = "no.such.host.invalid", .timeout = 300ms}); }),
      "no.such.host.invalid"));
  CHECK(steady_clock::now() - began < 60s);
}
