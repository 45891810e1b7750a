// std::chrono's durations and clocks without the calendar of <chrono>, which takes 0.1 s to compile with g++. The header that has
// them alone is private to libstdc++, so it is included in the version that it was tried with; others give all of <chrono>.
#pragma once
#include <cstddef>  // for _GLIBCXX_RELEASE
#if defined(_GLIBCXX_RELEASE) && _GLIBCXX_RELEASE == 12
#include <bits/chrono.h>
#else
#include <chrono>
#endif
