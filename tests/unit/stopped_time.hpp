// Checks that the time-out of a communicator is suspended while another process has a long task.
#pragma once
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <strata/communicators/key_value_store.hpp>
#include <strata/communicators/wait_state.hpp>
#include <string>
#include <string_view>
#include <thread>

#include "error_of.hpp"

namespace strata::test {
using namespace core;

/// Process 1 keeps process 0 waiting for more than twice the time-out; a wait ends only when time is no longer suspended.
template <class Communicator>
void check_stopped_time(std::chrono::milliseconds timeout, std::string_view words) {
  using namespace std::chrono_literals;
  in_process_store store;
  std::atomic<bool> works{false}, done{false};
  const auto waits = std::make_shared<wait_state>();
  waits->stop_time(true);
  waits->stop_time(true);  // as each heartbeat does
  std::thread other([&] {
    Communicator c(store, 1, 2, {.timeout = 20s});
    auto memory = c.allocate(10);
    std::this_thread::sleep_for(timeout * 5 / 2);
    c.send(memory, 0, 10, 0);
    c.wait("at last");
    std::this_thread::sleep_for(timeout * 5 / 2);
    works = true;
    waits->stop_time(false);
    while (!done) std::this_thread::sleep_for(1ms);
  });
  Communicator c(store, 0, 2, {.timeout = timeout}, waits);
  auto memory = c.allocate(10);
  c.receive(memory, 0, 10, 1);
  CHECK(error_of<communication_error>([&] { c.wait("gradients"); }) == "no error");
  c.receive(memory, 0, 10, 1);
  const std::string why = error_of<communication_error>([&] { c.wait("gradients"); });
  CAPTURE(why);
  CHECK(contains(why, words));
  CHECK(works);
  done = true;
  other.join();
}

}  // namespace strata::test
