// The variables of Slurm, Kubernetes, torchrun and mpirun, one NAME=VALUE per line.
#include <strata/resolvers/any_cluster.hpp>

#include <map>

#include "fuzz.hpp"
using namespace strata;
using namespace strata::core;

namespace {
std::vector<std::string> seeds() {
  const char* const of_each[] = {
      "SLURM_PROCID=1\nSLURM_STEP_NUM_TASKS=3\nSLURM_STEP_NODELIST=n[1-2]\nSLURM_STEP_TASKS_PER_NODE=2,1\nSLURM_STEP_ID=0\n"
      "SLURM_JOB_ID=7\nSLURM_LOCALID=1",
      "SLURM_PROCID=0\nSLURM_NTASKS=2\nSLURM_STEP_NODELIST=a,b\nSLURM_NTASKS_PER_NODE=1\nSLURM_STEP_ID=0\n"
      "SLURM_DISTRIBUTION=cyclic\nSTRATA_COORDINATOR=a:1",
      "STRATA_REPLICAS=3\nSTRATA_SERVICE=s\nHOSTNAME=training-1.s\nPOD_NAMESPACE=n\nSTRATA_PORT=99",
      "RANK=1\nWORLD_SIZE=2\nMASTER_ADDR=::1\nMASTER_PORT=29500\nLOCAL_RANK=0\nLOCAL_WORLD_SIZE=1\nTORCHELASTIC_RUN_ID=x\n"
      "TORCHELASTIC_USE_AGENT_STORE=True\nTORCHELASTIC_RESTART_COUNT=2",
      "OMPI_COMM_WORLD_RANK=0\nOMPI_COMM_WORLD_SIZE=2\nOMPI_COMM_WORLD_LOCAL_RANK=0\nOMPI_COMM_WORLD_LOCAL_SIZE=2\n"
      "PMIX_NAMESPACE=job",
      "PMI_RANK=1\nPMI_SIZE=2\nSTRATA_COORDINATOR=[::1]:7\nSTRATA_RUN_ID=r",
      "STRATA_REPLICAS=3\nSTRATA_SERVICE=s\nHOSTNAME=ip-10\nJOB_COMPLETION_INDEX=1\nSTRATA_JOB=training\nSTRATA_FIRST_ORDINAL=1"};
  std::vector<std::string> all;
  unsigned number = 0;
  for (const char* variables : of_each) all.push_back(fuzz::with_choice(number++, variables));
  return all;
}

std::vector<std::string> larger(int count) {
  std::string nodes = "node";
  for (int i = 1; i < count; ++i) nodes += std::to_string(i) + ",node";
  const std::string number = std::to_string(count);
  return {fuzz::with_choice(0, "SLURM_PROCID=1\nSLURM_STEP_NUM_TASKS=" + number + "\nSLURM_STEP_NODELIST=" + nodes +
                                   "\nSLURM_STEP_TASKS_PER_NODE=1(x" + number + ")\nSLURM_STEP_ID=0\nSLURM_JOB_ID=7")};
}

void read(std::string_view input) {
  const fuzz::choice chosen(input);
  std::map<std::string, std::string> variables;
  for (std::string_view rest = chosen.rest; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    if (const std::size_t equals = line.find('='); equals != line.npos)
      variables[std::string(line.substr(0, equals))] = line.substr(equals + 1);
  }
  const auto environment = [&](const std::string& name) {
    const auto at = variables.find(name);
    return at == variables.end() ? std::nullopt : std::optional(at->second);
  };
  const numbered_roles roles{
      .chief = (chosen.number & 8) != 0, .ps = int(chosen.number >> 4 & 1), .evaluator = (chosen.number & 32) != 0};
  const cluster found = [&] {
    switch (chosen.number & 7) {
      case 0:
        return any_cluster{.roles = roles, .environment = environment}();
      case 1:
        return slurm{.roles = roles, .environment = environment}();
      case 2:
        return kubernetes{.roles = roles, .environment = environment}();
      case 3:
        return torchrun{.roles = roles, .environment = environment}();
      default:
        return mpirun{.roles = roles, .environment = environment}();
    }
  }();
  fuzz::accepted([&] {
    fuzz::check(found.contains(found.task()));
    fuzz::check(!found.local_rank() || *found.local_rank() >= 0);
    if (found.trains()) fuzz::check(found.task_of_rank(found.rank()) == found.task());
    if (!found.is_alone()) fuzz::look_at(found.coordinator().host);
  });
}

const fuzz::target launchers{"launchers", seeds, read, larger};
}  // namespace
