// TF_CONFIG: everything that TensorFlow documents is accepted, and each mistake has its own message.
#include <doctest/doctest.h>

#include <strata/base/random.hpp>
#include <strata/resolvers/tf_config.hpp>

#include "error_of.hpp"

using namespace strata;
using namespace strata::core;

namespace {

cluster resolved(const std::string& text, const std::string& run_id = "") {
  return tf_config{[=](const std::string& name) -> std::optional<std::string> {
    if (name == "TF_CONFIG") return text;
    if (name == "STRATA_RUN_ID") return run_id;
    return std::nullopt;
  }}();
}

/// The error message without the resolver's name in front.
std::string mistake(const std::string& text) {
  std::string why = test::error_of([&] { resolved(text); });
  if (why.starts_with("TF_CONFIG: ")) why.erase(0, 11);
  return why;
}
/// The error message for a list of workers.
std::string mistake_of_workers(const std::string& list) {
  return mistake(R"({"cluster": {"worker": )" + list + R"(}, "task": {"type": "worker", "index": 0}})");
}
std::string mistake_of_task(const std::string& task) {
  return mistake(R"({"cluster": {"worker": ["a:1", "b:1"]}, "task": )" + task + "}");
}

}  // namespace

TEST_CASE("tf_config: the example of TensorFlow's guide") {
  const cluster c =
      resolved(R"({"cluster": {"worker": ["host1:2222", "host2:2222", "host3:2222"], "ps": ["host4:2222", "host5:2222"]},
                                 "task": {"type": "worker", "index": 1}})");
  CHECK((c.rank() == 1 && c.size() == 3 && c.count(role::ps) == 2 && !c.is_chief()));
  CHECK(c.coordinator() == endpoint{"host1", 2222});
  CHECK(c.address({role::ps, 1}) == endpoint{"host5", 2222});
  CHECK(c.knows_addresses());
}

TEST_CASE("tf_config: every role, an evaluator inside and outside") {
  const std::string members = R"("cluster": {"chief": ["c:1"], "worker": ["w:1"], "ps": ["p:1"])";
  const std::string inside = R"(, "evaluator": ["e:1"]})", outside = "}";
  const auto task = [](const char* type) { return std::string(R"(, "task": {"type": ")") + type + R"(", "index": 0}})"; };
  for (const char* type : {"chief", "worker", "ps", "evaluator"})
    CHECK(to_string(resolved('{' + members + inside + task(type)).task()) == std::string(type) + " 0");
  CHECK(resolved('{' + members + outside + task("chief")).rank() == 0);
  CHECK(resolved('{' + members + outside + task("worker")).rank() == 1);
  const cluster evaluator = resolved('{' + members + outside + task("evaluator"));
  CHECK((!evaluator.trains() && evaluator.count(role::evaluator) == 0 && evaluator.coordinator() == endpoint{"c", 1}));
}

TEST_CASE("tf_config: without a cluster, one local worker") {
  for (const char* text :
       {"{}", R"({"task": {"type": "worker", "index": 0}})", R"({"environment": "cloud", "rpc_layer": "grpc"})"}) {
    const cluster c = resolved(text);
    CHECK((c.is_alone() && c.is_chief() && c.size() == 1));
  }
  CHECK(mistake(R"({"task": {"type": "worker", "index": 1}})") == "'task' is worker 1, but there is no 'cluster'");
  CHECK(mistake(R"({"clusters": {"worker": ["a:1", "b:1"]}})") == "there is no 'cluster', but an unknown key 'clusters'");
  CHECK(mistake(R"({"\n\u001b[2J": 1})") == R"(there is no 'cluster', but an unknown key '\n\x1b[2J')");
}

TEST_CASE("tf_config: keys of other programs, indices in quotes and IPv6 are taken") {
  const cluster c = resolved(R"({"environment": "cloud", "job": {"a": [{"b": 1}]},
      "cluster": {"worker": ["[::1]:2222", "[::1]:2223"]}, "task": {"type": "worker", "index": "1", "trial": "7"}})");
  CHECK(c.rank() == 1);
  CHECK(c.coordinator() == endpoint{"::1", 2222});
  CHECK(c.local_rank() == 1);
}

TEST_CASE("tf_config: the run has the name in STRATA_RUN_ID, or one that all members find") {
  const auto of_worker = [](int index, const std::string& run_id) {
    return resolved(
               R"({"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": )" + std::to_string(index) + "}}",
               run_id)
        .run_id();
  };
  CHECK(of_worker(0, "") == of_worker(1, ""));
  CHECK(of_worker(0, "tuesday") == "tuesday");
}

TEST_CASE("tf_config: a variable that is not set") {
  const std::string why = test::error_of([] { tf_config{[](const std::string&) { return std::nullopt; }}(); });
  CHECK(why.starts_with("TF_CONFIG: the variable is not set: set it to {\"cluster\":"));
  CHECK(mistake("").starts_with("the variable is not set"));
}

TEST_CASE("tf_config: no JSON, or not the right one") {
  CHECK(mistake("worker") == "not JSON, as its character 1 shows: worker");
  CHECK(mistake("{'cluster': {}}") == "not JSON, as its character 2 shows: {'cluster': {}}");
  CHECK(mistake(R"({"cluster": )").starts_with("not JSON, as its character 1"));
  CHECK(mistake("[]") == "[] is not an object with the keys 'cluster' and 'task'");
  CHECK(mistake("null") == "null is not an object with the keys 'cluster' and 'task'");
  CHECK(mistake(R"({"cluster": ["a:1"]})") == R"('cluster' is ["a:1"], not an object of address lists)");
  CHECK(mistake(R"({"cluster": {}})") ==
        R"('task' is missing: add "task": {"type": "worker", "index": N}, with another N in each process)");
  CHECK(mistake(R"({"cluster": {}, "task": {"type": "worker", "index": 0}})") ==
        "the cluster has neither a chief nor a worker, so no process would train");
  CHECK(mistake(R"({"cluster": {"worker": ["a:1"], "worker": ["b:1"]}, "task": {"type": "worker", "index": 0}})") ==
        "the JSON has the key 'worker' twice in one object");
  CHECK(mistake(R"({"x": )" + std::string(50'000, '[') + std::string(50'000, ']') + '}') ==
        "the JSON is nested more than 100 levels deep");
}

TEST_CASE("tf_config: mistakes in the cluster") {
  CHECK(mistake(R"({"cluster": {"workers": ["a:1"]}, "task": {"type": "worker", "index": 0}})") ==
        "'cluster' names 'workers', which is none of chief, worker, ps and evaluator");
  CHECK(mistake_of_workers(R"("a:1")") == R"('worker' is "a:1", not a list such as ["host:port", ...])");
  CHECK(mistake_of_workers("[]") == "'worker' is an empty list: name a host:port, or leave 'worker' out");
  CHECK(mistake_of_workers(R"(["a:1", 2222])") == R"(worker 1 is 2222, not a string such as "host:port")");
  CHECK(mistake_of_workers(R"(["a:1", "b"])") == "worker 1: 'b' has no port: write host:port");
  CHECK(mistake_of_workers(R"(["a:70000"])") ==
        "worker 0: 'a:70000' has the port '70000', which is not a number from 1 to 65535");
  CHECK(mistake_of_workers(R"(["a:1", "b:1", "a:1"])") == "worker 0 and worker 2 have the same address, a:1");
  CHECK(mistake(R"({"cluster": {"chief": ["a:1", "b:1"]}, "task": {"type": "chief", "index": 0}})") ==
        "the cluster has 2 chiefs, but may have only one");
  CHECK(mistake(R"({"cluster": {"worker": ["a:1"], "evaluator": ["b:1", "c:1"]}, "task": {"type": "worker", "index": 0}})") ==
        "the cluster has 2 evaluators, but may have only one");
}

TEST_CASE("tf_config: mistakes in the task") {
  CHECK(mistake_of_task("1") == R"('task' is 1, not an object such as {"type": "worker", "index": 0})");
  CHECK(mistake_of_task(R"({"index": 0})") == "'task' has no 'type': chief, worker, ps or evaluator");
  CHECK(mistake_of_task(R"({"type": 0, "index": 0})") == R"('type' of 'task' is 0, not a string such as "worker")");
  CHECK(mistake_of_task(R"({"type": "Worker", "index": 0})") ==
        "'type' of 'task' names 'Worker', which is none of chief, worker, ps and evaluator");
  CHECK(mistake_of_task(R"({"type": "worker"})") == "'task' has no 'index'");
  for (const char* index : {"-1", "1.0", "true", "null", "\"\"", "\"one\"", "\" 1\"", "[0]", "99999999999999999999"})
    CHECK(mistake_of_task(std::string(R"({"type": "worker", "index": )") + index + '}').find("not a number from 0") !=
          std::string::npos);
  CHECK(mistake_of_task(R"({"type": "worker", "index": 2})") ==
        "this process is worker 2, but the workers of the cluster are 0 to 1");
  CHECK(mistake_of_task(R"({"type": "ps", "index": 0})") == "this process is ps 0, but the cluster has no ps: worker a:1 b:1");
}

TEST_CASE("tf_config: a damaged text is an error or a cluster, never a crash") {
  const std::string whole =
      R"({"cluster": {"chief": ["c:1"], "worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 1}})";
  const philox random{7};
  int accepted = 0;
  for (std::uint64_t i = 0; i < 3000; ++i) {
    std::string text = whole;
    const auto numbers = random(i);
    for (int k = 0; k < 1 + int(i % 3); ++k) {
      const std::size_t at = numbers[std::size_t(k)] % text.size();
      const char other = "{}[]\",:0a\\\xff\n"[numbers[std::size_t(3 - k)] % 12];
      if (i % 2)
        text[at] = other;
      else
        text.erase(at, 1);
    }
    accepted += test::error_of([&] { resolved(text); }) == "no error";
  }
  CHECK(accepted < 1500);  // most damage is noticed
  for (std::size_t length = 1; length < whole.size(); ++length) CHECK(mistake(whole.substr(0, length)).starts_with("not JSON"));
}
