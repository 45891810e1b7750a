// needs: protozero
// The messages between workers and parameter servers, and the parts of a server's snapshot.
#include <strata/parameter_server/parameter_messages.hpp>
#include <strata/parameter_server/snapshot_codec.hpp>

#include "fuzz.hpp"
#include "messages.hpp"
using namespace strata;
using namespace strata::detail;

namespace {
std::vector<std::string> seeds() {
  return fuzz::encoded(assign_message{1, true}, pull_message{1, true, true, {1, 5, 9}},
                       push_message{1, 7, 0.1, 64, 2, {1, 5, 9}, {0.5, 2}}, weights_answer{3, {0.5, 2}}, server_snapshot{1, true},
                       clock_snapshot{1, 2, 3}, shard_snapshot{1, 0, 16, 3, {{1, 2, 3}}, {0.5}});
}

const fuzz::target parameter_messages{"parameter_messages", seeds,
                                      fuzz::decode_one_of<assign_message, pull_message, push_message, weights_answer,
                                                          server_snapshot, clock_snapshot, shard_snapshot>};
}  // namespace
