// Slurm's lists of hosts and of tasks, and addresses.
#include <strata/net/endpoint.hpp>
#include <strata/resolvers/host_list.hpp>

#include "fuzz.hpp"
using namespace strata;
using namespace strata::core;

namespace {
std::vector<std::string> seeds() {
  return {fuzz::with_choice(0, "node[01-03,07],gpu-[1-2]x[0-1]"), fuzz::with_choice(1, "2(x3),1"),
          fuzz::with_choice(2, "node1:2222"), fuzz::with_choice(2, "[::1]:2222")};
}

std::vector<std::string> larger(int count) {
  std::string hosts = "node", counts = "1";
  for (int i = 0; i < count; ++i) {
    hosts += std::to_string(i) + ",node";
    counts += ",1";
  }
  return {fuzz::with_choice(0, hosts), fuzz::with_choice(1, counts)};
}

void read(std::string_view input) {
  const fuzz::choice chosen(input);
  const std::string text(chosen.rest);
  if (chosen.number % 3 == 0) {
    fuzz::check(detail::expand_hosts(text).size() <= detail::most_hosts);
  } else if (chosen.number % 3 == 1) {
    fuzz::check(detail::expand_counts(text).size() <= detail::most_hosts);
  } else {
    const endpoint e = parse_endpoint(text);
    fuzz::accepted([&] { fuzz::check(parse_endpoint(to_string(e)) == e); });
  }
}

const fuzz::target host_list{"host_list", seeds, read, larger};
}  // namespace
