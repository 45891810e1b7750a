// A record of a TFRecord file, in the form of a reader and in that of a pipeline.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <strata/data/core/sample.hpp>
#include <string>
#include <vector>

namespace strata::data {

/// The bytes of a record, valid until the next one is read, and their position.
struct tf_record_bytes {
  std::span<const std::byte> bytes;
  std::shared_ptr<const std::filesystem::path> file;
  std::uint64_t number = 0, offset = 0;  // within this file, from 0; the offset counts decompressed bytes

  operator std::span<const std::byte>() const { return bytes; }
};

/// A record stored by a pipeline for as long as it is needed.
class tf_record_element {
 public:
  tf_record_element() = default;
  tf_record_element(const tf_record_bytes& record) { *this = record; }
  tf_record_element& operator=(const tf_record_bytes& record) {
    bytes_.assign(record.bytes.begin(), record.bytes.end());  // usually into the memory of an older record
    if (file_ != record.file) file_ = record.file;
    number_ = record.number;
    offset_ = record.offset;
    return *this;
  }

  std::span<const std::byte> bytes() const { return bytes_; }
  operator std::span<const std::byte>() const { return bytes_; }
  const std::filesystem::path& file() const { return *file_; }
  std::uint64_t number() const { return number_; }
  std::uint64_t offset() const { return offset_; }
  /// The record's name for errors of later stages.
  std::string describe() const { return "record " + std::to_string(number_) + " of " + file_->string(); }

 private:
  std::vector<std::byte> bytes_;
  std::shared_ptr<const std::filesystem::path> file_;
  std::uint64_t number_ = 0, offset_ = 0;
};

template <>
struct detail::stored<tf_record_bytes> {
  using type = tf_record_element;
};

}  // namespace strata::data
