// NCCL, NVIDIA's library of sums over many GPUs, as far as strata needs it: nccl.cuh where nvcc compiles, emulated elsewhere.
#pragma once
#include <strata/cuda/machine/machine.hpp>
#if defined(__CUDACC__)
#include <strata/cuda/machine/nccl.cuh>
#else
#include <strata/cuda/machine/emulated_nccl.hpp>
#endif
