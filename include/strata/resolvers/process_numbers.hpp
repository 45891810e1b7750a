// process_numbers: the numbers that launchers have given to this process, and which one is used if two differ.
#pragma once
#include <optional>
#include <strata/base/text.hpp>
#include <strata/resolvers/environment.hpp>
#include <strata/resolvers/host_list.hpp>
#include <string>
#include <vector>

namespace strata::detail {

/// A launcher that numbers the processes that it starts, innermost first: a task of Slurm may be a torchrun or a daemon of
/// mpirun, whose processes inherit the variables of the task.
enum class numbered_by : std::uint8_t { hand, torchrun, mpirun, slurm, kubernetes };

/// The number of this process by one variable.
struct process_number {
  std::string variable{};
  numbered_by launcher{};
  int number = 0;
  std::optional<int> size{};   // of how many processes, if known
  bool matches_outer = false;  // whether an outer launcher that counts as many processes must have given the same number
};

/// The numbers in the variables of launchers. A value that is no number belongs to another program.
inline std::vector<process_number> process_numbers(const variables& variables) {
  const auto number = [&](const std::string& name) -> std::optional<int> {
    int value = 0;
    const auto text = variables.text(name);
    return text && read_digits(*text, value) ? std::optional(value) : std::nullopt;
  };
  std::vector<process_number> found;
  const auto add = [&](const char* name, numbered_by launcher, std::optional<int> size) {
    if (const auto value = number(name)) found.push_back({name, launcher, *value, size});
  };
  add("RANK", numbered_by::torchrun, number("WORLD_SIZE"));
  add("OMPI_COMM_WORLD_RANK", numbered_by::mpirun, number("OMPI_COMM_WORLD_SIZE"));
  add("PMI_RANK", numbered_by::mpirun, number("PMI_SIZE"));
  add("PMIX_RANK", numbered_by::mpirun, {});
  if (variables.first_of("SLURM_STEP_ID", "SLURM_STEPID")) {  // the batch script has a number as well
    const auto of_step = number("SLURM_STEP_NUM_TASKS");
    add("SLURM_PROCID", numbered_by::slurm, of_step ? of_step : number("SLURM_NTASKS"));
  }
  add("JOB_COMPLETION_INDEX", numbered_by::kubernetes, {});
  return found;
}

/// Throws strata_error that names both variables if `other` contradicts `own`. The number of an outer launcher may
/// differ, unless `own.matches_outer` and both count equally many processes.
inline void refuse_contradiction(const process_number& own, const process_number& other) {
  const bool same_count = own.size && own.size == other.size;
  const bool may_differ = other.launcher > own.launcher && !(own.matches_outer && same_count);
  if (may_differ || (other.number == own.number && (same_count || !own.size || !other.size))) return;
  static constexpr const char* resolvers[] = {"tf_config()", "torchrun()", "mpirun()", "slurm()", "kubernetes()"};
  const auto shown = [](const process_number& p) {
    return text_of({"number ", p.number, p.size ? text_of({" of ", *p.size}) : "", " by ", p.variable});
  };
  throw_error({"this process is ", shown(own), ", but ", shown(other), ": ",
               other.launcher == own.launcher ? "" : text_of({"use ", resolvers[int(other.launcher)], ", or "}),
               "unset the variable that is wrong"});
}
inline void refuse_contradictions(const process_number& own, const std::vector<process_number>& others) {
  for (const process_number& other : others)
    if (other.variable != own.variable) refuse_contradiction(own, other);
}

}  // namespace strata::detail
