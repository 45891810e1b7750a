// torchrun: the processes that torchrun, or another launcher with the same variables, starts.
#pragma once
#include <strata/resolvers/numbered.hpp>

namespace strata {

/// Reads RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, and LOCAL_RANK and LOCAL_WORLD_SIZE if they are set. Only the address of
/// the coordinator is known before rendezvous. If torchrun itself listens on MASTER_PORT (TORCHELASTIC_USE_AGENT_STORE), the
/// coordinator's port follows from the run id unless `port` is given. The generation is the number of restarts. Throws
/// strata_error that names the variable.
/// https://docs.pytorch.org/docs/stable/elastic/run.html#environment-variables
struct torchrun {
  core::numbered_roles roles{};
  std::uint16_t port = 0;
  core::environment_reader environment = core::process_environment;

  cluster operator()() const {
    return detail::resolved_by("torchrun", [&] {
      using namespace detail;
      const variables variables(environment);
      const std::string advice = "start the program with torchrun, or set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT";
      const int size = variables.number("WORLD_SIZE", 1, most_processes, advice);
      const int number = variables.number("RANK", 0, size - 1, advice);
      const bool set_by_hand = !variables.text("TORCHELASTIC_RUN_ID");
      refuse_contradictions({"RANK", numbered_by::torchrun, number, size, set_by_hand}, process_numbers(variables));
      cluster_spec spec = numbered_spec(number, size, roles);
      spec.local_rank = variables.number("LOCAL_RANK", 0, size - 1);
      spec.local_size = variables.number("LOCAL_WORLD_SIZE", 1, size);

      const std::optional<std::string> host = variables.text("MASTER_ADDR");
      if (!host) throw_error("MASTER_ADDR is not set: " + advice);
      const int master_port = variables.number("MASTER_PORT", 1, highest_port, advice);
      const std::string name = variables.text("TORCHELASTIC_RUN_ID").value_or("none") + '-' + std::to_string(master_port);
      const bool is_taken = variables.text("TORCHELASTIC_USE_AGENT_STORE") == "True";
      spec.coordinator = endpoint{*host, port ? port : is_taken ? port_of_run(name) : static_cast<std::uint16_t>(master_port)};
      numbered_address(spec, 0) = spec.coordinator;
      spec.run_id = variables.text(run_id_variable).value_or(name);
      spec.generation = static_cast<std::uint64_t>(variables.number("TORCHELASTIC_RESTART_COUNT", 0, most_processes).value_or(0));
      return spec;
    });
  }
};

}  // namespace strata
