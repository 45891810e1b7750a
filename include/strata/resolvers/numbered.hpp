// Roles of processes that a launcher identifies only by numbers.
#pragma once
#include <strata/base/text.hpp>
#include <strata/resolvers/process_numbers.hpp>

namespace strata {

namespace core {
/// The first processes train, the next ones are parameter servers, and the last one is the evaluator. Process 0 coordinates.
struct numbered_roles {
  bool chief = false;  // whether process 0 is a chief instead of worker 0
  int ps = 0;          // how many parameter servers
  bool evaluator = false;
};
}  // namespace core

namespace detail {

/// The cluster from the view of process `number` of `size`, without addresses.
inline cluster_spec numbered_spec(int number, int size, const numbered_roles& roles) {
  const int trainers = size - roles.ps - roles.evaluator;
  if (roles.ps < 0) throw_error({"there cannot be ", roles.ps, " parameter servers"});
  if (trainers < 1)
    throw_error(formatted("of %d processes, %d parameter servers%s leave no process that trains", size, roles.ps,
                          roles.evaluator ? " and the evaluator" : ""));
  if (number >= size) throw_error(formatted("process number %d is not among %d processes", number, size));
  cluster_spec spec;
  const auto add = [&](role r, int count) {
    for (int i = 0; i < count; ++i, --number) {
      if (number == 0) spec.task = {r, i};
      spec[r].emplace_back();
    }
  };
  add(role::chief, roles.chief);
  add(role::worker, trainers - roles.chief);
  add(role::ps, roles.ps);
  add(role::evaluator, roles.evaluator);
  return spec;
}

/// A reference to the address of process `number`.
inline std::optional<endpoint>& numbered_address(cluster_spec& spec, std::size_t number) {
  for (const role r : all_roles) {
    if (number < spec[r].size()) return spec[r][number];
    number -= spec[r].size();
  }
  throw_error({"process number ", number, " is out of range"});
}

}  // namespace detail
}  // namespace strata
