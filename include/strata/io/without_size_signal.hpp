// Writes beyond the limit of file sizes are errors instead of a signal.
#pragma once
#if __has_include(<sys/resource.h>)
#include <pthread.h>
#include <sys/resource.h>
#endif

#include <cerrno>
#include <csignal>
#include <ctime>

namespace strata::io {

/// For its lifetime, a write beyond the process' limit of file sizes (ulimit -f) fails with EFBIG. Otherwise the system would end
/// the process with SIGXFSZ. Keeps errno.
class without_size_signal {
#ifdef SIGXFSZ
  sigset_t before_{};
  bool active_ = false;

  static sigset_t only_that() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGXFSZ);
    return set;
  }
  static void take_pending() {
    const sigset_t set = only_that();
#ifdef __APPLE__  // which has no sigtimedwait
    sigset_t pending;
    int taken = 0;
    if (sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1) (void)sigwait(&set, &taken);
#else
    const timespec at_once{};
    while (::sigtimedwait(&set, nullptr, &at_once) < 0 && errno == EINTR) {
    }
#endif
  }

 public:
  without_size_signal() {
    struct rlimit most{};
    if (::getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur == RLIM_INFINITY) return;
    const sigset_t set = only_that();
    sigset_t pending;
    sigpending(&pending);
    active_ = sigismember(&pending, SIGXFSZ) == 0 && ::pthread_sigmask(SIG_BLOCK, &set, &before_) == 0;
  }
  without_size_signal(const without_size_signal&) = delete;
  without_size_signal& operator=(const without_size_signal&) = delete;
  ~without_size_signal() {
    if (!active_) return;
    const int code = errno;
    take_pending();
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = code;
  }
#else
 public:
  without_size_signal() {}
#endif
};

}  // namespace strata::io
