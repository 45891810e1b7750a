// std::function and std::ref without the hash tables of <functional>, which take 0.05 s to compile with g++. A standard library
// that does not have them in a header of their own gives all of <functional>.
#pragma once
#if __has_include(<bits/std_function.h>)
#include <bits/std_function.h>
#include <new>
#else
#include <functional>
#endif
