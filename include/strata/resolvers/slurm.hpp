// slurm: the tasks that srun starts.
#pragma once
#include <algorithm>
#include <strata/resolvers/host_list.hpp>
#include <strata/resolvers/numbered.hpp>

namespace strata {

/// Reads SLURM_PROCID, SLURM_STEP_NUM_TASKS (or SLURM_NTASKS), SLURM_STEP_NODELIST (or SLURM_JOB_NODELIST) and
/// SLURM_STEP_TASKS_PER_NODE (or SLURM_TASKS_PER_NODE, SLURM_NTASKS_PER_NODE). Task 0, on the first host, is the coordinator.
/// The tasks of a host have consecutive ports from `base_port` on; left out, it follows from the job id, so that jobs on one host
/// do not collide. With the default distribution of tasks, "block", all addresses are known; otherwise only the coordinator's is
/// known before rendezvous. STRATA_COORDINATOR overrides the coordinator's address. The run id is job and step; the generation is
/// the number of requeues. Throws strata_error that names the variable.
/// https://slurm.schedmd.com/srun.html#SECTION_OUTPUT-ENVIRONMENT-VARIABLES
struct slurm {
  core::numbered_roles roles{};
  std::uint16_t base_port = 0;
  core::environment_reader environment = core::process_environment;

  cluster operator()() const {
    return detail::resolved_by("slurm", [&] {
      using namespace detail;
      const variables variables(environment);
      const std::string advice = "start the program with srun";
      const std::optional<int> of_step = variables.number("SLURM_STEP_NUM_TASKS", 1, most_processes);
      const int size = of_step ? *of_step : variables.number("SLURM_NTASKS", 1, most_processes, advice);
      const int number = variables.number("SLURM_PROCID", 0, size - 1, advice);
      // The batch script has the variables of task 0 as well; it would wait for the others without end.
      if (size > 1 && !variables.first_of("SLURM_STEP_ID", "SLURM_STEPID"))
        throw_error("SLURM_STEP_ID is not set, so this is the batch script itself: start the program in it with srun");
      refuse_contradictions({"SLURM_PROCID", numbered_by::slurm, number, size}, process_numbers(variables));
      cluster_spec spec = numbered_spec(number, size, roles);
      spec.local_rank = variables.number("SLURM_LOCALID", 0, size - 1);

      const std::optional<std::string> hosts = variables.first_of("SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST");
      if (!hosts) throw_error("SLURM_STEP_NODELIST is not set: " + advice);
      const std::string job = variables.first_of("SLURM_JOB_ID", "SLURM_JOBID").value_or("0");
      const std::string step = variables.first_of("SLURM_STEP_ID", "SLURM_STEPID").value_or("0");
      fill_addresses(spec, variables, number, size, expand_hosts(*hosts), base_port ? base_port : port_of_job(job, step));
      if (const auto address = variables.address(coordinator_variable)) spec.coordinator = address;
      if (!spec.coordinator && size > 1 && !numbered_address(spec, 0))
        throw_error("the distribution of tasks is arbitrary: set STRATA_COORDINATOR to the host:port where task 0 is to listen");

      spec.run_id = variables.text(run_id_variable).value_or(job + '.' + step);
      spec.generation = static_cast<std::uint64_t>(variables.number("SLURM_RESTART_COUNT", 0, most_processes).value_or(0));
      return spec;
    });
  }

 private:
  /// Job ids are consecutive: the ports of 300 jobs in a row are 64 apart.
  static std::uint16_t port_of_job(const std::string& job, const std::string& step) {
    const auto number = [](const std::string& text) {
      std::uint64_t n = 0;
      std::from_chars(text.data(), text.data() + text.size(), n);
      return n;
    };
    return static_cast<std::uint16_t>(10'000 + (number(job) * 64 + number(step) * 1'009) % 20'000);
  }

  static std::vector<int> tasks_of_hosts(const detail::variables& variables, int size, std::size_t hosts) {
    std::vector<int> counts;
    if (const auto list = variables.first_of("SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"))
      counts = detail::expand_counts(*list);
    else if (const auto each = variables.number("SLURM_NTASKS_PER_NODE", 1, size))
      counts.assign(hosts, *each);
    if (counts.empty() && hosts == 1) counts = {size};
    return counts;
  }

  static void fill_addresses(cluster_spec& spec, const detail::variables& variables, int number, int size,
                             const std::vector<std::string>& hosts, int base) {
    const std::string distribution = variables.text("SLURM_DISTRIBUTION").value_or("block");
    if (distribution.starts_with("arbitrary")) return;
    const core::endpoint first{hosts.front(), static_cast<std::uint16_t>(base)};
    detail::numbered_address(spec, 0) = first;

    const std::vector<int> counts = tasks_of_hosts(variables, size, hosts.size());
    long sum = 0, most = 1;
    for (const int count : counts) sum += count, most = std::max<long>(most, count);
    if (base + most - 1 > detail::highest_port)
      throw_error(detail::formatted("%ld tasks of one host need ports from %d on, which end at 65535", most, base));
    // Another number of hosts or tasks than the step has: the variables describe the whole job.
    if (!distribution.starts_with("block") || counts.size() != hosts.size() || sum != size) return;
    for (std::size_t host = 0, task = 0; host < hosts.size(); ++host) {
      for (int local = 0; local < counts[host]; ++local, ++task) {
        detail::numbered_address(spec, task) = core::endpoint{hosts[host], static_cast<std::uint16_t>(base + local)};
        if (static_cast<int>(task) == number) spec.local_size = counts[host];
      }
    }
  }
};

}  // namespace strata
