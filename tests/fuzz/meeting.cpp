// needs: protozero
// The values that processes write to the key-value store, and their first messages, before they are connected.
#include <strata/communicators/meeting.hpp>

#include "fuzz.hpp"
#include "messages.hpp"
using namespace strata;
using namespace strata::detail;

namespace {
std::vector<std::string> seeds() {
  return fuzz::encoded(tcp_address{"::1", 4711, 7}, tcp_hello{7, 1, 2}, shared_memory_address{12, 3, 7, "machine"},
                       shared_memory_reach{false, {0, 2}});
}

const fuzz::target meeting{"meeting", seeds,
                           fuzz::decode_one_of<tcp_address, tcp_hello, shared_memory_address, shared_memory_reach>};
}  // namespace
