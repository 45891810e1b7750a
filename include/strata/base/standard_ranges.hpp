// The concepts and types of ranges without the views of <ranges>, which take 0.05 s to compile with g++. In libstdc++ 12 they
// come with the algorithms and spans that take ranges; other libraries and versions give all of <ranges>.
#pragma once
#include <algorithm>
#include <span>
#if !defined(_GLIBCXX_RELEASE) || _GLIBCXX_RELEASE != 12
#include <ranges>
#endif
