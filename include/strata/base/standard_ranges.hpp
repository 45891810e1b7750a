// The concepts and types of ranges without the views of <ranges>, which take 0.05 s to compile with g++. In libstdc++ they come
// with the algorithms and spans that take ranges.
#pragma once
#include <algorithm>
#include <span>
#ifndef __GLIBCXX__
#include <ranges>
#endif
