// The members of a run, with a clock that the test controls.
#include <doctest/doctest.h>

#include "error_of.hpp"
#include "some_member.hpp"
#include <atomic>
#include <strata/control/membership.hpp>
#include <string>
#include <thread>
#include <vector>
using namespace strata;
using namespace strata::core;
using namespace strata::control;
using namespace std::chrono_literals;
using strata::test::contains, strata::test::worker;

namespace {
membership::time at(std::chrono::milliseconds t) { return membership::time(1000s + t); }

membership complete(int size) {
  membership m;
  for (int r = 0; r < size; ++r) {
    CHECK(!m.is_complete());
    CHECK(!m.join(worker(r, size), at(0ms)));
  }
  CHECK(m.is_complete());
  return m;
}

/// All ranks but `quiet` beat every 500 ms, from `from` to `to`.
void live(membership& m, int size, std::chrono::milliseconds from, std::chrono::milliseconds to, int quiet = -1) {
  for (auto t = from; t <= to; t += 100ms) {
    if ((t - from) % 500ms == 0ms)
      for (int r = 0; r < size; ++r)
        if (r != quiet) m.beat(r, {}, at(t));
    m.look(at(t));
  }
}
}  // namespace

TEST_CASE("three heartbeats without a word, and not sooner") {
  membership m = complete(3);
  live(m, 3, 0ms, 5900ms, 1);
  CHECK(m.failure() == "");
  live(m, 3, 6000ms, 6100ms, 1);
  CHECK(contains(m.failure(), "worker 1 (rank 1, node1, pid 101) is considered dead: no heartbeat for 6.0 s"));
}

TEST_CASE("no member is dead before all are there, or after it has left") {
  membership m;
  CHECK(!m.join(worker(0, 2), at(0ms)));
  for (auto t = 0ms; t < 100s; t += 100ms) m.look(at(t));
  CHECK(m.failure() == "");
  CHECK(!m.join(worker(1, 2), at(100s)));
  m.leave(1, at(100s));
  for (auto t = 100s + 0ms; t < 200s; t += 100ms) {
    m.beat(0, {}, at(t));
    m.look(at(t));
  }
  CHECK(m.failure() == "");
}

TEST_CASE("a coordinator that stood still blames no member for its own silence") {
  membership m = complete(2);
  live(m, 2, 0ms, 1000ms);
  m.look(at(60s));
  CHECK(m.failure() == "");
  live(m, 2, 60s + 100ms, 67s, 1);
  CHECK(contains(m.failure(), "worker 1 ("));
}

TEST_CASE("a lost connection is forgiven for one interval") {
  membership m = complete(2);
  live(m, 2, 0ms, 1000ms);
  m.lose_connection(1, at(1000ms));
  live(m, 2, 1100ms, 2900ms, 1);
  CHECK(m.failure() == "");
  live(m, 2, 3000ms, 10s);  // it beats again
  CHECK(m.failure() == "");
  m.lose_connection(1, at(10s));
  live(m, 2, 10s + 100ms, 12s + 100ms, 1);
  CHECK(contains(m.failure(), "worker 1 (rank 1, node1, pid 101) is considered dead: its connection is lost"));
}

TEST_CASE("a process that disagrees is named with the other one, as long as not all are there") {
  membership m;
  CHECK(!m.join(worker(0, 3, 0, "A"), at(0ms)));
  CHECK(!m.join(worker(0, 3, 0, "A"), at(0ms)));  // a message may come twice
  const auto why = m.join(worker(1, 3, 0, "B"), at(0ms));
  CHECK(
      why ==
      "worker 1 (rank 1, node1, pid 101) does not train what worker 0 (rank 0, node0, pid 100) does: it has 'B' instead of 'A'");
  CHECK(m.failure() == *why);
  CHECK(m.absent().missing == std::vector<int>{1, 2});
}

TEST_CASE("strangers change nothing once all are there") {
  membership m = complete(2);
  CHECK(contains(m.join(worker(1, 2, 77), at(0ms)).value_or(""), "two processes claim to be rank 1"));
  CHECK(contains(m.join(worker(0, 2, 77, "other"), at(0ms)).value_or(""), "needs a new generation"));
  CHECK(m.join(worker(5, 9, 0, "other"), at(0ms)));
  for (const int rank : {-1, 2, 1 << 30}) CHECK(m.join(worker(rank, 2), at(0ms)));
  for (const int size : {-1, 0, 1 << 30}) CHECK(m.join(worker(0, size), at(0ms)));
  CHECK(m.failure() == "");
  CHECK(m.is_complete());
  CHECK(m.refuses(1, 77));
  CHECK(m.refuses(7, 1001));
  CHECK(!m.refuses(1, 1001));
}

TEST_CASE("a process that died before all were there may be replaced") {
  membership m;
  CHECK(!m.join(worker(0, 2), at(0ms)));
  CHECK(!m.join(worker(1, 3, 5), at(0ms)));
  m.lose_connection(1, at(0ms));
  CHECK(!m.join(worker(1, 2, 6), at(0ms)));
  CHECK(m.is_complete());
  CHECK(m.refuses(1, 5));
}

TEST_CASE("of those that are not there: who never came, who was lost, and who gave up; one that asks again at once is there") {
  membership m;
  for (const int r : {0, 1, 2}) CHECK(!m.join(worker(r, 5), at(0ms)));
  m.lose_connection(2, at(10ms));
  for (const int r : {0, 1}) m.pause(r, at(100ms));
  CHECK(m.absent().missing == std::vector<int>{3, 4});
  CHECK(m.absent().lost == std::vector<std::string>{"worker 2 (rank 2, node2, pid 102)"});
  CHECK(m.absent().gave_up.empty());
  CHECK(!m.join(worker(0, 5), at(200ms)));
  m.look(at(5s));
  CHECK(m.absent().gave_up == std::vector<std::string>{"worker 1 (rank 1, node1, pid 101)"});
  CHECK(!m.join(worker(2, 5), at(6s)));
  CHECK(m.absent().lost.empty());
}

TEST_CASE("the first error that a member has announced is why a generation fails, unless that member has gone on") {
  membership m = complete(4);
  m.announce(2, {.trouble = "the disk is full"}, at(0ms));
  m.announce(1, {.trouble = "a label is wrong"}, at(0ms));
  CHECK(m.first_trouble() == "worker 2 (rank 2, node2, pid 102) ends because of an error: the disk is full");
  m.announce(2, {}, at(0ms));
  CHECK(m.failure() == "");
  m.leave(2, at(100ms));
  CHECK(m.failure() == "");
  m.fail(0, 3, "gradients: process 3 has ended", at(200ms));
  CHECK(m.failure() == "worker 1 (rank 1, node1, pid 101) ends because of an error: a label is wrong");
}

TEST_CASE("work that members announce is a notice until it is done; who has read it") {
  membership m = complete(2);
  CHECK(m.all_know_notice());
  m.announce(1, {.work = "saves a snapshot"}, at(0ms));
  CHECK(m.first_work() == "worker 1 (rank 1, node1, pid 101) saves a snapshot");
  CHECK_FALSE(m.all_know_notice());
  for (const int r : {0, 1}) m.beat(r, {}, at(10ms), m.notice());
  CHECK(m.all_know_notice());
  m.announce(1, {.work = "saves a snapshot"}, at(20ms));
  CHECK(m.all_know_notice());
  CHECK(m.worked_until(1, at(50s)) == at(50s));
  m.announce(1, {}, at(60s));
  CHECK(m.first_work() == "");
  CHECK(m.worked_until(1, at(100s)) == at(60s));
  CHECK_FALSE(m.all_know_notice());
}

TEST_CASE("the first failure counts, with who waited for whom") {
  membership m = complete(3);
  m.beat(0, {.on = 1, .what = "gradients", .waited = 2500ms, .altogether = 2500ms}, at(1000ms));
  m.beat(1, {}, at(1200ms));
  m.fail(2, 1, "gradients: process 1 has ended", at(2000ms));
  CHECK(m.failure() ==
        "gradients: process 1 has ended; process 1 is worker 1 (rank 1, node1, pid 101), says worker 2; worker 1 (rank 1, node1, "
        "pid 101) was not waiting "
        "for a process, as of 0.8 s ago; worker 2 (rank 2, node2, pid 102) was not waiting for a process; worker 0 (rank 0, "
        "node0, pid "
        "100) has "
        "waited 3.5 s for "
        "worker 1 (gradients), as of 1.0 s ago");
  const std::string first = m.failure();
  m.fail(0, 2, "another", at(3000ms));
  for (auto t = 3s + 0ms; t < 20s; t += 100ms) m.look(at(t));
  CHECK(m.failure() == first);
}

TEST_CASE("to wait for one that has left is an error; to have waited for it shortly before is none") {
  membership m = complete(2);
  m.leave(1, at(1000ms));
  m.beat(0, {.on = 1, .what = "metrics", .waited = 900ms, .altogether = 900ms}, at(1100ms));
  m.beat(0, {.on = 1, .what = "metrics", .waited = 1900ms, .altogether = 1900ms}, at(2000ms));
  CHECK(m.failure() == "");
  m.beat(0, {.on = 1, .what = "metrics", .waited = 3900ms, .altogether = 3900ms}, at(4000ms));
  CHECK(contains(m.failure(), "metrics: worker 1 (rank 1, node1, pid 101) has left the training"));
}

TEST_CASE("to wait for a call on devices that another process will never begin is an error") {
  const wait_state::report in_fifth{.calls = 5, .call = 5, .what_call = "a training step of 8 samples", .call_waited = 4s};
  const auto failure_of = [&](const wait_state::report& of_other, std::chrono::milliseconds left_at = -1ms) {
    membership m = complete(3);
    m.beat(1, of_other, at(4000ms));
    if (left_at >= 0ms) m.leave(1, at(left_at));
    m.beat(0, in_fifth, at(4100ms));
    return m.failure();
  };
  const std::string begins =
      "worker 0 (rank 0, node0, pid 100) has begun 5 calls on the devices of all processes and waits for a training step of 8 "
      "samples, but worker 1 (rank 1, node1, pid 101) ";
  const std::string ends = ": all processes have to compute the same steps";
  CHECK(failure_of({.on = 0, .what = "an agreement", .waited = 2s, .calls = 4}) ==
        begins + "has begun only 4 and waits for an agreement" + ends);
  CHECK(failure_of({.calls = 5, .call = 5, .what_call = "an evaluation of 8 samples", .call_waited = 4s}) ==
        begins + "for an evaluation of 8 samples" + ends);
  // It may still begin the call: it computes, waits for a third process, or is as far as the first.
  CHECK(failure_of({.calls = 4}) == "");
  CHECK(failure_of({.on = 2, .what = "an agreement", .waited = 60s, .calls = 4}) == "");
  CHECK(failure_of({.on = 0, .what = "an agreement", .waited = 60s, .calls = 5}) == "");
  CHECK(failure_of({.on = 0, .what = "an agreement", .waited = 1s, .calls = 4}) == "");
  CHECK(failure_of({.calls = 4, .call = 4, .what_call = "an evaluation of 8 samples", .call_waited = 60s}) == "");
  CHECK(failure_of({.calls = 5}, 4000ms) == "");

  membership m = complete(2);
  m.leave(1, at(1000ms));
  wait_state::report long_in_fifth = in_fifth;
  long_in_fifth.call_waited = 6s;
  m.beat(0, long_in_fifth, at(6900ms));
  CHECK(m.failure() == "");
  m.beat(0, long_in_fifth, at(7000ms));
  CHECK(m.failure() == begins + "has left the training" + ends);
}

TEST_CASE("a report names a call and what it computes, not one call and what the next one computes") {
  wait_state waits;
  std::atomic<bool> ends{false};
  std::thread calls([&] {
    for (std::int64_t n = 1; !ends; ++n)
      const wait_state::call_scope one(waits, {n, n % 2 == 1 ? "a training step" : "an evaluation", int(n % 2)});
  });
  int mixed = 0;
  for (int seen = 0; seen < 100;) {
    const wait_state::report r = waits.now();
    if (r.call == 0) continue;
    ++seen;
    mixed += r.what_call != (r.call % 2 == 1 ? "a training step of 1 samples" : "an evaluation of 0 samples");
  }
  ends = true;
  calls.join();
  CHECK(mixed == 0);
}

TEST_CASE("the one that the others wait for is slow, and is named once") {
  membership m = complete(4);
  int named = 0;
  for (auto t = 0ms; t < 60s; t += 500ms) {
    for (int r = 0; r < 4; ++r) {
      const auto share = r == 2 ? t / 100 : t * 6 / 10;
      m.beat(r, {.altogether = std::chrono::duration_cast<std::chrono::milliseconds>(share)}, at(t));
    }
    if (const auto slow = m.slow_member(at(t))) {
      ++named;
      CHECK(t <= 30s);
      CHECK(contains(
          *slow,
          "worker 2 (rank 2, node2, pid 102) is slow: in the last 10 s it waited for others 1 % of the time, the others 6"));
    }
  }
  CHECK(named == 1);
}

TEST_CASE("no member is slow where all wait alike, or hardly at all") {
  for (const int percent : {5, 50}) {
    membership m = complete(3);
    for (auto t = 0ms; t < 60s; t += 500ms) {
      for (int r = 0; r < 3; ++r) m.beat(r, {.altogether = t * percent / 100 * (r == 1 && percent == 5 ? 0 : 1)}, at(t));
      CHECK(!m.slow_member(at(t)));
    }
  }
}
