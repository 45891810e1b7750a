// The cluster: roles, ranks, addresses, and its errors.
#include <doctest/doctest.h>

#include <strata/resolvers/explicit_cluster.hpp>

#include "error_of.hpp"

using namespace strata;
using namespace strata::core;
using strata::test::error_of;

namespace {

std::string refused(const std::string& text) {
  return error_of([&] { parse_endpoint(text); });
}
cluster_spec two_workers() { return {.worker = {endpoint{"a", 1}, endpoint{"b", 1}}}; }

}  // namespace

TEST_CASE("endpoint: hosts, IPv4 and IPv6 addresses with a port") {
  CHECK(parse_endpoint("node1.example.org:2222") == endpoint{"node1.example.org", 2222});
  CHECK(parse_endpoint("10.0.0.1:1").port == 1);
  CHECK(parse_endpoint("a:65535").port == 65535);
  CHECK(parse_endpoint("[fe80::1%eth0]:2222") == endpoint{"fe80::1%eth0", 2222});
  for (const char* text : {"a:1", "10.0.0.1:65535", "[::1]:2222"}) CHECK(to_string(parse_endpoint(text)) == text);
  CHECK(parse_endpoint("Node1:1") == parse_endpoint("nODE1:1"));
  CHECK(parse_endpoint("node1:1") != parse_endpoint("node1:2"));
  CHECK(parse_endpoint("node1:1") != parse_endpoint("node11:1"));
}

TEST_CASE("endpoint: everything else is refused with the reason") {
  CHECK(refused(std::string(256, 'a') + ":1") == "the host of an address has 256 characters; the limit is 255");
  CHECK(refused("") == "'' is not an address: write host:port");
  CHECK(refused("node2") == "'node2' has no port: write host:port");
  CHECK(refused(":2222") == "':2222' has no host in front of the port");
  CHECK(refused("node2:") == "'node2:' has no port after the colon");
  CHECK(refused("::1:2222") == "'::1:2222' has several colons: write an IPv6 address as [address]:port");
  CHECK(refused("[::1") == "'[::1' has no ']' after the IPv6 address");
  CHECK(refused("[::1]") == "'[::1]' has no port: write [address]:port");
  CHECK(refused("[::1]2") == "'[::1]2' has no port: write [address]:port");
  CHECK(refused("[]:2") == "'[]:2' has no host in front of the port");
  CHECK(refused("grpc://a:1") == "'grpc://a:1' is a URL: write host:port");
  for (const char* text : {"a:1,b:1", " a:1", "a:1\n", "a:1/", "\"a:1"})
    CHECK(refused(text) == '\'' + std::string(text) + "' has a character that addresses do not have: write host:port");
  for (const char* port : {"0", "65536", "-1", "+1", "0x10", "22 22", "22a", "99999999999999999999"}) {
    const std::string why = refused(std::string("a:") + port);
    CAPTURE(why);
    CHECK((why.find("which is not a number from 1 to 65535") != why.npos || why.find("a character") != why.npos));
  }
}

TEST_CASE("cluster: without a chief, worker 0 leads") {
  cluster_spec spec = two_workers();
  spec.ps = {endpoint{"c", 1}};
  const cluster first(spec);
  CHECK(first.task() == cluster_task{role::worker, 0});
  CHECK((first.rank() == 0 && first.size() == 2 && first.is_chief() && first.trains()));
  CHECK(first.coordinator() == endpoint{"a", 1});
  spec.task = {role::worker, 1};
  const cluster second(spec);
  CHECK((second.rank() == 1 && !second.is_chief()));
  spec.task = {role::ps, 0};
  const cluster third(spec);
  CHECK((!third.trains() && !third.is_chief() && third.count(role::ps) == 1 && !third.local_rank()));
  CHECK(error_of([&] { third.rank(); }) == "ps 0 has no rank: only the chief and the workers train");
  CHECK(first.run_id() == third.run_id());
}

TEST_CASE("cluster: a chief is rank 0, workers follow") {
  cluster_spec spec = two_workers();
  spec.chief = {endpoint{"c", 1}};
  spec.task = {role::worker, 1};
  const cluster c(spec);
  CHECK((c.rank() == 2 && c.size() == 3 && !c.is_chief()));
  CHECK(c.coordinator() == endpoint{"c", 1});
  for (int rank = 0; rank < c.size(); ++rank) CHECK(c.rank_of(c.task_of_rank(rank)) == rank);
  CHECK(to_string(c.task_of_rank(0)) == "chief 0");
  CHECK(to_string(c.task_of_rank(2)) == "worker 1");
  spec.task = {role::chief, 0};
  CHECK(cluster(spec).is_chief());
  CHECK(to_string(spec) == "chief c:1, worker a:1 b:1");
}

TEST_CASE("cluster: an evaluator may stand inside or outside") {
  cluster_spec spec = two_workers();
  spec.task = {role::evaluator, 0};
  const cluster outside(spec);
  CHECK((!outside.trains() && !outside.is_chief() && outside.size() == 2 && !outside.is_alone()));
  CHECK(outside.coordinator() == endpoint{"a", 1});
  spec.task.index = 1;
  CHECK(error_of([&] { cluster{spec}; }) == "this process is evaluator 1, but the cluster has no evaluator: worker a:1 b:1");
  spec.evaluator = {endpoint{"e", 1}};
  CHECK(error_of([&] { cluster{spec}; }) == "this process is evaluator 1, but the evaluators of the cluster are 0 to 0");
  spec.task.index = 0;
  CHECK(cluster(spec).address({role::evaluator, 0}) == endpoint{"e", 1});
  spec.evaluator.emplace_back(endpoint{"f", 1});
  CHECK(error_of([&] { cluster{spec}; }) == "the cluster has 2 evaluators, but may have only one");
}

TEST_CASE("cluster: a process by itself") {
  const cluster c({.worker = {std::nullopt}});
  CHECK((c.is_alone() && c.is_chief() && c.rank() == 0 && c.size() == 1 && !c.knows_addresses()));
  CHECK(error_of([&] { c.coordinator(); }) == "a cluster of one process without an address has no coordinator");
  CHECK(!cluster({.worker = {std::nullopt}, .ps = {std::nullopt}, .coordinator = endpoint{"a", 1}}).is_alone());
  CHECK(!cluster({.worker = {endpoint{"a", 1}}, .task = {role::evaluator, 0}}).is_alone());
}

TEST_CASE("cluster: addresses that are unknown until rendezvous") {
  cluster_spec spec{.worker = {std::nullopt, std::nullopt}, .task = {role::worker, 1}};
  CHECK(error_of([&] { cluster{spec}; }) == "the address of the coordinator, worker 0, is unknown");
  spec.coordinator = endpoint{"a", 1};
  const cluster before(spec);
  CHECK(!before.knows_addresses());
  CHECK(!before.address({role::worker, 1}));
  CHECK(!before.local_rank());
  CHECK(to_string(before.spec()) == "worker ? ?");

  cluster_spec known = before.spec();
  known.worker = {endpoint{"a", 2}, endpoint{"a", 3}};
  ++known.generation;
  const cluster after(known);
  CHECK(after.knows_addresses());
  CHECK(after.generation() == 1);
  CHECK(after.run_id() == before.run_id());
  CHECK(after.coordinator() == endpoint{"a", 1});
  CHECK((after.local_rank() == 1 && after.local_size() == 2));
}

TEST_CASE("cluster: processes of one host are counted") {
  cluster_spec spec{.chief = {endpoint{"a", 1}},
                    .worker = {endpoint{"b", 1}, endpoint{"A", 2}, endpoint{"b", 2}, endpoint{"a", 3}},
                    .ps = {endpoint{"a", 4}}};
  const int expected[][2] = {{0, 3}, {0, 2}, {1, 3}, {1, 2}, {2, 3}};
  for (int rank = 0; rank < 5; ++rank) {
    spec.task = cluster(spec).task_of_rank(rank);
    CHECK(cluster(spec).local_rank() == expected[rank][0]);
    CHECK(cluster(spec).local_size() == expected[rank][1]);
  }
}

TEST_CASE("cluster: the run is named after the members unless it has a name") {
  cluster_spec spec = two_workers();
  const std::string run = cluster(spec).run_id();
  CHECK(run.size() == 16);
  spec.task.index = 1;
  CHECK(cluster(spec).run_id() == run);
  spec.worker[1]->port = 2;
  CHECK(cluster(spec).run_id() != run);
  spec.coordinator = endpoint{"c", 1};
  const std::string another = cluster(spec).run_id();
  spec.coordinator = endpoint{"c", 2};
  CHECK(cluster(spec).run_id() != another);
  spec.run_id = "mine";
  CHECK(cluster(spec).run_id() == "mine");
}

TEST_CASE("cluster: parts that do not fit together") {
  const auto why = [](cluster_spec spec) { return error_of([&] { cluster{std::move(spec)}; }); };
  CHECK(why({}) == "the cluster has neither a chief nor a worker, so no process would train");
  CHECK(why({.ps = {endpoint{"a", 1}}, .task = {role::ps, 0}}).find("no process would train") != std::string::npos);
  CHECK(why({.chief = {endpoint{"a", 1}, endpoint{"b", 1}}, .task = {role::chief, 0}}) ==
        "the cluster has 2 chiefs, but may have only one");

  cluster_spec spec = two_workers();
  spec.task = {role::worker, 2};
  CHECK(why(spec) == "this process is worker 2, but the workers of the cluster are 0 to 1");
  spec.task = {role::worker, -1};
  CHECK(why(spec) == "this process is worker -1, but the workers of the cluster are 0 to 1");
  spec.task = {role::ps, 0};
  CHECK(why(spec) == "this process is ps 0, but the cluster has no ps: worker a:1 b:1");

  spec = two_workers();
  spec.worker[1] = endpoint{"A", 1};
  CHECK(why(spec) == "worker 0 and worker 1 have the same address, A:1");
  spec = two_workers();
  spec.ps = {std::nullopt, endpoint{"b", 1}};
  CHECK(why(spec) == "worker 1 and ps 1 have the same address, b:1");

  const cluster c(two_workers());
  CHECK(error_of([&] { c.address({role::ps, 0}); }) == "there is no ps 0 in the cluster of worker a:1 b:1");
  CHECK(error_of([&] { c.address({role::worker, -1}); }) == "there is no worker -1 in the cluster of worker a:1 b:1");
}

TEST_CASE("explicit_cluster: TF_CONFIG as a value") {
  const explicit_cluster resolve{.chief = {"c:1"}, .worker = {"a:1", "b:1"}, .task = {role::worker, 1}, .run_id = "night"};
  const cluster c = resolve();
  CHECK((c.rank() == 2 && c.size() == 3 && c.run_id() == "night"));
  CHECK(c.address({role::worker, 0}) == endpoint{"a", 1});
  CHECK(error_of([] { explicit_cluster{.worker = {"a"}}(); }) == "'a' has no port: write host:port");
}
