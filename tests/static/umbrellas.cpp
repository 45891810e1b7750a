// All headers that need no library, in one program.
#include <strata/communicators/in_process.hpp>
#include <strata/data.hpp>
#include <strata/distribute/mirrored.hpp>
#include <strata/distribute/synchronous_among.hpp>
#include <strata/resolvers/any_cluster.hpp>
#include <strata/resolvers/cluster.hpp>
#include <strata/resolvers/explicit_cluster.hpp>
#include <strata/resolvers/kubernetes.hpp>
#include <strata/resolvers/mpirun.hpp>
#include <strata/resolvers/slurm.hpp>
#include <strata/resolvers/tf_config.hpp>
#include <strata/resolvers/torchrun.hpp>
#include <strata/resolvers/tpu_workers.hpp>
#include <strata/strata.hpp>
#include <strata/train/backup_and_restore.hpp>
#include <strata/train/sidecar_evaluator.hpp>
#include <strata/train/weights_file.hpp>
