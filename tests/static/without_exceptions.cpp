// All headers that need neither exceptions nor run-time type information: those that need neither a library nor other processes.
// flags: -fno-exceptions -fno-rtti
#include <strata/data.hpp>
#include <strata/distribute/mirrored.hpp>
#include <strata/strata.hpp>
#include <strata/train/backup_and_restore.hpp>
#include <strata/train/gradient_error.hpp>
#include <strata/train/predictor.hpp>
#include <strata/train/sidecar_evaluator.hpp>
#include <strata/train/weights_file.hpp>
#include <strata/xla/tpu.hpp>
