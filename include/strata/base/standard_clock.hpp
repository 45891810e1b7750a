// std::chrono's durations and clocks without the calendar of <chrono>, which takes 0.1 s to compile with g++. A standard library
// that does not have them in a header of their own gives all of <chrono>.
#pragma once
#if __has_include(<bits/chrono.h>)
#include <bits/chrono.h>
#else
#include <chrono>
#endif
