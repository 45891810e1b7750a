// GPUs: `one_device{gpu(0)}`, `mirrored{gpus()}`. Files that include it are compiled by nvcc; other compilers emulate devices,
// for tests. Include it after or before <strata/strata.hpp>.
// needs: boost_context
#pragma once
#include <strata/cuda/auto_device.hpp>
#include <strata/cuda/engine/engine.hpp>
#include <strata/cuda/engine/nccl_reduction.hpp>
