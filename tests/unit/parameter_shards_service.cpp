// needs: openssl protozero
// A parameter server on the network: requests of workers are applied exactly once, those of strangers have no effect. Also tests
// a worker that cannot reach its chief.
#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <bit>
#include <chrono>
#include <cstring>
#include <random>
#include <strata/control/message_server.hpp>
#include <strata/cpu/engine/host_arithmetic.hpp>
#include <strata/io/file_descriptor.hpp>
#include <strata/optimizers/sgd.hpp>
#include <strata/parameter_server/parameter_client.hpp>
#include <strata/parameter_server/parameter_service.hpp>
#include <strata/parameter_server/parameter_snapshots.hpp>
#include <strata/parameter_server/server_session.hpp>
#include <strata/resolvers/explicit_cluster.hpp>
#include <string>
#include <thread>
#include <vector>

#include "error_of.hpp"
#include "free_endpoint.hpp"
#include "scratch_folder.hpp"
using namespace strata;
using namespace strata::core;
using namespace std::chrono_literals;
using strata::test::error_of;
using strata::test::free_endpoint;

namespace {
constexpr long size = 600'000;  // three shards
const std::vector<parameter_range> trained{{0, size}};

/// A server at a free port, for one worker or more.
struct served {
  std::vector<parameter_shard> shards;
  std::vector<row_table> tables;
  parameter_store<float, sgd> store;
  endpoint where;
  control_options control{};
  std::string program = "program";
  std::unique_ptr<parameter_service<float, sgd>> service;

  explicit served(int workers = 1, staleness_policy staleness = asynchronous{}, std::vector<row_table> its_tables = {},
                  std::vector<parameter_shard> its_shards = detail::partition(size, sizeof(float), max_size_partitioner{}, 1))
      : shards(std::move(its_shards)),
        tables(std::move(its_tables)),
        store(sgd{}, trained, shards,
              {.staleness = staleness, .workers = std::vector<std::string>(std::size_t(workers), "worker"), .tables = tables}) {}
  void serve() { serve_at(free_endpoint()); }
  parameter_client_options options(int worker = 0, const std::string& run = "run", const std::string& program = "program") const {
    return {.worker = worker,
            .run = run,
            .program = program,
            .start_timeout = 30s,
            .timeout = 30s,
            .retry_for = 30s,
            .tables = tables};
  }
  void serve_at(const endpoint& place) {
    where = place;
    service = std::make_unique<parameter_service<float, sgd>>(where, "ps 0", "run", program, store, control);
  }
  parameter_client<float> client(int worker = 0) const { return {{where}, shards, options(worker)}; }
};

std::shared_ptr<arena<float>> ones() {
  auto g = std::make_shared<arena<float>>(size);
  std::ranges::fill(g->span(), 1.0f);
  return g;
}
pushed_gradient<float> gradient(std::int64_t step) {
  return {.sums = ones(), .stride = size, .step = step, .learning_rate = 1, .samples = 1};
}

/// One call with these bytes, over a connection of its own.
detail::call_status call(const endpoint& where, const char* method, const std::string& bytes) {
  const auto until = std::chrono::steady_clock::now() + 2s;
  const auto way = detail::server_connection(where, {}, 1 << 24).open(until);
  return way.open ? detail::call_and_wait(way.open, method, {bytes, {}}, until).status : way.why;
}
}  // namespace

// A step that is unknown after a restart is not step 0.
template <class C>
concept pulls_without_a_step = requires(C c, float* weights) { c.pull(weights); };
static_assert(!pulls_without_a_step<parameter_client<float>>);

TEST_CASE("weights go to the servers and come back in one piece") {
  served s;
  s.serve();
  parameter_client<float> c = s.client();
  CHECK(s.shards.size() == 3);
  std::vector<float> w(size), back(size);
  for (std::size_t i = 0; i < w.size(); ++i) w[i] = float(i) / 7;
  c.assign(w.data(), true);
  CHECK(c.pull(back.data(), 0) == 0);
  CHECK(back == w);
  auto g = gradient(0);
  CHECK(c.push(g, back.data()) == 1);
  for (std::size_t i = 0; i < w.size(); ++i) w[i] -= 1;
  CHECK(back == w);
  CHECK(c.push(g, back.data()) == 1);  // the same step again
  CHECK(back == w);
  g = gradient(1);
  CHECK(c.push(g, back.data()) == 2);
}

TEST_CASE("a synchronous gradient of many subtrees, more than fit into a few messages of one shard") {
  served s(1, synchronous{});
  s.serve();
  auto options = s.options();
  options.synchronous = true;
  parameter_client<float> c({s.where}, s.shards, options);
  std::vector<float> w(size, 0.0f);
  c.assign(w.data(), true);
  constexpr int leaves = max_leaves - 1, parts = std::popcount(unsigned(leaves));
  auto sums = std::make_shared<arena<float>>(std::size_t(parts * size));
  std::ranges::fill(sums->span(), 1.0f);
  pushed_gradient<float> g{.sums = sums, .parts = parts, .stride = size, .learning_rate = 1, .samples = 1, .leaves = leaves};
  CHECK(c.push(g, w.data()) == 1);
  CHECK(w == std::vector<float>(size, -float(parts)));
}

TEST_CASE("a parameter that must not be cut is a shard of any size, in a synchronous step of many subtrees, too") {
  served s(1, synchronous{}, {}, partition_between(trained, sizeof(float), max_size_partitioner{}, 1));
  REQUIRE(s.shards.size() == 1);
  REQUIRE(s.store.bytes_of_largest() == size * sizeof(float));
  s.serve();
  parameter_client<float> c = s.client();
  const std::vector<float> w(size, 2.0f);
  std::vector<float> back(size);
  c.assign(w.data(), true);
  constexpr int parts = 7;
  const auto sums = std::make_shared<arena<float>>(std::size_t(parts) * size);
  std::ranges::fill(sums->span(), 1.0f);
  pushed_gradient<float> g{.sums = sums, .parts = parts, .stride = size, .learning_rate = 1, .samples = parts, .leaves = 127};
  REQUIRE(detail::subtrees({0, 127}).count() == parts);
  c.push(g, back.data());
  CHECK(back == std::vector<float>(size, 1.0f));
}

TEST_CASE("a process that takes the place of a worker shuts it out") {
  served s(2);
  s.serve();
  std::vector<float> w(size, 0.0f);
  parameter_client<float> chief = s.client(0), first = s.client(1);
  chief.assign(w.data(), true);
  first.pull(w.data(), 0);
  {
    parameter_client<float> second = s.client(1);
    CHECK(second.pull(w.data(), 0) == 0);
    auto g = gradient(0);
    CHECK(error_of([&] { first.push(g, w.data()); }).find("has not joined, or has been replaced by another process") !=
          std::string::npos);
    CHECK(second.push(g, w.data()) == 1);
  }
  CHECK(chief.pull(w.data(), 0) == 1);
}

TEST_CASE("who trains something else, in another run, or nowhere, is told so") {
  served s;
  s.serve();
  CHECK(error_of([&] { parameter_client<float>({s.where}, s.shards, s.options(0, "run", "other")); }) ==
        "ps 0 does not train what this process does: it has 'program' instead of 'other'");
  CHECK(error_of([&] { parameter_client<float>({s.where}, s.shards, s.options(0, "other")); }) ==
        "ps 0 belongs to another run: the clusters differ, or STRATA_RUN_ID does");
  CHECK(error_of([&] { parameter_client<float>({s.where}, s.shards, s.options(3)); }) ==
        "ps 0 at " + to_string(s.where) +
            " does not answer within 30000 ms: there is no worker "
            "with rank 3 among the 1 of ps 0");
  CHECK(error_of([&] {
          parameter_client<float>({{"192.0.2.1", 2222}}, s.shards, s.options());
        }).find("can be reached from other machines") != std::string::npos);
}

TEST_CASE("programs of any length are compared to their end") {
  served s;
  const std::string same(100'000, 'x');
  s.program = same + ", seed 5";
  s.serve();
  CHECK(error_of([&] { parameter_client<float>({s.where}, s.shards, s.options(0, "run", s.program)); }) == "no error");
  CHECK(error_of([&] {
          parameter_client<float>({s.where}, s.shards, s.options(0, "run", same + ", seed 6"));
        }).starts_with("ps 0 does not train what this process does: "));
}

TEST_CASE("a chief that ends because of an error does not end the training, which would delete the snapshots") {
  std::vector<float> w(size, 0.0f);
  served failed, ended;
  for (served* s : {&failed, &ended}) s->serve();
  try {
    parameter_client<float> c = failed.client();
    c.assign(w.data(), true);
    throw strata_error("the loss is nan");
  } catch (const strata_error&) {
  }
  {
    parameter_client<float> c = ended.client();
    c.assign(w.data(), true);
  }
  CHECK(!failed.store.chief_has_left());
  CHECK(ended.store.chief_has_left());
}

TEST_CASE("a server that is started again continues from its snapshot, and applies nothing twice") {
  const test::scratch_folder folder("parameter-server");
  parameter_snapshots snapshots({.folder = folder.path, .updates = 1}, 0, "program");
  auto s = std::make_unique<served>();
  s->serve();
  const endpoint where = s->where;
  std::vector<float> w(size, 0.0f);
  parameter_client<float> c({where}, s->shards, s->options());
  c.assign(w.data(), true);
  auto g = gradient(0), next = gradient(1);
  CHECK(c.push(g, w.data()) == 1);
  snapshots.save_when_due(s->store);
  CHECK(c.push(next, w.data()) == 2);  // this one is lost
  s.reset();

  served again;
  REQUIRE(parameter_snapshots({.folder = folder.path}, 0, "program").restore(again.store));
  again.serve_at(where);
  CHECK(c.push(g, w.data()) == 1);  // the step of the snapshot
  CHECK(w == std::vector<float>(size, -1.0f));
  CHECK(c.push(next, w.data()) == 2);
  CHECK(w == std::vector<float>(size, -2.0f));
}

TEST_CASE("synchronous: a worker that is not at the step of its servers' snapshots is told so, and so are shards that differ") {
  const test::scratch_folder folder("parameter-steps");
  std::vector<float> w(size, 0.0f);
  const auto of = [](const served& s) {
    auto options = s.options();
    options.synchronous = true;
    return parameter_client<float>({s.where}, s.shards, options);
  };
  {
    served s(1, synchronous{});
    s.serve();
    parameter_client<float> c = of(s);
    c.assign(w.data(), true);
    for (const std::int64_t step : {0, 1}) {
      auto g = gradient(step);
      c.push(g, w.data());
    }
    parameter_snapshots({.folder = folder.path, .updates = 1}, 0, "program").save_when_due(s.store);
  }
  served again(1, synchronous{});
  REQUIRE(parameter_snapshots({.folder = folder.path}, 0, "program").restore(again.store));
  again.serve();
  const std::string of_server = " of ps 0 at " + to_string(again.where) + " is at step ";
  parameter_client<float> c = of(again);
  c.assign(w.data(), true);
  CHECK(
      error_of([&] { c.pull(w.data(), 0); }) ==
      "shard 0" + of_server +
          "2, but this worker is at step 0: a synchronous training continues from the step of its servers. Resume all workers at "
          "that step, with executor().set_step and initial_epoch, or delete the snapshots of all servers");
  CHECK(c.pull(w.data(), 2) == 2);
  {
    served fresh(1, synchronous{});
    fresh.serve();
    parameter_client<float> resumed = of(fresh);
    resumed.assign(w.data(), true);
    CHECK(error_of([&] { resumed.pull(w.data(), 2); }) ==
          "shard 0 of ps 0 at " + to_string(fresh.where) +
              " is at step 0, but this worker is at step 2: the servers start without snapshots of that step. Start all "
              "workers at step 0, without executor().set_step; the chief may load weights that it has saved");
  }
  auto g = gradient(2);
  CHECK(c.push(g, w.data()) == 3);
  again.store.for_each_shard([](std::size_t k, auto& shard, auto&, auto&) { shard.set_version(k == 1 ? 2 : 3); });
  CHECK(error_of([&] { c.pull(w.data(), 3); }) ==
        "shard 1" + of_server + "2, but shard 0" + of_server +
            "3: a synchronous training cannot continue from snapshots of different steps. Delete those of all servers and train "
            "again, or from weights that the program has saved");
}

TEST_CASE("rows of a table go there and back; a server that is started again goes on from a snapshot or those of the chief") {
  const std::vector<row_table> tables{{16, 70'000, 7, 0}};  // in two shards that share a row
  const test::scratch_folder folder("parameter-rows");
  for (const bool has_snapshot : {true, false}) {
    auto s = std::make_unique<served>(1, asynchronous{}, tables);
    s->serve();
    const endpoint where = s->where;
    REQUIRE((s->shards[1].begin - 16) % 7 != 0);
    const std::vector<std::uint32_t> rows{0, 5, std::uint32_t((s->shards[1].begin - 16) / 7), 69'999}, others{1, 5, 40'000};
    std::vector<float> expected(size, 1.0f), back(size);
    const auto row_of = [](std::size_t i) { return std::uint32_t((i - 16) / 7); };
    const auto step = [&](const std::vector<std::uint32_t>& named) {
      for (std::size_t i = 0; i < expected.size(); ++i)
        if (i < 16 || row_of(i) >= 70'000 || std::ranges::find(named, row_of(i)) != named.end()) expected[i] -= 1;
    };
    const auto has = [&](const std::vector<std::uint32_t>& named) {
      for (std::size_t i = 16; i < back.size(); ++i)
        if (std::ranges::find(named, row_of(i)) != named.end() && back[i] != expected[i]) return false;
      return true;
    };
    parameter_client<float> c({where}, s->shards, s->options());
    c.assign(expected.data(), true);
    c.pull(back.data(), 0);
    auto g = gradient(0);
    g.rows = rows;
    CHECK(c.push(g, back.data()) == 1);
    step(rows);
    CHECK((back[15] == 0 && back[16] == 1));  // outside the table, and a row that no worker has requested
    c.pull_rows(rows, back.data());
    CHECK(has(rows));
    parameter_snapshots({.folder = folder.path, .updates = 1}, 0, "program").save_when_due(s->store);
    s.reset();

    served again(1, asynchronous{}, tables);
    if (has_snapshot) REQUIRE(parameter_snapshots({.folder = folder.path}, 0, "program").restore(again.store));
    again.serve_at(where);
    c.pull_rows(others, back.data());
    CHECK(has(others));
    g = gradient(1);
    g.rows = others;
    CHECK(c.push(g, back.data()) == (has_snapshot ? 2 : 1));
    step(others);
    c.pull(back.data(), 0);
    CHECK(back == expected);
  }
}

TEST_CASE("a server that is started again without a snapshot takes the weights of the chief") {
  auto s = std::make_unique<served>(2);
  s->serve();
  const endpoint where = s->where;
  std::vector<float> w(size, 5.0f), others(size);
  parameter_client<float> chief = s->client(0), second = s->client(1);
  chief.assign(w.data(), true);
  second.pull(others.data(), 0);
  s.reset();
  served again(2);
  again.serve_at(where);
  auto g = gradient(0);
  std::string problem;
  std::thread waits([&] { problem = error_of([&] { second.push(g, others.data()); }); });
  auto mine = gradient(0);
  CHECK(chief.push(mine, w.data()) >= 1);
  waits.join();
  CHECK(problem == "no error");
  CHECK(chief.pull(w.data(), 0) == 2);
  CHECK(w == std::vector<float>(size, 3.0f));
}

TEST_CASE("a push that found no weights may wait for other workers for longer than a server may be out of reach") {
  served s(2, bounded_staleness{0});
  s.serve();
  auto options = s.options(1);
  options.retry_for = 1s;
  std::vector<float> w(size, 0.0f), others(size);
  parameter_client<float> chief = s.client(0), ahead({s.where}, s.shards, options);
  std::string problem;
  auto g = gradient(0), mine = gradient(0);
  std::thread waits([&] { problem = error_of([&] { ahead.push(g, others.data()); }); });
  std::this_thread::sleep_for(100ms);
  chief.assign(w.data(), true);
  std::this_thread::sleep_for(1500ms);
  chief.push(mine, w.data());
  waits.join();
  CHECK(problem == "no error");
  CHECK(others == std::vector<float>(size, -2.0f));
}

TEST_CASE("a server that ends is named, and so is a worker's absence") {
  auto s = std::make_unique<served>();
  s->serve();
  const std::string name = "ps 0 at " + to_string(s->where) + " is gone";
  std::vector<float> w(size, 0.0f);
  auto options = s->options();
  options.retry_for = 500ms;
  parameter_client<float> c({s->where}, s->shards, options);
  c.assign(w.data(), true);
  s.reset();
  CHECK(error_of([&] { c.pull(w.data(), 0); }).starts_with(name));
  auto g = gradient(0);
  CHECK(error_of([&] { c.push(g, w.data()); }).starts_with(name));
}

TEST_CASE("a worker that ends because of an error is the reason of those that wait for it") {
  served s(2, synchronous{});
  s.serve();
  std::vector<float> w(size, 0.0f);
  auto options = s.options(0), of_other = s.options(1);
  options.synchronous = of_other.synchronous = true;
  options.workers = of_other.workers = 2;
  parameter_client<float> c({s.where}, s.shards, options);
  c.assign(w.data(), true);
  std::atomic<bool> over{false};
  std::thread ticks([&] {  // as in serve_until_over
    for (; !over; std::this_thread::sleep_for(10ms)) s.store.tick();
  });
  std::thread other([&] { parameter_client<float>({s.where}, s.shards, of_other).announce_error("the disk\nis full"); });
  auto g = gradient(0);
  g.leaves = 2;
  const std::string why = error_of([&] { c.push(g, w.data()); });
  CHECK(why.find("worker (rank 1, ") != why.npos);
  CHECK(why.find(") ends because of an error: the disk?is full") != why.npos);
  other.join();
  over = true;
  ticks.join();
}

TEST_CASE("connections that say nothing make room for a worker, those of workers do not") {
  served s(2);
  s.control.connections = 2;
  s.serve();
  const auto connect = [&] {
    io::file_descriptor socket(::socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in to{};
    to.sin_family = AF_INET, to.sin_port = htons(s.where.port), to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(::connect(socket.number(), reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0);
    return socket;
  };
  const io::file_descriptor silent[] = {connect(), connect()};
  auto options = s.options();
  options.start_timeout = 10s;
  parameter_client<float> first({s.where}, s.shards, options);
  options.worker = 1;
  {
    parameter_client<float> second({s.where}, s.shards, options);
    options.start_timeout = 500ms;
    const std::string why = error_of([&] { parameter_client<float>({s.where}, s.shards, options); });
    CAPTURE(why);
    CHECK(why.find(" does not answer within 500 ms") != std::string::npos);
  }
  options.start_timeout = 10s;
  CHECK(error_of([&] { parameter_client<float>({s.where}, s.shards, options); }) == "no error");

  served larger(3);
  larger.control.connections = 2;
  CHECK(error_of([&] { larger.serve(); }) == "the parameter server is for 3 processes, but control_options.connections is 2");
}

TEST_CASE("hostile bytes: hundreds of calls that are nearly right, or not at all, change nothing") {
  served s(1, asynchronous{}, {{16, 70'000, 7, 0}});
  s.serve();
  parameter_client<float> c = s.client();
  std::vector<float> w(size, 3.0f), back(size);
  c.assign(w.data(), true);

  // An incarnation that no worker has: a process with the incarnation of a worker is trusted as that worker.
  const wire::sender stranger{.run = "run", .rank = 0, .incarnation = 12345};
  const auto push_of = [&](const wire::sender& from, const detail::push_message& what) {
    const std::vector<float> gradient(std::size_t(s.shards[0].size()), 12.0f);
    return wire::sealed(from, what, {wire::shared_array({}, gradient.data(), gradient.size())}).head +
           std::string(reinterpret_cast<const char*>(gradient.data()), gradient.size() * sizeof(float));
  };
  const std::string push = push_of(stranger, {.samples = 1, .rows = {7, 9}});
  const std::size_t head = push.size() - std::size_t(s.shards[0].size()) * sizeof(float);
  using m = detail::parameter_methods;
  const char* methods[] = {
      m::push, m::pull, m::assign, m::leave, m::push, "/strata.Parameters/Else", "/", "/strata.Coordinator/Set"};

  std::mt19937 random(7);
  const auto any = [&](std::size_t below) { return std::size_t(random() % below); };
  int refused = 0;
  for (int k = 0; k < 400; ++k) {
    std::string bytes = push;
    switch (k % 5) {
      case 0:
        bytes.resize(any(2 * head));
        break;
      case 1:
        bytes.resize(any(bytes.size()));
        if (!bytes.empty()) bytes[any(std::min(bytes.size(), head))] ^= char(1u << any(8));
        break;
      case 2:
        bytes.resize(head + any(100));
        for (int flips = 0; flips < 4; ++flips) bytes[any(head)] ^= char(1u << any(8));
        break;
      case 3:
        bytes.resize(any(5000));
        for (char& b : bytes) b = char(random());
        break;
      default:
        bytes = push_of({"run", random() % 2, int(random() % 5) - 1, random()},
                        {.shard = std::uint32_t(random() % 5),
                         .step = std::int64_t(random()) << any(33),
                         .samples = int(random()),
                         .leaves = int(random()) >> any(31),
                         .rows = {std::uint32_t(random()), std::uint32_t(random() % 100)},
                         .metric_sums = {1, 2}});
    }
    refused += !call(s.where, methods[std::size_t(k) % std::size(methods)], bytes).ok();
  }
  CHECK(refused > 330);  // a leave of an unknown process is answered as any other
  CHECK(!call(s.where, m::push, std::string(std::size_t(8) << 20, 'x')).ok());  // larger than any message
  CHECK(c.pull(back.data(), 0) == 0);
  CHECK(back == w);
}

namespace {
struct silent_service final : detail::message_service {
  void handle(const std::shared_ptr<detail::served_call>&, wire::envelope&) override {}
  void forget(const detail::served_call&) override {}
};
}  // namespace

TEST_CASE("a listener of waits may throw: the call has ended before the exception leaves") {
  silent_service service;
  const endpoint where = free_endpoint();
  const detail::message_server server(where, "the server", service, control_options{}, detail::server_limits{});
  const detail::waiting_notice::listener impatient = [](const std::string&) { throw strata_error("impatient"); };
  detail::server_connection connection(where, {}, 1 << 16);
  detail::server_session session("ps 0", connection, {}, {}, 1s);
  CHECK(error_of([&] { session.join(10s, impatient); }) == "impatient");
}
