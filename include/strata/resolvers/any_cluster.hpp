// any_cluster: whichever launcher has started this process.
#pragma once
#include <strata/resolvers/kubernetes.hpp>
#include <strata/resolvers/mpirun.hpp>
#include <strata/resolvers/slurm.hpp>
#include <strata/resolvers/tf_config.hpp>
#include <strata/resolvers/torchrun.hpp>

namespace strata {

/// The cluster of that one of tf_config, torchrun, mpirun, slurm or kubernetes whose variables are set. If there are several, the
/// innermost launcher is used, because the others started it; tasks of srun that are ranks of MPI as well are those of slurm,
/// which has more addresses. `roles` are for all resolvers but tf_config. Throws strata_error if no launcher has set its
/// variables, or if two that count equally many processes number this one differently.
struct any_cluster {
  core::numbered_roles roles{};
  core::environment_reader environment = core::process_environment;

  cluster operator()() const {
    const detail::variables variables(environment);
    std::optional<detail::process_number> of_mpi, of_slurm;
    for (const detail::process_number& p : detail::process_numbers(variables)) {
      if (p.launcher == detail::numbered_by::mpirun && !of_mpi) of_mpi = p;
      if (p.launcher == detail::numbered_by::slurm) of_slurm = p;
    }
    const bool mpi_has_tasks = of_mpi && of_slurm && (!of_mpi->size || of_mpi->size == of_slurm->size);
    if (variables.text("TF_CONFIG")) return tf_config{environment}();
    if (variables.text("RANK") && variables.text("MASTER_ADDR")) return torchrun{.roles = roles, .environment = environment}();
    if (of_mpi && !mpi_has_tasks) return mpirun{.roles = roles, .environment = environment}();
    if (variables.text("SLURM_PROCID")) return slurm{.roles = roles, .environment = environment}();
    if (variables.first_of("STRATA_SERVICE", "JOB_COMPLETION_INDEX"))
      return kubernetes{.roles = roles, .environment = environment}();
    throw_error(
        "any_cluster: no launcher has started this process: none of TF_CONFIG, RANK with MASTER_ADDR, OMPI_COMM_WORLD_RANK, "
        "PMI_RANK, PMIX_RANK, SLURM_PROCID and STRATA_SERVICE is set; start it with examples/launch, torchrun, mpirun, srun or "
        "Kubernetes, or set TF_CONFIG to {} to train alone");
  }
};

}  // namespace strata
