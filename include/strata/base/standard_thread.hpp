// std::thread without std::jthread's stop tokens and semaphores in <thread>, which take 0.03 s to compile with g++. The headers
// that have it alone are private to libstdc++, so they are included in the version that they were tried with; others give all of
// <thread>.
#pragma once
#include <cstddef>  // for _GLIBCXX_RELEASE
#if defined(_GLIBCXX_RELEASE) && _GLIBCXX_RELEASE == 12
#include <bits/std_thread.h>
#include <bits/this_thread_sleep.h>
#else
#include <thread>
#endif
