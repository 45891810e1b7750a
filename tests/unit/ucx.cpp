// needs: ucx
// Messages through UCX between threads of one process, and how waiting ends when something goes wrong.
#include <doctest/doctest.h>

#include <chrono>
#include <strata/distribute/communicators/ucx.hpp>

#include "communicator_checks.hpp"
#include "error_of.hpp"
#include "stopped_time.hpp"
using namespace strata;
using strata::test::error_of;
using namespace std::chrono_literals;

TEST_CASE("bytes arrive as they were; several messages from one place may be under way") {
  test::check_arrival<ucx_communicator>();
}
TEST_CASE("a wait for the receives before a mark, while later ones are done") { test::check_marks<ucx_communicator>(); }
TEST_CASE("what was sent arrives though the sender has ended") { test::check_ended_sender<ucx_communicator>(); }
TEST_CASE("after a time-out every wait ends at once, with the same words, and memory may go") {
  test::check_time_out<ucx_communicator>();
}
TEST_CASE("another thread ends a wait, with its reason") { test::check_interruption<ucx_communicator>(); }

TEST_CASE("no time passes for a wait while another process does what takes long") {
  test::check_stopped_time<ucx_communicator>(1s, "process 1: no answer within 1000 ms");
}

TEST_CASE("a process that never comes") {
  in_process_store store;
  CHECK(error_of<communication_error>([&] { ucx_communicator(store, 0, 2, {.timeout = 300ms}); }) ==
        "process 0 of 2 could not connect to the others through UCX: no process has set 'ucx 1' within 300 ms");
}

TEST_CASE("threads of one process are on one machine") {
  test::among<ucx_communicator>(3, 10s, [](ucx_communicator& c) {
    for (int r = 0; r < c.size(); ++r) CHECK(c.machine_of(r) == 0);
  });
}
