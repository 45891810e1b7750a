// Reads and checks the records of TFRecord files, in order. Needs zlib (-lz).
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <strata/base/error.hpp>
#include <strata/data/core/damage_report.hpp>
#include <strata/data/core/single_pass.hpp>
#include <strata/data/formats/file_list.hpp>
#include <strata/data/formats/tf_record_element.hpp>
#include <strata/io/crc32c.hpp>
#include <strata/io/file_window.hpp>
#include <string>
#include <utility>

namespace strata::data {

using io::compression;

struct tf_record_options {
  data::compression compression = data::compression::none;
  bool check_crc = true;
  bool skip_damaged = false;                // count damaged records and continue after them, instead of an error
  std::shared_ptr<damage_report> damage{};  // counts them; none: each reader has its own report
  std::uint64_t max_record_bytes = std::uint64_t{256} << 20;                // limit for one record
  std::uint64_t max_compression_ratio = io::default_max_compression_ratio;  // bytes of records for each byte of a compressed file
};

/// The records of some files, one file after the other, as an input range. begin() goes to the first record.
///
///     for (const data::tf_record_bytes& record : data::tf_record_reader("train.tfrecord")) ...
///
/// Throws strata_error, naming the file, if it cannot be read; and, with the number and the offset of the record, if a
/// checksum is wrong, the file ends within the record, the length cannot be right, or the limits of the options are exceeded.
/// With skip_damaged such a record is skipped; if the length or the compressed data are damaged, later records cannot be found,
/// and the rest of the file is skipped. A file that cannot be opened is always an error. Nothing is allocated once the largest
/// record has been read. A reader that has been moved must begin again. https://www.tensorflow.org/tutorials/load_data/tfrecord
class tf_record_reader : public detail::single_pass<tf_record_reader> {
  friend detail::single_pass<tf_record_reader>;

 public:
  explicit tf_record_reader(file_list files, tf_record_options options = {})
      : files_(std::move(files)), options_(std::move(options)) {
    if (files_.size() == 0) throw_error("tf_record: there are no files to read");
    if (!options_.damage) options_.damage = std::make_shared<damage_report>();
  }

  const file_list& files() const { return files_; }
  const damage_report& damage() const { return *options_.damage; }

 private:
  static constexpr std::size_t header = 12, footer = 4;  // length and its checksum; checksum of the bytes

  file_list files_;
  tf_record_options options_;
  io::file_window window_;
  std::size_t file_ = 0, used_ = 0;  // used_: size of the last record in the window
  tf_record_bytes record_;
  bool done_ = true;

  void start() {
    window_.close();
    file_ = 0;
    next();
  }
  const tf_record_bytes& read() const { return record_; }
  bool done() const { return done_; }

  void next() {
    done_ = true;  // also if it throws
    for (; file_ < files_.size(); ++file_) {
      const std::filesystem::path& path = files_[file_];
      if (window_.is_open()) {
        ++record_.number;
      } else {
        window_.open(path, options_.compression, options_.max_compression_ratio);
        record_ = {.bytes = {}, .file = std::make_shared<const std::filesystem::path>(path)};
        used_ = 0;
      }
      if (read_record()) {
        done_ = false;
        return;
      }
      window_.close();
    }
  }

  /// Reads the next undamaged record of the open file. False at its end.
  bool read_record() {
    for (;; ++record_.number) {
      window_.skip(std::exchange(used_, 0));
      record_.offset = window_.offset();
      const std::span<const std::byte> head = window_.peek(header);
      if (head.empty() && window_.damage().empty()) return false;
      if (head.size() < header) return lose_rest(damage_or("the file ends within its header"));
      const std::uint64_t length = little_endian(head.first(8));
      if (options_.check_crc && io::masked_crc32c(head.first(8)) != little_endian(head.subspan(8)))
        return lose_rest("the checksum of its length is wrong, so no later record can be found" + hint(head));

      const std::uint64_t most = window_.at_most() - header;
      const bool fits = length <= most && most - length >= footer;
      const std::size_t wanted = fits ? header + std::size_t(length) + footer : 0;
      if (fits && length > options_.max_record_bytes)
        return lose_rest("its length is " + std::to_string(length) + ", but max_record_bytes is " +
                         std::to_string(options_.max_record_bytes));
      const std::span<const std::byte> whole = window_.peek(wanted);
      if (!fits || whole.size() < wanted)
        return lose_rest(damage_or("its length is " + std::to_string(length) + ", but the file ends before that"));

      used_ = wanted;
      record_.bytes = whole.subspan(header, std::size_t(length));
      if (!options_.check_crc || io::masked_crc32c(record_.bytes) == little_endian(whole.last(footer))) return true;
      const std::string text = place() + "the checksum of its " + std::to_string(length) + " bytes is wrong";
      if (!options_.skip_damaged) throw_error(text);
      options_.damage->add_record(text);
    }
  }

  bool lose_rest(const std::string& why) {
    const std::string text = place() + why;
    if (!options_.skip_damaged) throw_error(text);
    options_.damage->add_file(text + "; the rest of the file is skipped");
    return false;
  }
  /// The reason for missing bytes: compressed data that are damaged or too long, or else `why`, as the file ends.
  std::string damage_or(const std::string& why) const { return window_.damage().empty() ? why : window_.damage(); }
  std::string place() const {
    return record_.file->string() + ": record " + std::to_string(record_.number) + " at byte " + std::to_string(record_.offset) +
           (options_.compression == compression::none ? ": " : " of the decompressed data: ");
  }
  /// Detects the first bytes of a compressed file, which hardly any record has.
  std::string hint(std::span<const std::byte> head) const {
    if (options_.compression != compression::none || record_.number > 0) return "";
    const unsigned a = std::to_integer<unsigned>(head[0]), b = std::to_integer<unsigned>(head[1]);
    const char* format = a == 0x1F && b == 0x8B ? "gzip" : (a & 15) == 8 && (a << 8 | b) % 31 == 0 ? "zlib" : nullptr;
    return format ? "; if the file is compressed, set {.compression = data::compression::" + std::string(format) + '}' : "";
  }

  static std::uint64_t little_endian(std::span<const std::byte> bytes) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) value |= std::to_integer<std::uint64_t>(bytes[i]) << 8 * i;
    return value;
  }
};

}  // namespace strata::data
