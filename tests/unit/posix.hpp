// Processes, limits, links and pipes, for the tests that need them. Where STRATA_TEST_POSIX is not defined, as on Windows, there
// are none.
#pragma once
#include <csignal>
#if __has_include(<sys/wait.h>)
#define STRATA_TEST_POSIX
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#endif
