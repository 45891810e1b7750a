// std::thread without std::jthread's stop tokens and semaphores in <thread>, which take 0.03 s to compile with g++. A standard
// library that does not have it in a header of its own gives all of <thread>.
#pragma once
#if __has_include(<bits/std_thread.h>) && __has_include(<bits/this_thread_sleep.h>)
#include <bits/std_thread.h>
#include <bits/this_thread_sleep.h>
#else
#include <thread>
#endif
