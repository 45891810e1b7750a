// Two ways to be included. By default everything is in the headers. With STRATA_COMPILED, what does not depend on a network is
// only declared, and is linked from the library in compiled/: docs/compile_time.md.
#pragma once
#include <strata/base/link_checks.hpp>

#ifdef STRATA_COMPILED
/// Before a function that is defined in a .ipp file.
#define STRATA_FUNCTION
/// Before such a function that is called in each step.
#define STRATA_STEP_FUNCTION
#else
#define STRATA_FUNCTION __attribute__((cold)) inline
#define STRATA_STEP_FUNCTION inline
#endif

/// Whether headers include their .ipp files: in a program without the library, and in the library itself.
#if !defined(STRATA_COMPILED) || defined(STRATA_LIBRARY)
#define STRATA_DEFINES 1
#else
#define STRATA_DEFINES 0
#endif
