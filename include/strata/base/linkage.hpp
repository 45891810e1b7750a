// Two ways to include strata. By default everything is in the headers. With STRATA_COMPILED, functions that do not depend on a
// network are only declared, and are linked from the library in compiled/: docs/compile_time.md.
#pragma once
#include <strata/base/link_checks.hpp>

#ifdef STRATA_COMPILED
/// Marks a function that is defined in a .ipp file.
#define STRATA_FUNCTION
/// Marks such a function that is called in each step.
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
