// Snapshot files of a parameter server: written whole or not at all, with checksums; the one before is kept. Needs protozero.
// needs: protozero
#pragma once
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <exception>
#include <filesystem>
#include <iostream>
#include <memory>
#include <span>
#include <strata/base/text.hpp>
#include <strata/io/atomic_file.hpp>
#include <strata/io/crc32c.hpp>
#include <strata/io/file_error.hpp>
#include <strata/io/lock_file.hpp>
#include <strata/io/mapped_file.hpp>
#include <strata/io/snapshot_files.hpp>
#include <strata/parameter_server/snapshot_codec.hpp>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace strata {

struct snapshot_options {
  std::filesystem::path folder{};  // may be shared by all servers; empty: no snapshots
  std::chrono::milliseconds every = std::chrono::seconds(30);
  long updates = 0;  // also after that many gradients; 0: only by time
};

namespace detail {
/// A file of sections. Each is its length (8 bytes), its bytes, and the CRC-32C of length and bytes.
class section_writer {
  io::atomic_file file_;

 public:
  explicit section_writer(const std::filesystem::path& path)
      : file_(path, io::unfinished_file::unnamed, io::existing_link::replaced) {}
  void operator()(std::string_view bytes) {
    const std::uint64_t length = bytes.size();
    const std::uint32_t sums[] = {io::crc32c(std::as_bytes(std::span(&length, 1))), io::crc32c(std::as_bytes(std::span(bytes)))};
    file_.write(std::as_bytes(std::span(&length, 1)));
    file_.write(std::as_bytes(std::span(bytes)));
    file_.write(std::as_bytes(std::span(sums)));
  }
  void commit() { file_.commit(); }
};
/// Throws strata_error naming the file if a section is damaged or missing.
class section_reader {
  io::mapped_file file_;
  std::string name_;
  std::span<const std::byte> left_;

  void take(void* to, std::size_t bytes) {
    if (left_.size() < bytes) throw_error({name_, " is damaged: the file ends too early"});
    std::memcpy(to, left_.data(), bytes);
    left_ = left_.subspan(bytes);
  }

 public:
  explicit section_reader(const std::filesystem::path& path) : file_(path), name_(path.string()), left_(file_.bytes()) {}
  std::string_view operator()() {
    std::uint64_t length = 0;
    std::uint32_t sums[2] = {};
    take(&length, sizeof length);
    if (length > left_.size()) throw_error({name_, " is damaged: the file ends too early"});
    const std::span<const std::byte> bytes = left_.first(length);
    left_ = left_.subspan(length);
    take(sums, sizeof sums);
    if (sums[0] != io::crc32c(std::as_bytes(std::span(&length, 1))) || sums[1] != io::crc32c(bytes))
      throw_error({name_, " is damaged: a checksum is wrong"});
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  bool is_at_end() const { return left_.empty(); }
};
}  // namespace detail

namespace core {
/// The snapshots of one server. A default-constructed object does nothing.
class parameter_snapshots {
  using clock = std::chrono::steady_clock;
  static constexpr std::string_view format = "strata parameter server, snapshot 4\n", end = "end";

  snapshot_options options_{};
  io::snapshot_files files_{};
  std::unique_ptr<io::lock_file> lock_{};
  std::string program_{};
  clock::time_point saved_at_ = clock::now(), failed_until_{};
  long saved_changes_ = 0;
  bool saved_over_ = false;

 public:
  parameter_snapshots() = default;
  /// `program` describes what is trained; a snapshot of another program is refused. Throws strata_error if the folder
  /// cannot be made.
  parameter_snapshots(snapshot_options options, int server, std::string program)
      : options_(std::move(options)), program_(std::move(program)) {
    if (options_.folder.empty()) return;
    std::error_code failed;
    std::filesystem::create_directories(options_.folder, failed);
    if (failed) io::fail_on_file("make", options_.folder, failed.value());
    files_ = io::snapshot_files(options_.folder / detail::text_of({"ps_", server, ".snapshot"}));
  }

  /// Until this object ends, another server with the same snapshots, in any process, is an error with the names of both. Throws
  /// strata_error in the later one.
  void hold() {
    if (files_.newest().empty()) return;
    lock_ = std::make_unique<io::lock_file>();
    files_.hold(*lock_, files_.newest());
  }

  /// Restores the newest undamaged snapshot. Returns false if there is none. A line on std::clog names files that cannot be read.
  /// Throws strata_error if the snapshot is of another training.
  template <class Store>
  bool restore(Store& store) {
    if (files_.newest().empty()) return false;
    const auto [file, damages] = files_.recover([&](const std::filesystem::path& each) { return damage_of(each); });
    if (file.empty()) {
      if (!damages.empty()) std::clog << detail::text_of({damages, "; no snapshot is left to continue from\n"});
      return false;
    }
    detail::section_reader read(file);
    const std::string_view program = read();
    if (program != detail::text_of({format, program_}))
      throw_error({file.string(), " belongs to another training: it has '", program.substr(program.find('\n') + 1),
                   "', this process '", program_, "'"});
    try {
      if (detail::restore_snapshot(store, read)) {
        if (!damages.empty()) std::clog << detail::text_of({damages, "; the parameters are those of ", file.string(), '\n'});
        return true;
      }
    } catch (const wire::malformed_message& e) {
      throw_error({file.string(), ": ", e.what()});
    }
    throw_error({file.string(), " belongs to another training: its shards are different"});
  }

  /// True if there are changes to save, and it is time.
  template <class Store>
  bool is_due(const Store& store) const {
    if (files_.newest().empty()) return false;
    const long changes = store.changes();
    const bool over = store.chief_has_left();
    if (changes == saved_changes_ && over == saved_over_) return false;
    const long gradients = (changes - saved_changes_) / std::max(1, store.shards());
    const auto now = clock::now();
    return now >= failed_until_ &&
           (over != saved_over_ || now - saved_at_ >= options_.every || (options_.updates > 0 && gradients >= options_.updates));
  }
  /// If the snapshot cannot be written, writes that to std::clog and retries after `every`; the training continues.
  template <class Store>
  void save_when_due(const Store& store) {
    if (!is_due(store)) return;
    const long changes = store.changes();
    const bool over = store.chief_has_left();
    const auto now = saved_at_ = clock::now();
    try {
      detail::section_writer write(files_.unfinished());
      write(detail::text_of({format, program_}));
      detail::save_snapshot(store, write);
      write(end);
      write.commit();
      files_.replace();
      saved_changes_ = changes, saved_over_ = over;
    } catch (const std::exception& e) {
      failed_until_ = now + options_.every;
      std::clog << detail::text_of({"the snapshot of the parameters could not be saved: ", e.what(), '\n'});
      files_.remove_unfinished();
    }
  }

  /// Called after the training has ended regularly, so that the next one starts from scratch.
  void remove() noexcept {
    if (!files_.newest().empty()) files_.remove_all();
  }

 private:
  /// A message about the damage; empty if all sections are as they were written.
  static std::string damage_of(const std::filesystem::path& file) {
    try {
      detail::section_reader check(file);
      std::string_view last;
      while (!check.is_at_end()) last = check();
      return last == end ? "" : detail::text_of({file.string(), " is damaged: the file ends too early"});
    } catch (const strata_error& e) {
      return e.what();
    }
  }
};
}  // namespace core

}  // namespace strata
