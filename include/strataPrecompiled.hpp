// What is precompiled for a program: docs/compile_time.md. Without #pragma once, about which g++ warns in a precompiled header.
#include <strata/strata.hpp>
