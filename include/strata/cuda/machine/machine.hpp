// Kernels, memory and queues of a GPU: those of CUDA where nvcc compiles, emulated ones elsewhere.
// needs: boost_context
#pragma once
#if defined(__CUDACC__)
#include <strata/cuda/machine/hardware.cuh>
#else
#include <strata/cuda/machine/emulated.hpp>
#endif
