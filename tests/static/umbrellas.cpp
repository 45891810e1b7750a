// All headers that need no library, in one program.
#include <strata/data.hpp>
#include <strata/distribute/cluster.hpp>
#include <strata/distribute/communicators/in_process.hpp>
#include <strata/distribute/mirrored.hpp>
#include <strata/distribute/resolvers/any_cluster.hpp>
#include <strata/distribute/resolvers/explicit_cluster.hpp>
#include <strata/distribute/resolvers/kubernetes.hpp>
#include <strata/distribute/resolvers/mpirun.hpp>
#include <strata/distribute/resolvers/slurm.hpp>
#include <strata/distribute/resolvers/tf_config.hpp>
#include <strata/distribute/resolvers/torchrun.hpp>
#include <strata/distribute/resolvers/tpu_workers.hpp>
#include <strata/distribute/synchronous_among.hpp>
#include <strata/strata.hpp>
#include <strata/train/backup_and_restore.hpp>
#include <strata/train/sidecar_evaluator.hpp>
#include <strata/train/weights_file.hpp>
