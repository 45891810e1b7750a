// needs: gloo
// Messages over TCP between threads of one process, and how waiting ends when something goes wrong.
#include <doctest/doctest.h>

#include <chrono>
#include <strata/distribute/communicators/gloo.hpp>

#include "communicator_checks.hpp"
#include "error_of.hpp"
#include "stopped_time.hpp"
using namespace strata;
using strata::test::contains;
using strata::test::error_of;
using namespace std::chrono_literals;
using std::chrono::steady_clock;

TEST_CASE("bytes arrive as they were; several messages from one place may be under way") {
  test::check_arrival<gloo_communicator>();
}
TEST_CASE("a wait for the receives before a mark, while later ones are done") { test::check_marks<gloo_communicator>(); }
TEST_CASE("what was sent arrives though the sender has ended") { test::check_ended_sender<gloo_communicator>(); }
TEST_CASE("after a time-out every wait ends at once, with the same words, and memory may go") {
  test::check_time_out<gloo_communicator>();
}
TEST_CASE("another thread ends a wait, with its reason") { test::check_interruption<gloo_communicator>(); }

TEST_CASE("no time passes for a wait while another process does what takes long") {
  test::check_stopped_time<gloo_communicator>(1s, "process 1: no answer within 1000 ms");
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
