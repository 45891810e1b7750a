// An open file, socket or process, which is closed by the end of its owner.
#pragma once
#include <cerrno>
#include <strata/io/os.hpp>
#include <utility>

namespace strata::io {

/// An open file, which the destructor closes.
class file_descriptor {
  int number_ = -1;

 public:
  file_descriptor() = default;
  explicit file_descriptor(int number) : number_(number) {}
  file_descriptor(file_descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  file_descriptor& operator=(file_descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~file_descriptor() {
    if (number_ >= 0) os::close(number_);
  }
  int number() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }
  /// Leaves the file open, for another owner.
  int release() && { return std::exchange(number_, -1); }
  /// Returns 0 or the error code: some file systems report a failed write only here.
  int close() { return os::close(std::exchange(number_, -1)) ? 0 : errno; }
};

}  // namespace strata::io
