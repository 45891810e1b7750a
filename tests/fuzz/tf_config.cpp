// TF_CONFIG.
#include <strata/resolvers/tf_config.hpp>

#include "fuzz.hpp"
using namespace strata;

namespace {
std::vector<std::string> seeds() {
  return {"{}", R"({"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": "0"}})",
          R"({"cluster": {"chief": ["a:2222"], "worker": ["b:2222", "[::1]:2222"], "ps": ["d:2222"], "evaluator": ["e:2222"]},
              "task": {"type": "ps", "index": 0}, "environment": "cloud"})"};
}

std::vector<std::string> larger(int count) {
  std::string objects = "{", workers;
  for (int i = 0; i < count; ++i) {
    const std::string number = std::to_string(i);
    objects += "\"key " + number + "\": {}, ";
    workers += (i > 0 ? ", \"node" : "\"node") + number + ":1\"";
  }
  const std::string rest = R"("cluster": {"worker": [)" + workers + R"(]}, "task": {"type": "worker", "index": 0}})";
  return {objects + rest, '{' + rest};
}

void read(std::string_view input) {
  const cluster found = tf_config{
      [&](const std::string& name) { return name == "TF_CONFIG" ? std::optional(std::string(input)) : std::nullopt; }}();
  fuzz::accepted([&] {
    to_string(found.spec());
    fuzz::check(found.contains(found.task()) || found.task().type == role::evaluator);
    fuzz::check(!found.trains() || found.task_of_rank(found.rank()) == found.task());
  });
}

const fuzz::target tf_config_variable{"tf_config", seeds, read, larger};
}  // namespace
