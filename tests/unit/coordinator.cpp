// needs: openssl protozero
// The control plane between threads of one process: what it stores, which processes it refuses, and how waiting ends.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <strata/control/coordinator.hpp>
#include <strata/control/coordinator_client.hpp>
#include <strata/control/heartbeat.hpp>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "error_of.hpp"
#include "free_endpoint.hpp"
using namespace strata;
using namespace strata::core;
using namespace strata::control;
using strata::test::contains;
using strata::test::error_of;
using strata::test::free_endpoint;
using namespace std::chrono_literals;
using std::chrono::steady_clock;

namespace {
control_options quick() {
  control_options o;
  o.heartbeat.interval = 400ms;  // a busy machine may well keep a thread waiting for longer than three times 100 ms
  return o;
}
std::string name_of(int rank) { return "worker " + std::to_string(rank); }
member worker(int rank, int size, std::string agreement = "the same") {
  return {.rank = rank, .size = size, .name = name_of(rank), .host = "here", .pid = 1, .agreement = std::move(agreement)};
}

/// Two members of one run.
struct pair_of_members {
  endpoint where = free_endpoint();
  std::unique_ptr<coordinator> server = std::make_unique<coordinator>(where, "run", quick());
  coordinator_client a{where, "run", quick()}, b{where, "run", quick()};

  pair_of_members() {
    std::thread other([&] { b.join(worker(1, 2), 60s, name_of); });
    a.join(worker(0, 2), 60s, name_of);
    other.join();
  }
};

/// Records the failure that a heartbeat reports.
struct listener {
  std::mutex mutex;
  std::string text;
  std::function<void(const std::string&)> hears() {
    return [this](const std::string& why) {
      const std::lock_guard lock(mutex);
      text = why;
    };
  }
  std::string heard(std::chrono::milliseconds within) {
    for (const auto deadline = steady_clock::now() + within;;) {
      {
        const std::lock_guard lock(mutex);
        if (!text.empty() || steady_clock::now() > deadline) return text;
      }
      std::this_thread::sleep_for(5ms);
    }
  }
};
}  // namespace

TEST_CASE("a value is handed out before and after it is set, also to those that came first") {
  const endpoint where = free_endpoint();
  coordinator_client early(where, "run"), late(where, "run");
  std::string seen;
  std::thread waits([&] { seen = early.get("key", 60s); });
  std::this_thread::sleep_for(300ms);
  coordinator server(where, "run");
  std::string bytes(60'000, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 7);
  late.set("key", bytes);
  waits.join();
  CHECK(seen == bytes);
  CHECK(late.get("key", 60s) == bytes);
  late.set("key", "");
  CHECK(late.get("key", 60s) == "");
}

TEST_CASE("who waits in vain, for another run, or with an absurd message is told so") {
  const endpoint where = free_endpoint();
  const coordinator server(where, "run", {}, 3);
  coordinator_client c(where, "run", {}, 3), other(where, "other", {}, 3), old(where, "run", {}, 2);
  const auto began = steady_clock::now();
  CHECK(contains(error_of([&] { c.get("nothing", 300ms); }), "did not return 'nothing' within 300 ms"));
  CHECK(contains(error_of([&] { other.set("key", ""); }),
                 "did not store 'key': this process belongs to run 'other', the coordinator to another one"));
  CHECK(contains(error_of([&] { old.set("key", ""); }), "this is generation 3 of the cluster, not 2"));
  CHECK(contains(error_of([&] { c.set("", "value"); }), "a key has 1 to 256 bytes, not 0"));
  CHECK(contains(error_of([&] { c.set(std::string(257, 'k'), "value"); }), "a key has 1 to 256 bytes, not 257"));
  CHECK(error_of([&] { c.set("key", std::string(100'000, 'v')); }) != "no error");
  CHECK(error_of([&] { c.set(std::string(6000, 'k'), "value"); }) != "no error");
  CHECK(steady_clock::now() - began < 30s);
}

TEST_CASE("the store has a size") {
  const endpoint where = free_endpoint();
  const coordinator server(where, "run");
  coordinator_client c(where, "run");
  const std::string large(60'000, 'v');
  int kept = 0;
  const std::string why = error_of([&] {
    for (; kept < 1000; ++kept) c.set(std::to_string(kept), large);
  });
  CHECK(contains(why, "the store is full"));
  CHECK(kept > 100);
  c.set("0", large);  // replaces the existing value
  CHECK(c.get("1", 60s) == large);
}

TEST_CASE("members are told all values at once, and who is missing") {
  pair_of_members p;
  listener at_a, at_b;
  const heartbeat a(p.a, std::make_shared<wait_state>(), at_a.hears()), b(p.b, std::make_shared<wait_state>(), at_b.hears());
  std::vector<std::string> early;
  std::thread waits([&] { early = p.b.get_all("of ", 3, 60s); });
  const std::string bytes("\0\xFF of 2", 8);
  p.a.set("of 2", bytes);
  p.a.set("of 0", "");
  std::this_thread::sleep_for(100ms);
  p.a.set("of 1", "old");
  waits.join();
  CHECK(early == std::vector<std::string>{"", "old", bytes});
  CHECK(p.a.get_all("of ", 3, 60s) == early);
  p.b.set("of 1", "new");
  CHECK(p.a.get_all("of ", 3, 60s) == std::vector<std::string>{"", "new", bytes});
  CHECK(p.a.get_all("of ", 2, 60s) == std::vector<std::string>{"", "new"});

  const auto began = steady_clock::now();
  const auto missing = [&] { return error_of<missing_values>([&] { p.a.get_all("of ", 6, 300ms); }); };
  CHECK(missing() == "no process has set 'of 3', 'of 4', 'of 5' within 300 ms");
  p.a.set("of 4", "");
  CHECK(missing() == "no process has set 'of 3', 'of 5' within 300 ms");
  for (const int count : {0, -1, membership::most_members + 1})
    CHECK(contains(error_of([&] { p.a.get_all("of ", count, 60s); }),
                   "get_all takes 1 to 16384 values, not " + std::to_string(count)));
  CHECK(contains(error_of([&] { p.a.get_all("", 1, 60s); }), "a key has 1 to 256 bytes, not 0"));
  const std::string longest(longest_key - 1, 'k');
  CHECK(contains(error_of<missing_values>([&] { p.a.get_all(longest, 10, 0ms); }), longest + "9' within 0 ms"));
  CHECK(contains(error_of([&] { p.a.get_all(longest, 11, 60s); }), "a key has 1 to 256 bytes, not 257"));
  CHECK(error_of<missing_values>([&] { p.a.get_all("\xE4\n ", 1, 0ms); }) == "no process has set '\\xe4\n 0' within 0 ms");
  coordinator_client stranger(p.where, "run", quick());
  CHECK(contains(error_of([&] { stranger.get_all("of ", 3, 60s); }), "only a member may call /strata.Coordinator/GetAll"));
  for (int i = 0; i < 80; ++i) p.a.set("large " + std::to_string(i), std::string(60'000, 'v'));
  CHECK(p.a.get_all("large ", 60, 60s).back() == std::string(60'000, 'v'));
  CHECK(contains(error_of([&] { p.a.get_all("large ", 80, 60s); }), "80 values have 4800327 bytes, of at most 4194304"));
  CHECK(at_a.heard(10ms) == "");

  std::string why;
  std::thread in_vain([&] { why = error_of([&] { p.b.get_all("never ", 2, 60s); }); });
  std::this_thread::sleep_for(100ms);
  p.a.fail(1, "gradients: process 1 sent 3 bytes");
  in_vain.join();
  CHECK(contains(why, "gradients: process 1 sent 3 bytes"));
  CHECK(steady_clock::now() - began < 50s);  // not 60
}

namespace {
/// Sends a single call with these bytes; refusal() returns the message that refuses them.
struct raw_client {
  std::shared_ptr<detail::message_connection> connection;
  explicit raw_client(const endpoint& where)
      : connection(detail::server_connection(where, {}, largest_answer).open(steady_clock::now() + 60s).open) {}

  detail::reply call(const char* method, wire::sealed_message message) const {
    return detail::call_and_wait(connection, method, std::move(message), steady_clock::now() + 60s);
  }
  std::string refusal(const char* method, wire::sealed_message message) const {
    return call(method, std::move(message)).status.text;
  }
  std::string refusal(const char* method, const std::string& bytes) const {
    return refusal(method, wire::sealed_message{bytes, {}});
  }
};
using methods = coordinator_methods;
}  // namespace

TEST_CASE("of many missing values the first ones are told, and how many there are") {
  const endpoint where = free_endpoint();
  const coordinator server(where, "run");
  raw_client raw(where);
  const wire::sender self{.run = "run", .rank = 0, .incarnation = 77};
  const join_request join{{.size = 1, .name = "worker 0", .host = "here", .agreement = std::string("the same")}, 60s};
  const detail::reply joined = raw.call(methods::join, wire::sealed(self, join));
  REQUIRE(joined.status.ok());
  CHECK(wire::envelope(joined.frame.content()).body<join_answer>().all == formation{0, {0}, {}});
  const detail::reply got = raw.call(methods::get_all, wire::sealed(self, get_all_request{"of ", 16384, 0ms}));
  REQUIRE(got.status.ok());
  const auto all = wire::envelope(got.frame.content()).body<get_all_answer>();
  CHECK(all.missing == 16384);
  CHECK(all.first_missing == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15});
  for (const auto& [count, why] : {std::pair{0, "get_all takes 1 to 16384 values, not 0"},
                                   {-1, "get_all takes 1 to 16384 values, not -1"},
                                   {16385, "get_all takes 1 to 16384 values, not 16385"}})
    CHECK(raw.refusal(methods::get_all, wire::sealed(self, get_all_request{"of ", count, 0ms})) == why);
  CHECK(raw.refusal(methods::get_all, wire::sealed(self, get_all_request{"", 2, 0ms})) == "a key has 1 to 256 bytes, not 0");
}

TEST_CASE("malformed messages get one error and change nothing") {
  const endpoint where = free_endpoint();
  const coordinator server(where, "run");
  raw_client raw(where);
  const wire::sender self{.run = "run"};
  CHECK(raw.refusal(methods::set, "\x12") == "malformed message: it ends within a number");
  CHECK(raw.refusal(methods::set, "\x12\x7fx") == "malformed message: field 2 announces more bytes than the 1 that follow");
  CHECK(raw.refusal(methods::set, "\x10\x01") == "malformed message: it begins a field with 16");
  CHECK(raw.refusal(methods::set, std::string(20, '\xFF')) == "malformed message: a number has more than 10 bytes");
  CHECK(raw.refusal(methods::set, "\x0a\x01\x08") == "malformed sender: field 1 has wire type 0 instead of 2");
  CHECK(raw.refusal(methods::set, "") == "this process belongs to run '', the coordinator to another one");
  CHECK(raw.refusal(methods::set, wire::sealed(self, get_all_request{"", 2, 0ms})) ==
        "malformed set request: field 2 has wire type 0 instead of 2");
  CHECK(
      raw.refusal("/strata.Coordinator/Else", wire::sealed(wire::sender{"run", 0, 5, 6}, empty_message{})) ==
      "this process, with rank 5, does not belong to this generation of the cluster: the chief was lost and has been restarted, "
      "or the others go on without this process");
  // A newer program may send fields that are unknown to this one.
  CHECK(raw.refusal(methods::set, "\xA2\x06\x03new" + wire::sealed(self, set_request{"key", "value"}).head) == "");
  CHECK(coordinator_client(where, "run").get("key", 60s) == "value");
}

TEST_CASE("a port in use, and addresses that others can reach") {
  const endpoint where = free_endpoint();
  const coordinator server(where, "run");
  CHECK(contains(error_of([&] { coordinator(where, "run"); }), "cannot listen on " + to_string(where) + ": is the port in use?"));
  for (const char* host :
       {"192.0.2.1", "0.0.0.0", "127.0.0.1.example.org", "localhost.example.org", "::", "fe80::1", "128.0.0.1", ""})
    CHECK(contains(error_of([&] { coordinator_client({host, 1}, "run"); }), "can be reached from other machines"));
  const auto why_unknown = [](const char* host) {
    const std::string why = error_of([&] { coordinator_client({host, 1}, "run"); });
    return why.substr(std::min(why.find("; and "), why.size()));
  };
  CHECK(contains(why_unknown("nowhere.invalid"), "'nowhere.invalid'"));
  CHECK(why_unknown("192.0.2.1") == "");
  for (const char* host : {"127.0.0.1", "127.1.2.3", "localhost", "LOCALHOST", "::1"})
    CHECK_NOTHROW(coordinator_client({host, 1}, "run"));
}

TEST_CASE("more members than connections") {
  const endpoint where = free_endpoint();
  control_options few;
  few.connections = 3;
  const auto for_members = [&](int members) { coordinator(where, "run", few, 0, {}, 30s, members); };
  CHECK(error_of([&] { for_members(4); }) == "the coordinator is for 4 processes, but control_options.connections is 3");
  CHECK(error_of([&] { for_members(3); }) == "no error");
}

TEST_CASE("where no process listens, connections are refused again and again; one that is only broken may come back") {
  const auto began = steady_clock::now();
  const detail::call_status refused{detail::status_code::unavailable, "127.0.0.1:1: Connection refused"};
  const detail::call_status broken{detail::status_code::unavailable, "the other side has closed the connection"};
  detail::refused_connections so_far;
  CHECK_FALSE(so_far.are_final(began));
  so_far.add(refused, began);
  so_far.add(refused, began + 300ms);
  CHECK_FALSE(so_far.are_final(began + 300ms));
  CHECK(so_far.are_final(began + 600ms));
  so_far.add(broken, began + 600ms);
  CHECK_FALSE(so_far.are_final(began + 5s));
  so_far.add(refused, began + 5s);
  CHECK_FALSE(so_far.are_final(began + 5400ms));
  CHECK(so_far.are_final(began + 5600ms));
}

TEST_CASE("calls that wait, end, and are cancelled while values are set and the coordinator goes") {
  for (int round = 0; round < 3; ++round) {
    const endpoint where = free_endpoint();
    auto server = std::make_unique<coordinator>(where, "run");
    std::vector<std::thread> threads;
    std::atomic<int> connected{0}, ended{0};
    const auto began = steady_clock::now();
    for (int t = 0; t < 8; ++t)
      threads.emplace_back([&, t] {
        control_options options;
        options.heartbeat.interval = 1s;  // a lost connection may return within three of them
        coordinator_client c(where, "run", options);
        c.set("here", "");
        ++connected;
        for (int i = 0; i < 20; ++i) {
          const std::string key = std::to_string(i);
          error_of([&] { t == 0 ? (c.set(key, key), std::string()) : c.get(key, std::chrono::milliseconds(i % 3 * 2)); });
        }
        error_of([&] { c.get("never", 60s); });
        ++ended;
      });
    while (connected < 8) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(20 * round));
    server.reset();
    for (auto& t : threads) t.join();
    CHECK(ended == 8);
    CHECK(steady_clock::now() - began < 30s);  // not 60
  }
}

TEST_CASE("members that disagree end together, each naming both") {
  const endpoint where = free_endpoint();
  const coordinator server(where, "run", quick());
  coordinator_client a(where, "run", quick()), b(where, "run", quick());
  std::string first;
  std::thread waits([&] { first = error_of([&] { a.join(worker(0, 3, "cluster A"), 20s, name_of); }); });
  std::this_thread::sleep_for(100ms);
  const auto began = steady_clock::now();
  const std::string second = error_of([&] { b.join(worker(1, 3, "cluster B"), 20s, name_of); });
  waits.join();
  CHECK(steady_clock::now() - began < 15s);  // not 20
  CHECK(first == second);
  CHECK(contains(first,
                 "worker 1 (rank 1, here, pid 1) does not train what worker 0 (rank 0, here, pid 1) does: it has 'cluster B' "
                 "instead of 'cluster A'"));
}

TEST_CASE("those that do not come are named") {
  const endpoint where = free_endpoint();
  const coordinator server(where, "run", quick());
  coordinator_client c(where, "run", quick());
  CHECK(error_of([&] { c.join(worker(1, 4), 300ms, name_of); }) ==
        "worker 0, worker 2, worker 3 did not register with the coordinator at " + to_string(where) + " within 300 ms");
  // A coordinator that starts late is given only the rest of the time.
  const endpoint later = free_endpoint();
  std::string why;
  std::vector<std::string> told;
  std::thread waits([&] {
    control_options options = quick();
    options.on_waiting = [&](const std::string& what) { told.push_back(what); };
    coordinator_client early(later, "run", options);
    why = error_of([&] { early.join(worker(1, 2), 6s, name_of); });
  });
  std::this_thread::sleep_for(3s);
  const coordinator late(later, "run", quick());
  waits.join();
  CHECK(why == "worker 0 did not register with the coordinator at " + to_string(later) + " within 6000 ms");
  CHECK(told == std::vector<std::string>{
                    "worker 1 waits for the coordinator at " + to_string(later) + ", which does not answer: 2 s of 6 s",
                    "worker 1 waits for worker 0 to register with the coordinator at " + to_string(later) + ": 4 s of 6 s"});
  CHECK(contains(error_of([&] { coordinator_client(free_endpoint(), "run", quick()).join(worker(0, 2), 300ms, name_of); }),
                 "did not admit worker 0"));
}

TEST_CASE("a host that is unknown is told as such, not as one that does not answer") {
  std::vector<std::string> told;
  control_options options = quick();
  options.unprotected = true;
  options.on_waiting = [&](const std::string& what) { told.push_back(what); };
  const endpoint nowhere{"no.such.host.invalid", 9};
  const std::string why = error_of([&] { coordinator_client(nowhere, "run", options).join(worker(1, 2), 3s, name_of); });
  REQUIRE(told.size() == 1);
  CHECK(told[0].starts_with("worker 1 waits for the coordinator at no.such.host.invalid:9: "));
  CHECK(contains(told[0], "'no.such.host.invalid'"));
  CHECK(contains(why, "'no.such.host.invalid'"));
}

TEST_CASE("who came and gave up is not named for one that never came, and all are told what the chief is told") {
  const endpoint where = free_endpoint();
  const coordinator server(where, "run", quick());
  coordinator_client chief(where, "run", quick()), hasty(where, "run", quick()), patient(where, "run", quick());
  const std::string within = " did not register with the coordinator at " + to_string(where) + " within ";
  std::string of_hasty, of_patient;
  std::thread first([&] { of_hasty = error_of([&] { hasty.join(worker(1, 4), 200ms, name_of); }); });
  std::thread second([&] { of_patient = error_of([&] { patient.join(worker(2, 4), 60s, name_of); }); });
  first.join();
  CHECK(of_hasty == "worker 0, worker 3" + within + "200 ms");
  CHECK(error_of([&] { chief.join(worker(0, 4), 2500ms, name_of); }) == "worker 3" + within + "2500 ms");
  second.join();
  CHECK(of_patient == "worker 3" + within + "2500 ms, says worker 0");
}

TEST_CASE("a member that ends because of an error says why before: the others are told so, however it ends") {
  for (const std::string_view how : {"leaves", "is lost", "ends the coordinator"}) {
    CAPTURE(how);
    pair_of_members p;
    listener at_a, at_b;
    auto a = std::make_unique<heartbeat>(p.a, std::make_shared<wait_state>(), at_a.hears());
    const heartbeat b(p.b, std::make_shared<wait_state>(), at_b.hears());
    const std::string why = "worker 0 (rank 0, here, pid 1) ends because of an error: the disk is full";
    a->announce_error("something else");
    a->announce_error("");  // it continues
    a->announce_error("the disk is full");
    CHECK(at_b.heard(1s) == "");  // it may continue again
    if (how == "leaves")
      a.reset();
    else if (how == "is lost")
      a->stop();
    else
      p.server.reset();
    CHECK(at_b.heard(60s) == why);
  }
}

namespace {
/// Responds to every call with bytes that are no message.
struct confused_coordinator final : detail::message_service {
  void handle(const std::shared_ptr<detail::served_call>& c, wire::envelope&) override {
    c->answer(wire::sealed_message{"nonsense", {}});
  }
  void forget(const detail::served_call&) override {}
};
}  // namespace

TEST_CASE("a heartbeat whose answer is not understood interrupts its process, and does not end it") {
  confused_coordinator service;
  const endpoint where = free_endpoint();
  const detail::message_server server(where, "the coordinator", service, control_options{}, detail::server_limits{});
  coordinator_client client(where, "run", quick());
  listener heard;
  const heartbeat beats(client, std::make_shared<wait_state>(), heard.hears());
  CHECK(contains(heard.heard(60s), "sent a malformed message"));
}

TEST_CASE("a member without a heartbeat is named to the others, and refused from then on") {
  pair_of_members p;
  listener heard;
  const heartbeat alive(p.a, std::make_shared<wait_state>(), heard.hears());
  CHECK(heard.heard(150ms) == "");
  const std::string why = heard.heard(60s);
  CHECK(contains(why, "worker 1 (rank 1, here, pid 1) is considered dead: no heartbeat for "));
  CHECK(contains(error_of([&] { p.b.set("gradients", "of a zombie"); }), "worker 1 (rank 1, here, pid 1) is considered dead"));
  CHECK(contains(error_of([&] { p.b.get("anything", 60s); }), "is considered dead"));
}

TEST_CASE("members that are alive hear nothing; what one reports, all hear; the first report counts") {
  pair_of_members p;
  listener at_a, at_b;
  const heartbeat a(p.a, std::make_shared<wait_state>(), at_a.hears()), b(p.b, std::make_shared<wait_state>(), at_b.hears());
  CHECK(at_a.heard(2500ms) == "");
  const std::string why = p.b.fail(0, "gradients: process 0 sent 3 bytes");
  CHECK(contains(why, "gradients: process 0 sent 3 bytes; process 0 is worker 0 (rank 0, here, pid 1), says worker 1"));
  CHECK(at_a.heard(60s) == why);
  CHECK(at_b.heard(60s) == why);
  CHECK(p.a.fail(1, "something else") == why);
}

TEST_CASE("a coordinator that ends in good order gives no alarm, and its members may leave before") {
  pair_of_members p;
  listener at_a, at_b;
  {
    const heartbeat a(p.a, std::make_shared<wait_state>(), at_a.hears());
    {
      const heartbeat b(p.b, std::make_shared<wait_state>(), at_b.hears());
    }
    CHECK(at_a.heard(1500ms) == "");
    p.server.reset();
    CHECK(at_a.heard(1500ms) == "");
  }
  CHECK(at_b.text == "");
}

TEST_CASE("a coordinator that is not the same any more does not count as alive") {
  pair_of_members p;
  listener heard;
  const heartbeat a(p.a, std::make_shared<wait_state>(), heard.hears());
  p.server.reset();
  const coordinator another(p.where, "run", quick());
  CHECK(contains(error_of([&] { p.b.set("key", ""); }), "does not belong to this generation"));
}

TEST_CASE("an elastic training: those that are left form again, a late one enters, and who has been left out is refused") {
  const endpoint where = free_endpoint();
  std::mutex mutex;
  std::vector<std::string> changes;
  const elastic_options elastic{.least_workers = 1, .on_change = [&](const std::string& what) {
                                  const std::lock_guard lock(mutex);
                                  changes.push_back(what);
                                }};
  coordinator server(where, "run", quick(), 5, elastic, 60s);
  coordinator_client a(where, "run", quick(), 5), b(where, "run", quick(), 5), c(where, "run", quick(), 5);
  std::thread second([&] { b.join(worker(1, 3), 60s, name_of); }), third([&] { c.join(worker(2, 3), 60s, name_of); });
  CHECK(a.join(worker(0, 3), 60s, name_of) == formation{5, {0, 1, 2}, {}});
  second.join(), third.join();
  a.set("key", "of generation 5");

  listener at_a, at_c;
  heartbeat alive_a(a, std::make_shared<wait_state>(), at_a.hears(), true),
      alive_c(c, std::make_shared<wait_state>(), at_c.hears(), true);
  CHECK(contains(at_a.heard(60s), "worker 1 (rank 1, here, pid 1) is considered dead: no heartbeat for "));
  std::thread other([&] { CHECK(c.form_again(60s) == formation{6, {0, 2}, {}}); });
  CHECK(a.form_again(60s) == formation{6, {0, 2}, {}});
  other.join();
  alive_a.stop(), alive_c.stop();
  CHECK(contains(error_of([&] { b.set("gradients", "of a zombie"); }),
                 "goes on as generation 6 of the cluster without this process, which is still in generation 5"));
  CHECK(contains(error_of([&] { b.form_again(60s); }), "without this process"));

  coordinator_client next_a(a, 6), next_c(c, 6);
  heartbeat again_a(next_a, std::make_shared<wait_state>(), at_a.hears(), true),
      again_c(next_c, std::make_shared<wait_state>(), at_c.hears(), true);
  CHECK(contains(error_of([&] { next_a.get("key", 300ms); }), "did not return 'key'"));  // another store
  CHECK(!server.late_one_waits());
  coordinator_client late(where, "run", quick(), 5);
  CHECK(!late.join(worker(1, 3), 60s, name_of));
  CHECK(contains(error_of([&] { coordinator_client(where, "run", quick(), 5).join(worker(1, 3, "other"), 60s, name_of); }),
                 "does not train what the others do"));
  CHECK(contains(error_of([&] { late.enter(worker(1, 3), 200ms); }),
                 "did not admit worker 1 to the running training within 200 ms"));
  while (server.late_one_waits()) std::this_thread::sleep_for(1ms);  // until that wait is forgotten
  std::thread waits([&] { CHECK(late.enter(worker(1, 3), 60s) == formation{7, {0, 1, 2}, {1}}); });
  while (!server.late_one_waits()) std::this_thread::sleep_for(1ms);
  std::thread follows([&] { CHECK(next_c.form_again(60s) == formation{7, {0, 1, 2}, {1}}); });
  CHECK(next_a.form_again(60s) == formation{7, {0, 1, 2}, {1}});
  waits.join(), follows.join();
  std::this_thread::sleep_for(100ms);
  const std::lock_guard lock(mutex);
  REQUIRE(changes.size() == 2);
  CHECK(changes[0] == "generation 6 of the cluster: lost worker 1 (rank 1, here, pid 1); 2 workers go on");
  CHECK(changes[1] == "generation 7 of the cluster: admitted worker 1 (rank 1, here, pid 1); 3 workers go on");
}
