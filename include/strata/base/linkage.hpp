// Two ways to be included. By default everything is in the headers. With STRATA_COMPILED, what does not depend on a network is
// only declared, and is linked from the library in compiled/: docs/compile_time.md.
#pragma once

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

// With and without the library, a name is an inline function or a declaration. A program, or a shared library, with both kinds of
// files does not link: linkers refuse a name that is thread-local in one file only.
namespace strata {
#ifdef STRATA_COMPILED
[[gnu::used, gnu::visibility("hidden")]] inline thread_local int files_with_and_without_STRATA_COMPILED_do_not_link = 0;
#else
[[gnu::used, gnu::visibility("hidden")]] inline int files_with_and_without_STRATA_COMPILED_do_not_link = 0;
#endif
}  // namespace strata
