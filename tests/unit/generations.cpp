// The members of the next generation of a run, with a clock that the test controls.
#include <doctest/doctest.h>

#include "error_of.hpp"
#include "some_member.hpp"
#include <algorithm>
#include <strata/control/generations.hpp>
#include <string>
#include <vector>
using namespace strata;
using namespace strata::control;
using namespace std::chrono_literals;
using strata::test::contains, strata::test::worker;

namespace {
generations::time at(std::chrono::milliseconds t) { return generations::time(1000s + t); }

generations complete(int size, int least = 1, int places = 1) {
  generations g({}, 7, least, 30s, places);
  for (int r = 0; r < size; ++r) CHECK(!g.now().join(worker(r, size), at(0ms)));
  return g;
}
void come(generations& g, std::vector<int> ranks, std::chrono::milliseconds when) {
  for (const int r : ranks) g.come(r, at(when));
}
}  // namespace

TEST_CASE("those that are left are the next generation, in the old order") {
  generations g = complete(4);
  CHECK(g.current() == formation{7, {0, 1, 2, 3}, {}});
  CHECK(!g.form({}, at(0ms)));  // no process requests one
  g.now().lose_connection(1, at(100ms));
  g.now().fail(0, 1, "gradients: process 1 has ended", at(100ms));
  CHECK(g.end() == "");
  come(g, {3, 0}, 100ms);
  CHECK(!g.form({}, at(200ms)));  // 2 is alive
  come(g, {2}, 200ms);
  CHECK(g.form({}, at(200ms)) == "generation 8 of the cluster: lost worker 1 (rank 1, node1, pid 101); 3 workers go on");
  CHECK(g.current() == formation{8, {0, 2, 3}, {}});
  CHECK(g.now().failure() == "");
  CHECK(g.now().refuses(1, 1001));
  CHECK(!g.now().refuses(3, 1003));
}

TEST_CASE("processes count themselves without gaps: the one that is blamed is the right one") {
  generations g = complete(4);
  g.now().lose_connection(1, at(0ms));
  come(g, {0, 2, 3}, 0ms);
  CHECK(g.form({}, at(0ms)));
  g.now().fail(0, 1, "gradients: process 1 has ended", at(100ms));
  CHECK(contains(g.now().failure(), "process 1 is worker 2 (rank 2, node2, pid 102)"));
}

TEST_CASE("a process that is at work is awaited as long as that takes, and then as any other") {
  generations g = complete(3);
  g.now().announce(0, {.work = "saves a snapshot"}, at(0ms));
  come(g, {1, 2}, 0ms);
  for (auto t = 0ms; t < 200s; t += 1000ms) {
    g.now().beat(0, {}, at(t));
    if (t == 100s) g.now().announce(0, {}, at(t));
    if (t < 130s) CHECK(!g.form({}, at(t)));
  }
  CHECK(!g.form({}, at(200s)));
  CHECK(contains(g.end(), "the training does not go on without the chief"));
}

TEST_CASE("a process that is alive is awaited, but not for ever; a silent one, for three heartbeats") {
  generations g = complete(3);
  come(g, {0, 1}, 0ms);
  for (auto t = 0ms; t < 30s; t += 1000ms) {
    g.now().beat(2, {}, at(t));
    CHECK(!g.form({}, at(t)));
  }
  CHECK(contains(g.form({}, at(30s)).value_or(""), "lost worker 2"));

  generations h = complete(3);
  come(h, {0, 1}, 0ms);
  CHECK(!h.form({}, at(5900ms)));
  CHECK(contains(h.form({}, at(6000ms)).value_or(""), "lost worker 2"));
}

TEST_CASE("a process that says nothing when its generation has failed is awaited for one heartbeat") {
  generations g = complete(4);
  g.now().fail(0, 2, "gradients: process 2 has ended", at(100ms));
  g.now().beat(3, {}, at(110ms));  // it is alive, and computes
  come(g, {0, 1}, 100ms);
  CHECK(!g.form({}, at(2000ms)));
  come(g, {3}, 2000ms);
  CHECK(!g.form({}, at(2000ms)));
  CHECK(contains(g.form({}, at(2100ms)).value_or(""), "lost worker 2 (rank 2, node2, pid 102); 3 workers go on"));
}

TEST_CASE("one that comes and dies before the others have come") {
  generations g = complete(3);
  come(g, {0, 1}, 0ms);
  g.withdraw(1);
  g.now().lose_connection(1, at(0ms));
  g.now().leave(2, at(0ms));
  CHECK(contains(g.form({}, at(0ms)).value_or(""),
                 "lost worker 1 (rank 1, node1, pid 101), worker 2 (rank 2, node2, pid 102); 1 worker goes on"));
}

TEST_CASE("too few, no chief, no option, or a cluster that was never complete: the end, with a reason") {
  generations few = complete(3, 3);
  few.now().lose_connection(1, at(0ms));
  few.now().fail(0, 1, "gradients: process 1 has ended", at(0ms));
  come(few, {0, 2}, 0ms);
  CHECK(!few.form({}, at(0ms)));
  CHECK(contains(
      few.end(),
      "lost worker 1 (rank 1, node1, pid 101): the training needs 3 workers, and has 2 (gradients: process 1 has ended; "));
  CHECK(!few.form({}, at(0ms)));

  generations headless = complete(3);
  headless.now().leave(0, at(0ms));
  come(headless, {1, 2}, 0ms);
  CHECK(!headless.form({}, at(0ms)));
  CHECK(contains(headless.end(), "does not go on without the chief"));

  generations rigid = complete(3, 0);
  rigid.now().fail(0, 1, "why", at(0ms));
  CHECK(contains(rigid.end(), "why"));

  generations early({}, 0, 1, 30s);
  CHECK(!early.now().join(worker(0, 2), at(0ms)));
  CHECK(early.now().join(worker(1, 2, 0, "something else"), at(0ms)));
  CHECK(contains(early.end(), "does not train what"));
}

TEST_CASE("a late one gets in when no process is lost, at its place") {
  generations g = complete(3);
  const member back = worker(1, 3, 77);
  CHECK(!g.has_place_for(back, at(0ms)));  // two with the same rank
  g.now().lose_connection(1, at(0ms));
  CHECK(g.has_place_for(back, at(0ms)));
  come(g, {0, 2}, 0ms);
  CHECK(contains(g.form({back}, at(0ms)).value_or(""), "lost worker 1 (rank 1, node1, pid 101); 2 workers go on"));
  CHECK(g.has_place_for(back, at(0ms)));
  come(g, {2, 0}, 100ms);
  CHECK(g.form({back, back}, at(100ms)) ==
        "generation 9 of the cluster: admitted worker 1 (rank 1, node1, pid 101); 3 workers go on");
  CHECK(g.current() == formation{9, {0, 1, 2}, {1}});
  CHECK(g.now().refuses(1, 1001));
  CHECK(!g.now().refuses(1, 77));
  come(g, {0, 1, 2}, 200ms);
  CHECK(g.form({}, at(200ms)));
  CHECK(g.current() == formation{10, {0, 1, 2}, {}});
}

TEST_CASE("late ones that cannot belong to the training") {
  const generations g = complete(3);
  CHECK(!g.refuses_late(worker(1, 3, 77)));
  CHECK(contains(g.refuses_late(worker(1, 3, 77, "other")).value_or(""),
                 "does not train what the others do: it has 'other' instead of 'the same'"));
  for (const member& m : {worker(1, 4), worker(0, 3), worker(3, 3), worker(-1, 3)})
    CHECK(contains(g.refuses_late(m).value_or(""), "cannot join a running training of 3"));
}

namespace {
/// The next generation of all members but those that are lost; some of them are spares.
std::string without(generations& g, std::vector<int> lost, std::vector<int> spares = {}, std::vector<member> late = {}) {
  for (const member& m : g.now().all()) {
    if (std::ranges::find(lost, m.rank) != lost.end())
      g.now().lose_connection(m.rank, at(0ms));
    else
      g.come(m.rank, at(0ms), std::ranges::find(spares, m.rank) != spares.end());
  }
  return g.form(late, at(0ms)).value_or("");
}
}  // namespace

TEST_CASE("a mesh goes on in complete groups of processes with the newest state; the others are spares") {
  generations g = complete(6, 2, 2);  // (0, 1), (2, 3), (4, 5)
  CHECK(contains(without(g, {3}), "lost worker 3 (rank 3, node3, pid 103); 5 workers go on, 1 of them as a spare"));
  CHECK(g.current() == formation{8, {0, 1, 2, 5, 4}, {}, 4, {}});
  g.now().fail(0, 3, "gradients: process 3 has ended", at(0ms));  // ids are not in the order of ranks
  CHECK(contains(g.now().failure(), "process 3 is worker 5 (rank 5"));
  CHECK(contains(without(g, {1}, {4}), "; 4 workers go on, 2 of them as spares"));
  CHECK(g.current() == formation{9, {0, 5, 2, 4}, {}, 2, {}});
  CHECK(without(g, {5}, {2, 4}).empty());
  CHECK(contains(g.end(),
                 "lost worker 5 (rank 5, node5, pid 105): the training does not go on without a process that has part 2 "
                 "of 2 of the network"));
}

TEST_CASE("a late process of a mesh is admitted when a spare forms a group with it") {
  generations g = complete(4, 2, 2);
  without(g, {3});
  CHECK(g.current() == formation{8, {0, 1, 2}, {}, 2, {}});
  CHECK(!g.can_grow({}));
  CHECK(!g.can_grow({worker(0, 4, 70)}));  // a spare with that place exists already
  const member back = worker(3, 4, 73);
  CHECK(g.can_grow({back}));
  CHECK(without(g, {1}, {2}, {back}).empty());
  CHECK(contains(g.end(), ": the training does not go on without a process that has part 2"));

  generations h = complete(4, 2, 2);
  without(h, {3});
  CHECK(without(h, {}, {2}, {back}) ==
        "generation 9 of the cluster: admitted worker 3 (rank 3, node3, pid 103); 4 workers go on");
  CHECK(h.current() == formation{9, {0, 1, 2, 3}, {3}, 0, {2}});  // 2 lacks the newest state, 3 is new
  without(h, {3}, {2});                                           // before 2 has received it
  CHECK(h.current() == formation{10, {0, 1, 2}, {}, 2, {}});
}

TEST_CASE("spares of a mesh form a group again, and a late process without others waits") {
  generations g = complete(6, 2, 2);
  without(g, {3});
  without(g, {2}, {4});  // (0, 1) is left of those with the newest state, and 5
  CHECK(g.current() == formation{9, {0, 1, 4, 5}, {}, 2, {}});
  CHECK(g.can_grow({}));
  CHECK(contains(without(g, {}, {4, 5}), "generation 10 of the cluster: 4 workers go on"));
  CHECK(g.current() == formation{10, {0, 1, 4, 5}, {}, 0, {2, 3}});
  const member back = worker(2, 6, 72);
  CHECK(!g.can_grow({back}));
  without(g, {}, {}, {back});
  CHECK(g.current() == formation{11, {0, 1, 4, 5}, {}, 0, {}});
}

TEST_CASE("a spare of a mesh waits all the time, so that no other process is slow because of it") {
  generations g = complete(4, 2, 2);
  without(g, {3});
  for (auto t = 0ms; t < 30s; t += 500ms) {
    for (const int r : {0, 1, 2})
      g.now().beat(r, {.altogether = std::chrono::duration_cast<std::chrono::milliseconds>(r == 2 ? t : t / 20)}, at(t));
    CHECK(!g.now().slow_member(at(t)));
  }
}
