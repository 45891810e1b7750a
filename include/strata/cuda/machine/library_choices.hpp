// The algorithms of libraries that were chosen: each is chosen by one measurement, is the same on all devices of a process, and
// is kept in a file for later processes.
#pragma once
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <map>
#include <mutex>
#include <span>
#include <strata/base/environment.hpp>
#include <strata/base/text.hpp>
#include <strata/cuda/machine/errors.hpp>
#include <strata/io/atomic_file.hpp>
#include <strata/io/cache_folder.hpp>
#include <strata/io/crc32c.hpp>
#include <strata/io/file_descriptor.hpp>
#include <strata/io/file_lock.hpp>
#include <strata/io/open_file.hpp>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

namespace strata::machine {

/// The choice for each description. A file of choices has a line "description<tab>choice" for each, between a first line and a
/// checksum. A damaged file is ignored with a message to stderr and replaced; one that cannot be written is ignored, and so is a
/// file of something else, which stays as it is. While a process chooses, others that use the file wait for up to a minute, and
/// then use its choices.
class library_choices {
  std::recursive_mutex mutex_;
  std::map<std::string, std::string, std::less<>> chosen_;
  std::filesystem::path file_ = usual_file();
  bool is_read_ = false, is_damaged_ = false, may_write_ = true;
  std::chrono::milliseconds patience_ = usual_patience;

  static constexpr std::chrono::milliseconds usual_patience = std::chrono::minutes(1);
  static constexpr std::string_view title = "choices of CUDA libraries, format 1\n", last_line = "crc32c ";

 public:
  static library_choices& the() {
    static library_choices one;
    return one;
  }
  /// A choice that this process keeps for itself: a device had no memory to measure the algorithms.
  static constexpr std::string_view none_for_now = "none for now";

  /// The choice for `what`. If there is none, or is_valid(choice) is false, it is made by choose(), one at a time. Where choose()
  /// lacks memory, no_memory_to_choose is thrown with `again` or, without it, none_for_now is the choice.
  template <class IsValid, class Choose>
  std::string find(const std::string& what, IsValid&& is_valid, Choose&& choose, std::function<void()> again) {
    const std::lock_guard locked(mutex_);
    if (!std::exchange(is_read_, true)) read();
    const auto is_known = [&] {
      const auto found = chosen_.find(what);
      return found != chosen_.end() && is_valid(found->second);
    };
    if (is_known()) return chosen_[what];
    const io::file_descriptor lock = lock_others_out();
    if (lock) read();
    if (is_known()) return chosen_[what];
    std::string made;
    try {
      made = one_line(choose());
    } catch (const out_of_device_memory& e) {
      if (again) throw_exception(no_memory_to_choose(e, std::move(again)));
      std::clog << "strata: no algorithm could be chosen, so a kernel of strata computes (" + what + "): " + e.what() + '\n';
      made = none_for_now;
    }
    chosen_[what] = made;
    write();
    return made;
  }
  /// Forgets all choices and uses this file from now on; an empty path: none. patience: how long to wait for another process that
  /// chooses.
  void use_file(const std::filesystem::path& file, std::chrono::milliseconds patience = usual_patience) {
    const std::lock_guard locked(mutex_);
    chosen_.clear(), file_ = file, is_read_ = is_damaged_ = false, may_write_ = true, patience_ = patience;
  }

 private:
  /// The file named by the environment variable STRATA_CUDA_CHOICES, or strata/cuda_choices in cache_folder(): $XDG_CACHE_HOME if
  /// it is an absolute path, otherwise ~/.cache. Emulated devices have no usual file.
  static std::filesystem::path usual_file() {
    if (std::getenv("STRATA_CUDA_CHOICES")) return strata::detail::environment_variable("STRATA_CUDA_CHOICES");
#if defined(__CUDACC__)
    if (const auto cache = strata::detail::cache_folder(); !cache.empty()) return cache / "strata/cuda_choices";
#endif
    return {};
  }
  /// A choice may be JSON, where a space means what a line break does.
  static std::string one_line(std::string text) {
    for (char& each : text)
      if (each == '\n' || each == '\r' || each == '\t') each = ' ';
    return text;
  }
  static std::string checksum_of(std::string_view text) {
    return strata::detail::formatted("crc32c %08x\n", unsigned(io::crc32c(std::as_bytes(std::span(text)))));
  }
  /// Adds the choices of the file; those that this process has made stay.
  void read() {
    if (file_.empty()) return;
    std::error_code ignored;
    if (!std::filesystem::exists(file_, ignored)) return;
    if (!std::filesystem::is_regular_file(file_, ignored)) return keep_none("\"" + file_.string() + "\" is not a file");
    std::ifstream in(file_, std::ios::binary);
    if (!in) return keep_none("\"" + file_.string() + "\" cannot be read");
    std::string text;
    try {
      text.resize(title.size());  // first: what follows in a file of something else may be too long
      in.read(text.data(), std::streamsize(text.size()));
      text.resize(std::size_t(in.gcount()));
      if (!text.empty() && text != title) return keep_none("\"" + file_.string() + "\" is not a file of choices");
      text.append(std::istreambuf_iterator<char>(in), {});
    } catch (const std::exception& e) {
      return keep_none("\"" + file_.string() + "\" cannot be read: " + e.what());
    }
    const std::size_t end = text.rfind(last_line);
    if (end == std::string::npos || text.substr(end) != checksum_of(std::string_view(text).substr(0, end))) {
      if (!std::exchange(is_damaged_, true))
        std::clog << "strata: " + file_.string() + " is damaged; algorithms are chosen again\n";
      return;
    }
    for (std::size_t at = title.size(); at < end;) {
      const std::size_t tab = text.find('\t', at), line = text.find('\n', at);
      if (tab >= line || line >= end) break;
      chosen_.emplace(text.substr(at, tab - at), text.substr(tab + 1, line - tab - 1));
      at = line + 1;
    }
  }
  void keep_none(const std::string& why) {
    if (std::exchange(may_write_, false)) std::clog << "strata: choices of algorithms are not saved: " + why + '\n';
  }
  /// Locks the file until the result is closed. If a wait takes too long, this process stops waiting and saves no choices.
  io::file_descriptor lock_others_out() {
    if (file_.empty() || !may_write_) return {};
    try {
      std::filesystem::create_directories(io::folder_of(file_));
      auto path = file_;
      path += ".lock";
      io::file_descriptor opened = io::open_own(path);
      const auto deadline = std::chrono::steady_clock::now() + patience_;
      while (!io::try_lock(opened) && errno == EWOULDBLOCK) {
        if (std::chrono::steady_clock::now() >= deadline) {
          keep_none("another process has not released the lock \"" + path.string() + "\"");
          break;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }
      return opened;
    } catch (const std::exception& e) {
      keep_none(e.what());
      return {};
    }
  }
  void write() {
    if (file_.empty() || !may_write_) return;
    std::string text(title);
    for (const auto& [what, how] : chosen_)
      if (how != none_for_now) text += what + '\t' + how + '\n';
    text += checksum_of(text);
    try {
      io::atomic_file to(file_);
      to.write(text);
      to.commit();
    } catch (const std::exception& e) {
      keep_none(e.what());
    }
  }
};

}  // namespace strata::machine
