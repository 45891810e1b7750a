// The state of a parameter server in a file: written whole or not at all, with the one before beside it; damage is noticed.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <exception>
#include <filesystem>
#include <iostream>
#include <span>
#include <strata/base/atomic_file.hpp>
#include <strata/data/crc32c.hpp>
#include <strata/data/mapped_file.hpp>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace strata {

struct snapshot_options {
  std::filesystem::path folder{};  // of all servers; empty: none are written
  std::chrono::milliseconds every = std::chrono::seconds(30);
  long updates = 0;  // also after so many gradients; 0: only by time
};

namespace detail {
/// A file of sections: length, bytes, and the CRC-32C of both.
class section_writer {
  atomic_file file_;

 public:
  explicit section_writer(const std::filesystem::path& path) : file_(path) {}
  void operator()(std::string_view bytes) {
    const std::uint64_t length = bytes.size();
    const std::uint32_t sums[] = {data::crc32c(std::as_bytes(std::span(&length, 1))),
                                  data::crc32c(std::as_bytes(std::span(bytes)))};
    file_.write(std::as_bytes(std::span(&length, 1)));
    file_.write(std::as_bytes(std::span(bytes)));
    file_.write(std::as_bytes(std::span(sums)));
  }
  void commit() { file_.commit(); }
};
/// Throws strata::error naming the file if a section is damaged or missing.
class section_reader {
  data::mapped_file file_;
  std::string name_;
  std::span<const std::byte> left_;

  void take(void* to, std::size_t bytes) {
    if (left_.size() < bytes) throw error(name_ + " is damaged: it ends too early");
    std::memcpy(to, left_.data(), bytes);
    left_ = left_.subspan(bytes);
  }

 public:
  explicit section_reader(const std::filesystem::path& path) : file_(path), name_(path.string()), left_(file_.bytes()) {}
  std::string_view operator()() {
    std::uint64_t length = 0;
    std::uint32_t sums[2] = {};
    take(&length, sizeof length);
    if (length > left_.size()) throw error(name_ + " is damaged: it ends too early");
    const std::span<const std::byte> bytes = left_.first(length);
    left_ = left_.subspan(length);
    take(sums, sizeof sums);
    if (sums[0] != data::crc32c(std::as_bytes(std::span(&length, 1))) || sums[1] != data::crc32c(bytes))
      throw error(name_ + " is damaged: a checksum is wrong");
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  bool is_at_end() const { return left_.empty(); }
};
}  // namespace detail

/// The snapshots of one server. A default-made object does nothing.
class parameter_snapshots {
  using clock = std::chrono::steady_clock;
  static constexpr std::string_view format = "strata parameter server, snapshot 2\n", end = "end";

  snapshot_options options_{};
  std::filesystem::path file_{}, previous_{}, unfinished_{};  // the last is a folder
  std::string program_{};
  clock::time_point saved_at_ = clock::now(), failed_until_{};
  long saved_changes_ = 0;
  bool saved_over_ = false;

 public:
  parameter_snapshots() = default;
  /// `program` says what is trained: a snapshot of something else is refused. Throws strata::error if there can be no such
  /// folder.
  parameter_snapshots(snapshot_options options, int server, std::string program)
      : options_(std::move(options)), program_(std::move(program)) {
    if (options_.folder.empty()) return;
    std::error_code failed;
    std::filesystem::create_directories(options_.folder, failed);
    if (failed) detail::fail_on_file("make", options_.folder, failed.value());
    const std::string name = "ps_" + std::to_string(server);
    file_ = options_.folder / (name + ".snapshot"), previous_ = options_.folder / (name + ".previous.snapshot");
    // Other servers write to the folder: what this one has left that was killed while it wrote stands apart.
    unfinished_ = options_.folder / (name + ".unfinished");
    std::filesystem::remove_all(unfinished_, failed);
  }

  /// Gives the store what it had when the newest undamaged snapshot was saved. Returns false if there is none.
  /// Throws strata::error if the snapshot is of another training.
  template <class Store>
  bool restore(Store& store) {
    if (file_.empty()) return false;
    for (const std::filesystem::path& file : {file_, previous_}) {
      std::error_code ignored;
      if (!std::filesystem::exists(file, ignored)) continue;
      std::string program;
      try {
        detail::section_reader check(file);
        program = check();
        std::string_view last;
        while (!check.is_at_end()) last = check();
        if (last != end) throw error(file.string() + " is damaged: it ends too early");
      } catch (const error& e) {
        std::clog << std::string(e.what()) + (file == file_ ? "; the one before is taken\n" : "\n");
        continue;
      }
      if (program != std::string(format) + program_)
        throw error(file.string() + " is of another training: it says '" + program.substr(program.find('\n') + 1) +
                    "', this process '" + program_ + "'");
      detail::section_reader read(file);
      read();
      if (!store.restore(read)) throw error(file.string() + " is of another training: its shards are others");
      return true;
    }
    return false;
  }

  /// Says so on std::clog if it cannot be written: the training goes on, and it is tried again after `every`.
  template <class Store>
  void save_when_due(const Store& store) {
    if (file_.empty()) return;
    const long changes = store.changes();
    const bool over = store.chief_has_left();
    if (changes == saved_changes_ && over == saved_over_) return;
    const long gradients = (changes - saved_changes_) / std::max(1, store.shards());
    const auto now = clock::now();
    if (now < failed_until_) return;
    if (over == saved_over_ && now - saved_at_ < options_.every &&
        (options_.updates <= 0 || gradients < options_.updates))
      return;
    saved_at_ = now;
    std::error_code ignored;  // there may be none yet
    try {
      std::filesystem::create_directory(unfinished_);
      const std::filesystem::path beside = unfinished_ / file_.filename();
      detail::section_writer write(beside);
      write(std::string(format) + program_);
      store.save(write);
      write(end);
      write.commit();
      std::filesystem::rename(file_, previous_, ignored);
      std::filesystem::rename(beside, file_);
      saved_changes_ = changes, saved_over_ = over;
    } catch (const std::exception& e) {
      failed_until_ = now + options_.every;
      std::clog << "no snapshot of the parameters is saved: " + std::string(e.what()) + '\n';
    }
    std::filesystem::remove_all(unfinished_, ignored);
  }

  /// When the training has ended well: the next one begins anew.
  void remove() noexcept {
    std::error_code ignored;
    for (const std::filesystem::path& file : {previous_, file_})
      if (!file.empty()) std::filesystem::remove(file, ignored);
    if (!unfinished_.empty()) std::filesystem::remove_all(unfinished_, ignored);
  }
};

}  // namespace strata
