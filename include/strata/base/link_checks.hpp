// Files that were compiled for different processors, or with and without STRATA_COMPILED, do not link into one program.
//
// Inline functions have different bodies with different flags, and the linker keeps one of each: such a program could compute
// wrong values. GNU ld and gold reject a name that is thread-local in one file only. A shared library has names of its own.
#pragma once
#include <strata/base/namespaces.hpp>

#ifdef _WIN32  // thread-local variables have other symbol names on Windows: all files link
#define STRATA_LINK_CHECK [[gnu::used]] inline
#else
#define STRATA_LINK_CHECK [[gnu::used, gnu::visibility("hidden")]] inline
#endif
namespace strata::core {
#if defined(__AVX__)
STRATA_LINK_CHECK thread_local int files_with_and_without_avx_do_not_link = 0;
#else
STRATA_LINK_CHECK int files_with_and_without_avx_do_not_link = 0;
#endif
#if defined(__AVX2__)
STRATA_LINK_CHECK thread_local int files_with_and_without_avx2_do_not_link = 0;
#else
STRATA_LINK_CHECK int files_with_and_without_avx2_do_not_link = 0;
#endif
#if defined(__FMA__)
STRATA_LINK_CHECK thread_local int files_with_and_without_fma_do_not_link = 0;
#else
STRATA_LINK_CHECK int files_with_and_without_fma_do_not_link = 0;
#endif
#if defined(__AVX512F__) && defined(__AVX512VL__) && defined(__AVX512BW__) && defined(__AVX512DQ__)
STRATA_LINK_CHECK thread_local int files_with_and_without_avx512_do_not_link = 0;
#else
STRATA_LINK_CHECK int files_with_and_without_avx512_do_not_link = 0;
#endif
#if defined(__AVX512BF16__)
STRATA_LINK_CHECK thread_local int files_with_and_without_avx512bf16_do_not_link = 0;
#else
STRATA_LINK_CHECK int files_with_and_without_avx512bf16_do_not_link = 0;
#endif
#if defined(STRATA_COMPILED)
STRATA_LINK_CHECK thread_local int files_with_and_without_STRATA_COMPILED_do_not_link = 0;
#else
STRATA_LINK_CHECK int files_with_and_without_STRATA_COMPILED_do_not_link = 0;
#endif
}  // namespace strata::core
#undef STRATA_LINK_CHECK
