// GPUs: `one_device{gpu(0)}`, `mirrored{gpus()}`. Files that include it are compiled by nvcc; other compilers emulate devices,
// for tests. Include it after or before <strata/strata.hpp>.
#pragma once
#ifdef _WIN32
#error "GPUs, and emulated ones, need Linux: on Windows networks compute on the cores of the processor, with strata/strata.hpp"
#endif
#include <strata/cuda/auto_device.hpp>
#include <strata/cuda/engine/engine.hpp>
#include <strata/cuda/engine/nccl_reduction.hpp>
