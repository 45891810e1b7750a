// std::function and std::ref without the hash tables of <functional>, which take 0.05 s to compile with g++. The header that has
// them alone is private to libstdc++, so it is included in the version that it was tried with; others give all of <functional>.
#pragma once
#include <cstddef>  // for _GLIBCXX_RELEASE
#if defined(_GLIBCXX_RELEASE) && _GLIBCXX_RELEASE == 12
#include <bits/std_function.h>
#include <new>
#else
#include <functional>
#endif
