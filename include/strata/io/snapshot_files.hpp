// The newest version of a file and the one before it: whenever the process is killed, one of them is whole.
#pragma once
#include <cerrno>
#include <filesystem>
#include <strata/base/text.hpp>
#include <strata/io/durable_rename.hpp>
#include <strata/io/file_error.hpp>
#include <strata/io/lock_file.hpp>
#include <strata/io/os.hpp>
#include <string>
#include <system_error>
#include <utility>

namespace strata::io {

/// The files beside snapshot.safetensors: snapshot.previous.safetensors, the one before; snapshot.new.safetensors, which is being
/// written; snapshot.damaged.safetensors, which could not be read; and snapshot.lock, which the training holds.
///
/// A new version is written completely as unfinished(), then replace() makes it the newest. A version that is damaged never takes
/// the place of the one before: recover() sets it aside. So whenever the process is killed, and again while it is restored, a
/// version is left that can be read.
class snapshot_files {
  std::filesystem::path newest_;

  std::filesystem::path beside(const std::string& word) const {
    return newest_.parent_path() / (newest_.stem().string() + '.' + word + newest_.extension().string());
  }

 public:
  snapshot_files() = default;
  explicit snapshot_files(std::filesystem::path newest) : newest_(std::move(newest)) {}

  const std::filesystem::path& newest() const { return newest_; }
  std::filesystem::path previous() const { return beside("previous"); }
  std::filesystem::path unfinished() const { return beside("new"); }
  std::filesystem::path damaged() const { return beside("damaged"); }

  /// Throws strata_error if another training holds the lock; `used` is named in that error.
  void hold(lock_file& lock, const std::filesystem::path& used) const {
    lock.hold(newest_.parent_path() / (newest_.stem().string() + ".lock"), used, "give each training a folder of its own");
  }

  struct recovered {
    std::filesystem::path file{};  // the newest that is whole; empty: there is none
    std::string damages{};         // damages of newer versions
  };
  /// Finds the newest version that is whole. Removes the unfinished version, unless it is a folder with something in it. If the
  /// newest is damaged and the one before is whole, it renames the newest to damaged(), where it replaces an older damaged one;
  /// if both are damaged, they stay. `damage_of(file)` returns a message about the damage of an existing file; "" if there is
  /// none.
  template <class F>
  recovered recover(F&& damage_of) {
    remove_unfinished();
    recovered result;
    for (const std::filesystem::path& file : {newest_, previous()}) {
      std::error_code unknown;
      if (!std::filesystem::exists(file, unknown)) continue;
      const std::string damage = damage_of(file);
      if (!damage.empty()) {
        result.damages += strata::detail::text_of({result.damages.empty() ? "" : ", and ", damage});
        continue;
      }
      if (!result.damages.empty()) {  // otherwise replace() would replace the good version by the damaged one
        remove(damaged());
        rename_durably(newest_, damaged());
      }
      result.file = file;
      break;
    }
    return result;
  }

  /// Replaces the newest version by the unfinished one, which is complete. The newest becomes the previous one.
  void replace() {
    if (!os::rename(newest_, previous()) && errno != ENOENT) fail_on_file("write", previous(), errno);
    rename_durably(unfinished(), newest_);
  }

  void remove_unfinished() noexcept { remove(unfinished()); }
  /// Removes all versions after the training has ended normally.
  void remove_all() noexcept {
    for (const std::filesystem::path& file : {unfinished(), previous(), newest_}) remove(file);
  }

 private:
  static void remove(const std::filesystem::path& file) noexcept {
    std::error_code ignored;
    std::filesystem::remove(file, ignored);
  }
};

}  // namespace strata::io
