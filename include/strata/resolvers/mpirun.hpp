// mpirun: the processes that mpirun or mpiexec starts, whether or not they call MPI.
#pragma once
#include <strata/base/text.hpp>
#include <strata/resolvers/numbered.hpp>

namespace strata {

/// Reads the variables of Open MPI (OMPI_COMM_WORLD_RANK), of MPICH and its relatives (PMI_RANK), or of PMIx under Slurm
/// (PMIX_RANK). The coordinator is process 0. MPI does not provide its host, so `coordinator` or the variable STRATA_COORDINATOR
/// has to give host:port; under Open MPI on one host, the loopback address is the default. The other addresses are unknown until
/// rendezvous. Throws strata_error with the name of the variable.
struct mpirun {
  core::numbered_roles roles{};
  std::string coordinator{};
  core::environment_reader environment = core::process_environment;

  cluster operator()() const {
    return detail::resolved_by("mpirun", [&] {
      using namespace detail;
      const variables variables(environment);
      const names& known = names_in(variables);
      const int size =
          variables.number(known.size, 1, most_processes, detail::text_of({"mpirun sets it together with ", known.rank}));
      const int number = *variables.number(known.rank, 0, size - 1);
      const bool sized_by_slurm = known.size == std::string_view("SLURM_NTASKS");
      refuse_contradictions({known.rank, numbered_by::mpirun, number, size, sized_by_slurm}, process_numbers(variables));
      cluster_spec spec = numbered_spec(number, size, roles);
      spec.local_rank = variables.number(known.local_rank, 0, size - 1);
      spec.local_size = variables.number(known.local_size, 1, size);

      const std::optional<std::string> job = variables.text("PMIX_NAMESPACE");
      spec.coordinator = coordinator.empty() ? variables.address(coordinator_variable) : core::parse_endpoint(coordinator);
      if (!spec.coordinator && job && spec.local_size == size) spec.coordinator = endpoint{"127.0.0.1", port_of_run(*job)};
      if (!spec.coordinator && size > 1)
        throw_error("the address of process 0 is unknown: set STRATA_COORDINATOR to its host:port, for example with mpirun -x");
      numbered_address(spec, 0) = spec.coordinator;
      spec.run_id = variables.first_of(run_id_variable, "PMIX_NAMESPACE").value_or("");
      return spec;
    });
  }

 private:
  struct names {
    const char *rank, *size, *local_rank, *local_size;
  };

  static const names& names_in(const detail::variables& variables) {
    static constexpr names all[] = {
        {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
        {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
        {"PMIX_RANK", "SLURM_NTASKS", "SLURM_LOCALID", ""},
    };
    for (const names& candidate : all) {
      if (variables.text(candidate.rank)) return candidate;
    }
    throw_error("none of OMPI_COMM_WORLD_RANK, PMI_RANK and PMIX_RANK is set: start the program with mpirun");
  }
};

}  // namespace strata
