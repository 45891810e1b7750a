// Counts damage that readers have skipped.
#pragma once
#include <atomic>
#include <cstddef>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace strata::data {

/// Counts damage each time it is read, that is, once per epoch. Readers in several threads may share a report.
class damage_report {
 public:
  /// Records with a wrong checksum; the records after them were read.
  std::size_t records() const { return records_; }
  /// Files that could not be read to their end.
  std::size_t files_cut_short() const { return files_; }
  /// Samples that could not be made and that ignore_errors has left out.
  std::size_t samples() const { return samples_; }
  /// A message about each of the first hundred, with file, record and byte.
  std::vector<std::string> messages() const {
    const std::lock_guard lock(mutex_);
    return messages_;
  }

  void add_record(std::string message) { add(records_, std::move(message)); }
  void add_sample(std::string message) { add(samples_, std::move(message)); }
  void add_file(std::string message) { add(files_, std::move(message)); }

 private:
  void add(std::atomic<std::size_t>& count, std::string message) {
    ++count;
    const std::lock_guard lock(mutex_);
    if (messages_.size() < 100) messages_.push_back(std::move(message));
  }

  std::atomic<std::size_t> records_ = 0, samples_ = 0, files_ = 0;
  mutable std::mutex mutex_;
  std::vector<std::string> messages_;
};

}  // namespace strata::data
