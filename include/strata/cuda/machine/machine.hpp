// Kernels, memory and queues of a GPU: those of CUDA where nvcc compiles. Other compilers get emulated ones, for tests, if the
// folder strata_emulated_cuda beside strata is an include path.
#pragma once
#if defined(__CUDACC__)
#include <strata/cuda/machine/hardware.cuh>
#else
#include <strata/cuda/machine/emulated.hpp>  // GPUs need nvcc or, emulated, -I strata/include/strata_emulated_cuda: docs/cuda.md
#endif

namespace strata::machine {
// Inline functions of both kinds of files have the same names but different bodies. A program of both does not link: GNU ld
// and gold refuse a name that is thread-local in one file only.
#if defined(__CUDACC__)
[[gnu::used]] inline int a_program_mixes_files_of_nvcc_and_of_other_compilers = 0;
#else
[[gnu::used]] inline thread_local int a_program_mixes_files_of_nvcc_and_of_other_compilers = 0;
#endif
}  // namespace strata::machine
