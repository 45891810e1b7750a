// needs: protozero
// What a worker and the coordinator of tasks say to each other.
#include <strata/distribute/tasks/task_messages.hpp>

#include "fuzz.hpp"
#include "messages.hpp"
using namespace strata;
using namespace strata::detail;

namespace {
std::vector<std::string> seeds() {
  return fuzz::encoded(task_worker{}, task_call{"name", "argument"}, task_result{task_outcome::done, "result"});
}

const fuzz::target task_messages{"task_messages", seeds, fuzz::decode_one_of<task_worker, task_call, task_result>};
}  // namespace
