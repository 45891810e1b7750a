// needs: protozero
// The messages between processes and their coordinator.
#include <strata/control/control_messages.hpp>

#include "fuzz.hpp"
#include "messages.hpp"
using namespace strata;
using namespace strata::control;

namespace {
std::vector<std::string> seeds() {
  using namespace std::chrono_literals;
  const member who{
      .rank = 1, .size = 2, .name = "worker 1", .host = "node1", .pid = 4711, .agreement = std::string("adam; a:1, b:2")};
  const formation two{.generation = 3, .ranks = {0, 1, 5}, .newcomers = {2}};
  const absent_members absent{.missing = {1}, .lost = {"worker 0"}, .gave_up = {"worker 2"}};
  return fuzz::encoded(two, empty_message{}, set_request{"key", "value"}, get_request{"key"}, value_answer{"value"},
                       get_all_request{"tcp ", 2, 30s}, get_all_answer{{"a", "b"}, 1, {1}},
                       join_request{.who = who, .timeout = 5s}, form_again_request{.is_spare = true},
                       join_answer{.all = two, .absent = absent},
                       heartbeat_message{.waits = {1, "gradients", 20ms, 3s, 5, 5, "a training step of 8 samples", 1s},
                                         .knows_failure = true,
                                         .knows_notice = 7},
                       announcement{"no memory"}, notice{7, "worker 1: no memory"}, failure_report{1, "why"});
}

const fuzz::target control_messages{
    "control_messages", seeds,
    fuzz::decode_one_of<formation, empty_message, set_request, get_request, value_answer, get_all_request, get_all_answer,
                        join_request, form_again_request, join_answer, heartbeat_message, announcement, notice, failure_report>};
}  // namespace
