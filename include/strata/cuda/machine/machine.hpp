// Kernels, memory and queues of a GPU: those of CUDA where nvcc compiles, emulated ones elsewhere.
// needs: boost_context
#pragma once
#if defined(__CUDACC__)
#include <strata/cuda/machine/hardware.cuh>
#else
#include <strata/cuda/machine/emulated.hpp>
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
