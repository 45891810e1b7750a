// The version of strata, for programs that compile with several: #if STRATA_VERSION >= 200. docs/changelog.md says what each has
// changed.
#pragma once

/// 10000 * major + 100 * minor + patch.
#define STRATA_VERSION 100
#define STRATA_VERSION_STRING "0.1.0"
