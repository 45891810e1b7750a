// Values that processes which divide a network compare before they train: the division, and all else that affects the result.
#pragma once
#include <cstdint>
#include <strata/base/arithmetic.hpp>
#include <strata/base/error.hpp>
#include <strata/base/hash.hpp>
#include <strata/base/text.hpp>
#include <strata/exchange/process_group_over.hpp>
#include <strata/program/compute_options.hpp>
#include <strata/program/program_text.hpp>
#include <strata/program/stages/timetable.hpp>
#include <string>
#include <vector>

namespace strata::detail {

/// A value that has to be the same in all processes.
struct agreed_value {
  const char* name;
  std::string here;
  bool is_quoted = true;  // by the error
};
/// Returns `values`, which describe how a network is divided, together with all others that affect the result.
template <class Program>
[[gnu::cold]] std::vector<agreed_value> with_program(std::vector<agreed_value> values,
                                                     const typename Program::optimizer& optimizer, std::uint64_t seed,
                                                     const compute_options& compute) {
  values.push_back({"arithmetic", text_of_arithmetic()});
  values.push_back({"seed", std::to_string(seed)});
  values.push_back({"leaves", std::to_string(compute.leaves)});
  values.push_back({"micro_batch", std::to_string(compute.micro_batch)});
  values.push_back({"optimizer", text_of_optimizer(optimizer)});
  values.push_back({"program", text_of_program<Program>(), false});
  return values;
}
/// Throws strata_error in all processes if one of them has other values than process 0.
template <communicator C>
[[gnu::cold]] void refuse_differences(process_group_over<C>& group, const std::vector<agreed_value>& values) {
  std::vector<double> hashes;
  for (const agreed_value& each : values) hashes.push_back(double(hash_of<std::uint32_t>(each.here)));
  const std::vector<double> all = group.gather(hashes);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const agreed_value& what = values[i % hashes.size()];
    if (all[i] != all[i % hashes.size()])
      throw_error({"the processes do not have the same ", what.name, ": process ", i / hashes.size(), " differs from process 0",
                   what.is_quoted ? text_of({"; here: ", what.here}) : ""});
  }
}

}  // namespace strata::detail
