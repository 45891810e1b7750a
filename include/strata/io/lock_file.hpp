// A file that a process keeps locked while it uses the files beside it.
#pragma once
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <strata/base/error.hpp>
#include <strata/base/text.hpp>
#include <strata/io/file_descriptor.hpp>
#include <strata/io/file_lock.hpp>
#include <strata/io/open_file.hpp>
#include <strata/io/os.hpp>
#include <strata/io/without_size_signal.hpp>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>

namespace strata::io {

/// Holds a lock on the file until the object is destroyed or the process ends: the system releases the lock of a killed process.
/// The file contains the process and the host that hold it; it is removed when the lock is released. If the file system does not
/// support locks, one line on standard error reports it and nothing is locked; the object does not try again.
class lock_file {
  std::filesystem::path path_;
  file_descriptor file_;
  bool cannot_be_locked_ = false;

 public:
  lock_file() = default;
  lock_file(const lock_file&) = delete;
  lock_file& operator=(const lock_file&) = delete;
  ~lock_file() { release(); }

  explicit operator bool() const { return bool(file_); }

  /// Waits a while for a holder that is about to end. If the file stays locked, throws strata_error, for example
  /// "/data/backup is in use by process 4711 on node3: give each training a folder of its own". Throws also if the file cannot be
  /// made, or is a link or a pipe. `used` is the shared folder or file.
  void hold(const std::filesystem::path& path, const std::filesystem::path& used, std::string_view advice,
            std::chrono::milliseconds patience = std::chrono::seconds(2)) {
    if (file_ || cannot_be_locked_) return;
    path_ = path;
    for (const auto until = std::chrono::steady_clock::now() + patience;;) {
      file_descriptor opened = open_own(path_);
      const int code = try_lock(opened) ? 0 : errno;
      if (code == EWOULDBLOCK) {
        if (std::chrono::steady_clock::now() >= until)
          throw_error({used.string(), " is in use by ", holder(opened), ": ", advice});
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        continue;
      }
      if (code != 0) {
        std::fputs(strata::detail::text_of({used.string(), " cannot be locked (", std::generic_category().message(code),
                                            "): two trainings could use it at once\n"})
                       .c_str(),
                   stderr);
        os::remove(path_);
        cannot_be_locked_ = true;
        return;
      }
      if (!is_still_at(opened, path_)) continue;                   // its last holder has removed it meanwhile
      if (has_second_name(opened) && os::remove(path_)) continue;  // a second name, as after `cp -al`: the copy stays as it is
      write_holder(opened);
      file_ = std::move(opened);
      return;
    }
  }
  void release() noexcept {
    if (file_) os::remove(path_);  // while the lock is held, so that the file of the next holder is not removed
    file_ = {};
  }

 private:
  static void write_holder(const file_descriptor& opened) {
    const std::string text = strata::detail::text_of({"process ", os::process_id(), " on ", os::host_name()});
    const without_size_signal guard;
    os::make_empty(opened.number());
    os::write_at(opened.number(), text.data(), text.size(), 0);  // on a full disk the lock is held without this text
  }
  static bool has_second_name(const file_descriptor& opened) {
    os::file_status status;
    return os::get_status(opened.number(), status) && status.names > 1;
  }
  static std::string holder(const file_descriptor& opened) {
    std::array<char, 300> text{};
    const std::ptrdiff_t n = os::read_at(opened.number(), text.data(), text.size(), 0);
    if (n <= 0) return "another process";
    return strata::detail::visible({text.data(), std::size_t(n)});
  }
};

}  // namespace strata::io
