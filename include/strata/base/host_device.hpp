// Functions that kernels of any device may call.
#pragma once

/// Marks functions that are generic over their value, such as rules of optimizers, losses, metrics and activations: nvcc compiles
/// them for host and device, other compilers see nothing.
#if defined(__CUDACC__)
#define STRATA_HOST_DEVICE __host__ __device__
#else
#define STRATA_HOST_DEVICE
#endif
