// gRPC's own lines on standard error: a few per minute, written without blocking. Needs gRPC.
// needs: grpc
#pragma once
#include <grpc/support/log.h>
#include <grpcpp/version_info.h>
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <climits>
#include <mutex>
#include <strata/base/text.hpp>
#include <string>

namespace strata::detail {

/// Passes on the first lines of each minute. A full pipe that is not read would stop the threads that answer the training.
class line_limit {
  using time = std::chrono::steady_clock::time_point;
  std::mutex mutex_;
  time minute_{};
  int passed_ = 0;
  long dropped_ = 0;

 public:
  static constexpr int lines_per_minute = 10;

  /// The text to print; empty: none. It has the number of lines that were left out before.
  std::string pass(const std::string& line, time now) {
    if (minute_ == time{} || now - minute_ >= std::chrono::minutes(1)) minute_ = now, passed_ = 0;
    if (passed_ == lines_per_minute) return ++dropped_, "";
    ++passed_;
    const std::string before =
        dropped_ > 0 ? text_of({"gRPC: ", dropped_, dropped_ == 1 ? " line was omitted\n" : " lines were omitted\n"}) : "";
    dropped_ = 0;
    return before + visible(line.substr(0, 300)) + '\n';
  }
  /// Prints to `file` what is passed, unless the file is full or another thread prints at the moment.
  void print(int file, const std::string& line, time now) {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) return;
    const std::string text = pass(line, now);
    ::pollfd out{file, POLLOUT, 0};
    if (!text.empty() && text.size() <= PIPE_BUF && ::poll(&out, 1, 0) == 1 && (out.revents & POLLOUT))
      (void)!::write(file, text.data(), text.size());
  }
};

/// Active from the first connection of the process on. Lines of other libraries are not affected.
inline void limit_grpc_log() {
#if GRPC_CPP_VERSION_MAJOR == 1 && GRPC_CPP_VERSION_MINOR < 66  // later ones log through Abseil
  [[maybe_unused]] static const bool is_limited = [] {
    ::gpr_set_log_function([](::gpr_log_func_args* a) {
      static line_limit limit;
      limit.print(STDERR_FILENO, text_of({"gRPC: ", a->message}), std::chrono::steady_clock::now());
    });
    return true;
  }();
#endif
}

}  // namespace strata::detail
